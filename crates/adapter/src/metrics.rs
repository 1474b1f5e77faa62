//! The adapter's metrics, under HyperFleet's names for all adapters and the specification's for its Jobs.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;

use crate::outcome::Outcome;
use crate::reason::Reason;

/// The metrics of one adapter. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    own: Own,
    by_cluster: bool,
    events: Family<WithStatus, Counter>,
    duration: Family<Own, Histogram>,
    decisions: Family<WithReason, Counter>,
    errors: Family<WithError, Counter>,
    nacks: Family<Own, Counter>,
    dead_letters: Family<Own, Counter>,
    reports: Family<WithStatus, Counter>,
    in_progress: Family<Own, Gauge>,
    leading: Family<Own, Gauge>,
    jobs_created: Family<Labels, Counter>,
    jobs: Family<Labels, Counter>,
    job_duration: Family<Labels, Histogram>,
    versions: Family<Labels, Counter>,
    store_calls: Family<Call, Counter>,
    kubernetes_calls: Family<Call, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Own {
    component: &'static str,
    version: &'static str,
    adapter_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WithStatus {
    component: &'static str,
    version: &'static str,
    adapter_name: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WithReason {
    component: &'static str,
    version: &'static str,
    adapter_name: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WithError {
    component: &'static str,
    version: &'static str,
    adapter_name: String,
    classification: &'static str,
    error_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    cluster_id: Option<String>,
    result: Option<&'static str>,
    reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    operation: String,
}

/// The adapter that metrics belong to.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The adapter's name.
    pub name: &'a str,
    /// The adapter's type.
    pub adapter_type: &'a str,
    /// The program's version.
    pub version: &'static str,
    /// True if metrics about Jobs have the cluster's id as a label.
    pub by_cluster: bool,
}

/// The result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The resource was reconciled and its conditions were reported.
    Success,
    /// The resource does not exist, or no action was due.
    Skipped,
    /// The pass has failed; the event was nacked, or acked if another pass cannot succeed.
    Failed,
}

const EVENT_BOUNDS: [f64; 9] = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0];
const JOB_BOUNDS: [f64; 10] = [0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// Maximum length of the names that a Job chooses for itself, and maximum number of them per report: they become series.
const MAX_REASONS: usize = 64;

impl Metrics {
    /// Registers an adapter's metrics. Those about Jobs are named after its type: `pullsecret_job_total`.
    pub fn register(registry: &mut Registry, identity: &Identity<'_>) -> Self {
        let Identity { name, adapter_type, version, by_cluster } = *identity;
        let own = Own { component: "adapter", version, adapter_name: name.to_owned() };
        let metrics = Self {
            own,
            by_cluster,
            events: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(EVENT_BOUNDS)),
            decisions: Family::default(),
            errors: Family::default(),
            nacks: Family::default(),
            dead_letters: Family::default(),
            reports: Family::default(),
            in_progress: Family::default(),
            leading: Family::default(),
            jobs_created: Family::default(),
            jobs: Family::default(),
            job_duration: Family::new_with_constructor(|| Histogram::new(JOB_BOUNDS)),
            versions: Family::default(),
            store_calls: Family::default(),
            kubernetes_calls: Family::default(),
        };
        metrics.register_common(registry.sub_registry_with_prefix("hyperfleet_adapter"));
        metrics.register_jobs(registry.sub_registry_with_prefix(adapter_type.replace('-', "_")));
        metrics
    }

    fn register_common(&self, registry: &mut Registry) {
        let up: Family<Own, Gauge> = Family::default();
        up.get_or_create(&self.own).set(1);
        registry.register("up", "1 while the adapter is running", up.clone());
        registry.register("build_info", "1, with the version as label", up);
        registry.register("events_processed", "Events processed, by result", self.events.clone());
        let help = "Time from the start of a reconcile pass until its event is acked or nacked";
        registry.register_with_unit("event_processing_duration", help, Unit::Seconds, self.duration.clone());
        registry.register("decisions", "Decisions about resources, by reason", self.decisions.clone());
        registry.register(
            "errors",
            "Errors, by classification (transient or terminal) and component",
            self.errors.clone(),
        );
        registry.register("nacks", "Events nacked for another delivery", self.nacks.clone());
        registry.register("dlq_messages", "Malformed messages, dead-lettered", self.dead_letters.clone());
        registry.register("status_reports", "Status reports, by the API's answer", self.reports.clone());
        registry.register("resources_in_progress", "Resources that are being reconciled", self.in_progress.clone());
        registry.register("leader", "1 if this replica reports the ends of Jobs", self.leading.clone());
    }

    fn register_jobs(&self, registry: &mut Registry) {
        registry.register("adapter_jobs_created", "Jobs created", self.jobs_created.clone());
        registry.register("job", "Jobs finished, by result and reason", self.jobs.clone());
        let help = "Duration of runs, as they report it";
        registry.register_with_unit("job_duration", help, Unit::Seconds, self.job_duration.clone());
        registry.register("secret_versions_created", "Secret versions added by runs", self.versions.clone());
        registry.register("gcp_api_calls", "Calls of runs to Google's APIs, by operation", self.store_calls.clone());
        registry.register(
            "k8s_api_calls",
            "Calls of runs to the Kubernetes API, by operation",
            self.kubernetes_calls.clone(),
        );
    }

    /// Counts an event that was acked or nacked.
    pub fn settled(&self, handled: Handled, took: Duration) {
        let status = match handled {
            Handled::Success => "success",
            Handled::Skipped => "skipped",
            Handled::Failed => "failed",
        };
        self.events.get_or_create(&self.with_status(status)).inc();
        self.duration.get_or_create(&self.own).observe(took.as_secs_f64());
    }

    /// Counts a decision.
    pub fn decided(&self, reason: Reason) {
        let Own { component, version, adapter_name } = self.own.clone();
        let labels = WithReason { component, version, adapter_name, reason: reason.as_str() };
        self.decisions.get_or_create(&labels).inc();
    }

    /// Counts an error.
    pub fn failed(&self, is_transient: bool, error_type: &'static str) {
        let classification = if is_transient { "transient" } else { "terminal" };
        let Own { component, version, adapter_name } = self.own.clone();
        let labels = WithError { component, version, adapter_name, classification, error_type };
        self.errors.get_or_create(&labels).inc();
    }

    /// Counts an event that was nacked.
    pub fn nacked(&self) {
        self.nacks.get_or_create(&self.own).inc();
    }

    /// Counts a malformed message.
    pub fn rejected(&self) {
        self.dead_letters.get_or_create(&self.own).inc();
    }

    /// Counts a report: `success`, `discarded`, `gone` or `error`.
    pub fn reported(&self, status: &'static str) {
        self.reports.get_or_create(&self.with_status(status)).inc();
    }

    /// Sets the number of resources that are being reconciled.
    pub fn show_in_progress(&self, count: usize) {
        self.in_progress.get_or_create(&self.own).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the leadership of this replica.
    pub fn show_leading(&self, leads: bool) {
        self.leading.get_or_create(&self.own).set(leads.into());
    }

    /// Counts a Job that was created.
    pub fn created(&self, cluster: &str) {
        self.jobs_created.get_or_create(&self.labels(cluster, None, None)).inc();
    }

    /// Counts a Job that has ended, with its calls and versions.
    pub fn ended(&self, cluster: &str, is_success: bool, outcome: Option<&Outcome>) {
        let result = if is_success { "success" } else { "failure" };
        let reason = outcome.and_then(|outcome| outcome.reason.clone()).filter(|reason| reason.len() <= MAX_REASONS);
        self.jobs.get_or_create(&self.labels(cluster, Some(result), reason)).inc();
        let Some(outcome) = outcome else { return };
        let number = |name: &str| outcome.details.get(name).and_then(Value::as_u64);
        if let Some(took) = number("durationMs") {
            let took = Duration::from_millis(took).as_secs_f64();
            self.job_duration.get_or_create(&self.labels(cluster, Some(result), None)).observe(took);
        }
        if let Some(added) = number("versionsAdded").filter(|added| *added > 0) {
            self.versions.get_or_create(&self.labels(cluster, None, None)).inc_by(added);
        }
        for (member, family) in [("apiCalls", &self.store_calls), ("k8sApiCalls", &self.kubernetes_calls)] {
            let calls = outcome.details.get(member).and_then(Value::as_object).into_iter().flatten();
            for (operation, count) in calls.take(MAX_REASONS) {
                let call = Call { operation: operation.chars().take(MAX_REASONS).collect() };
                family.get_or_create(&call).inc_by(count.as_u64().unwrap_or_default());
            }
        }
    }

    fn labels(&self, cluster: &str, result: Option<&'static str>, reason: Option<String>) -> Labels {
        Labels { cluster_id: self.by_cluster.then(|| cluster.to_owned()), result, reason }
    }

    fn with_status(&self, status: &'static str) -> WithStatus {
        let Own { component, version, adapter_name } = self.own.clone();
        WithStatus { component, version, adapter_name, status }
    }
}
