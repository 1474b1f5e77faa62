//! Metrics that are named by the adapter's type, as the specification writes them: of its Jobs, events and reports.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use daemon::metrics::register_for_adapter;
use fleet_model::job::Calls;
use fleet_model::metrics::adapter as catalogue;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::reason::Reason;

/// The end of a Job, as the metrics count it.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The cluster's id.
    pub cluster: &'a str,
    /// True if the Job has succeeded.
    pub is_success: bool,
    /// The number of the attempt at the generation, from 1.
    pub attempt: u32,
    /// The result that its Pods have reported, if any.
    pub outcome: Option<&'a Outcome>,
}

/// Metrics by the adapter's type.
#[derive(Clone, Debug)]
pub(super) struct JobMetrics {
    by_cluster: bool,
    pub(super) events: Family<WithResult, Counter>,
    pub(super) status_updates: Family<WithResult, Counter>,
    created: Family<OfCluster, Counter>,
    jobs: Family<OfCluster, Counter>,
    failures: Family<OfReason, Counter>,
    reasons: Names,
    duration: Family<OfCluster, Histogram>,
    attempts: Histogram,
    retries: Histogram,
    versions_created: Family<OfCluster, Counter>,
    versions_destroyed: Family<OfCluster, Counter>,
    store: CallMetrics,
    kubernetes: CallMetrics,
}

/// Metrics of the calls to one service.
#[derive(Clone, Debug)]
struct CallMetrics {
    calls: Family<OfCall, Counter>,
    duration: Family<OfOperation, Histogram>,
    operations: Names,
    status_codes: Names,
}

/// Names that Jobs choose for themselves. Each becomes a series, so there is a limit; those beyond it are counted as one.
#[derive(Clone, Debug, Default)]
struct Names(Arc<Mutex<BTreeSet<String>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct WithResult {
    pub(super) result: &'static str,
}

/// `cluster_id` on request, and `result` where there is one. An absent label is not exposed as an empty one.
type OfCluster = Vec<(&'static str, String)>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOperation {
    operation: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCall {
    operation: String,
    status_code: String,
}

const JOB_BOUNDS: [f64; 10] = [0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const CALL_BOUNDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];
const NUMBER_BOUNDS: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0];
/// Maximum number of names of one kind, and of bytes of a name.
const MAX_NAMES: usize = 64;
/// Stands for the names beyond [`MAX_NAMES`].
const OTHER: &str = "other";
/// Maximum number of calls of one operation that are taken from a result.
const MAX_CALLS: u32 = 10_000;

// === impl JobMetrics ===

impl JobMetrics {
    pub(super) fn new(by_cluster: bool) -> Self {
        let jobs: Family<OfCluster, Counter> = Family::default();
        if !by_cluster {
            // Without them the first failure would be no increase.
            for result in ["success", "failure"] {
                drop(jobs.get_or_create(&vec![("result", result.to_owned())]));
            }
        }
        Self {
            by_cluster,
            jobs,
            events: Family::default(),
            status_updates: Family::default(),
            created: Family::default(),
            failures: Family::default(),
            reasons: Names::default(),
            duration: Family::new_with_constructor(|| Histogram::new(JOB_BOUNDS)),
            attempts: Histogram::new(NUMBER_BOUNDS),
            retries: Histogram::new(NUMBER_BOUNDS),
            versions_created: Family::default(),
            versions_destroyed: Family::default(),
            store: CallMetrics::new(),
            kubernetes: CallMetrics::new(),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry, adapter: &str) {
        register_for_adapter(registry, &catalogue::JOB_EVENTS, adapter, self.events.clone());
        register_for_adapter(registry, &catalogue::STATUS_UPDATES, adapter, self.status_updates.clone());
        register_for_adapter(registry, &catalogue::JOBS_CREATED, adapter, self.created.clone());
        register_for_adapter(registry, &catalogue::JOBS, adapter, self.jobs.clone());
        register_for_adapter(registry, &catalogue::JOB_FAILURES, adapter, self.failures.clone());
        register_for_adapter(registry, &catalogue::JOB_DURATION, adapter, self.duration.clone());
        register_for_adapter(registry, &catalogue::JOB_ATTEMPTS, adapter, self.attempts.clone());
        register_for_adapter(registry, &catalogue::JOB_RETRIES, adapter, self.retries.clone());
        register_for_adapter(registry, &catalogue::SECRET_VERSIONS_CREATED, adapter, self.versions_created.clone());
        register_for_adapter(registry, &catalogue::SECRET_VERSIONS_DESTROYED, adapter, self.versions_destroyed.clone());
        register_for_adapter(registry, &catalogue::GCP_API_CALLS, adapter, self.store.calls.clone());
        register_for_adapter(registry, &catalogue::GCP_API_DURATION, adapter, self.store.duration.clone());
        register_for_adapter(registry, &catalogue::K8S_API_CALLS, adapter, self.kubernetes.calls.clone());
        register_for_adapter(registry, &catalogue::K8S_API_DURATION, adapter, self.kubernetes.duration.clone());
    }

    pub(super) fn created(&self, cluster: &str) {
        self.created.get_or_create(&self.labels(cluster, None)).inc();
    }

    pub(super) fn ended(&self, ended: &Ended<'_>) {
        let Ended { cluster, is_success, attempt, outcome } = *ended;
        let result = Some(if is_success { "success" } else { "failure" });
        self.jobs.get_or_create(&self.labels(cluster, result)).inc();
        self.attempts.observe(attempt.into());
        if !is_success {
            let reason = outcome.and_then(|outcome| outcome.reason.as_deref()).unwrap_or(Reason::JobFailed.as_str());
            self.failures.get_or_create(&OfReason { reason: self.reasons.bounded(reason) }).inc();
        }
        let Some(Outcome { details, costs, .. }) = outcome else { return };
        if let Some(took) = details.get("durationMs").and_then(Value::as_u64) {
            self.duration
                .get_or_create(&self.labels(cluster, result))
                .observe(Duration::from_millis(took).as_secs_f64());
        }
        self.retries.observe(costs.retries.into());
        for (family, number) in
            [(&self.versions_created, costs.versions_added), (&self.versions_destroyed, costs.versions_destroyed)]
        {
            family.get_or_create(&self.labels(cluster, None)).inc_by(number.into());
        }
        self.store.count(&costs.store_calls);
        self.kubernetes.count(&costs.kubernetes_calls);
    }

    fn labels(&self, cluster: &str, result: Option<&'static str>) -> OfCluster {
        let cluster = self.by_cluster.then(|| ("cluster_id", cluster.to_owned()));
        cluster.into_iter().chain(result.map(|result| ("result", result.to_owned()))).collect()
    }
}

// === impl CallMetrics ===

impl CallMetrics {
    fn new() -> Self {
        Self {
            calls: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(CALL_BOUNDS)),
            operations: Names::default(),
            status_codes: Names::default(),
        }
    }

    fn count(&self, calls: &[Calls]) {
        for call in calls {
            let call = Calls { count: call.count.min(MAX_CALLS), ..call.clone() };
            let operation = self.operations.bounded(&call.operation);
            let status_code = self.status_codes.bounded(&call.status_code.to_string());
            self.calls
                .get_or_create(&OfCall { operation: operation.clone(), status_code })
                .inc_by(u64::from(call.count));
            let duration = self.duration.get_or_create(&OfOperation { operation });
            for ms in call.times() {
                duration.observe(Duration::from_millis(ms.into()).as_secs_f64());
            }
        }
    }
}

// === impl Names ===

impl Names {
    /// Returns the name, or [`OTHER`] for one that is unusable or beyond the limit.
    fn bounded(&self, name: &str) -> String {
        let is_usable = name.len() <= MAX_NAMES && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(name) || (is_usable && known.len() < MAX_NAMES && known.insert(name.to_owned())) {
            name.to_owned()
        } else {
            OTHER.to_owned()
        }
    }
}
