//! Metrics of a running adapter and of its Jobs, declared in `fleet_model::metrics::adapter`.

use std::time::Duration;

use daemon::metrics::{register, register_for_adapter};
use fleet_model::metrics::adapter as catalogue;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use serde_json::Value;

use crate::decide::FindingKind;
use crate::outcome::Outcome;
use crate::reason::Reason;

/// Metrics of one adapter. Clones share their values.
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
    store: StoreMetrics,
    jobs_created: Family<Labels, Counter>,
    jobs: Family<Labels, Counter>,
    job_duration: Family<Labels, Histogram>,
    versions: Family<Labels, Counter>,
    store_calls: Family<Call, Counter>,
    kubernetes_calls: Family<Call, Counter>,
}

/// Metrics of the check of secret stores.
#[derive(Clone, Debug, Default)]
struct StoreMetrics {
    checks: Family<WithStatus, Counter>,
    last_success: Family<Own, Gauge>,
    findings: Family<WithKind, Counter>,
    drifted: Family<Own, Gauge>,
    calls: Family<WithOperation, Counter>,
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
struct WithKind {
    component: &'static str,
    version: &'static str,
    adapter_name: String,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WithOperation {
    component: &'static str,
    version: &'static str,
    adapter_name: String,
    operation: &'static str,
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
    /// The adapter's type, such as `pull-secret`.
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

impl StoreMetrics {
    fn register(&self, registry: &mut Registry) {
        register(registry, &catalogue::STORE_CHECKS, self.checks.clone());
        register(registry, &catalogue::STORE_LAST_SUCCESS, self.last_success.clone());
        register(registry, &catalogue::STORE_FINDINGS, self.findings.clone());
        register(registry, &catalogue::STORE_DRIFTED, self.drifted.clone());
        register(registry, &catalogue::STORE_CALLS, self.calls.clone());
    }
}

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
            store: StoreMetrics::default(),
            jobs_created: Family::default(),
            jobs: Family::default(),
            job_duration: Family::new_with_constructor(|| Histogram::new(JOB_BOUNDS)),
            versions: Family::default(),
            store_calls: Family::default(),
            kubernetes_calls: Family::default(),
        };
        metrics.register_common(registry);
        metrics.register_jobs(registry, adapter_type);
        metrics
    }

    fn register_common(&self, registry: &mut Registry) {
        let up: Family<Own, Gauge> = Family::default();
        up.get_or_create(&self.own).set(1);
        register(registry, &catalogue::UP, up.clone());
        register(registry, &catalogue::BUILD_INFO, up);
        register(registry, &catalogue::EVENTS_PROCESSED, self.events.clone());
        register(registry, &catalogue::EVENT_PROCESSING_DURATION, self.duration.clone());
        register(registry, &catalogue::DECISIONS, self.decisions.clone());
        register(registry, &catalogue::ERRORS, self.errors.clone());
        register(registry, &catalogue::NACKS, self.nacks.clone());
        register(registry, &catalogue::DLQ_MESSAGES, self.dead_letters.clone());
        register(registry, &catalogue::STATUS_REPORTS, self.reports.clone());
        register(registry, &catalogue::RESOURCES_IN_PROGRESS, self.in_progress.clone());
        register(registry, &catalogue::LEADER, self.leading.clone());
        self.store.register(registry);
    }

    fn register_jobs(&self, registry: &mut Registry, adapter: &str) {
        register_for_adapter(registry, &catalogue::JOBS_CREATED, adapter, self.jobs_created.clone());
        register_for_adapter(registry, &catalogue::JOBS, adapter, self.jobs.clone());
        register_for_adapter(registry, &catalogue::JOB_DURATION, adapter, self.job_duration.clone());
        register_for_adapter(registry, &catalogue::SECRET_VERSIONS_CREATED, adapter, self.versions.clone());
        register_for_adapter(registry, &catalogue::GCP_API_CALLS, adapter, self.store_calls.clone());
        register_for_adapter(registry, &catalogue::K8S_API_CALLS, adapter, self.kubernetes_calls.clone());
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

    /// Shows the number of messages that were dead-lettered.
    pub fn show_dead_lettered(&self, count: u64) {
        let dead_letters = self.dead_letters.get_or_create(&self.own);
        dead_letters.inc_by(count.saturating_sub(dead_letters.get()));
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

    /// Counts a check of the secret stores, and notes its time if it has succeeded.
    pub fn store_checked(&self, is_success: bool, succeeded: Option<Timestamp>) {
        let status = if is_success { "success" } else { "failed" };
        self.store.checks.get_or_create(&self.with_status(status)).inc();
        if let Some(time) = succeeded {
            self.store.last_success.get_or_create(&self.own).set(time.as_second());
        }
    }

    /// Counts a difference between a secret store and what was reported.
    pub fn store_differs(&self, kind: FindingKind) {
        let Own { component, version, adapter_name } = self.own.clone();
        let labels = WithKind { component, version, adapter_name, kind: kind.as_str() };
        self.store.findings.get_or_create(&labels).inc();
    }

    /// Sets the number of differences that no run repairs yet.
    pub fn show_store_drifted(&self, count: usize) {
        self.store.drifted.get_or_create(&self.own).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts calls of checks to secret stores.
    pub fn store_called(&self, operation: &'static str, count: u64) {
        let Own { component, version, adapter_name } = self.own.clone();
        let labels = WithOperation { component, version, adapter_name, operation };
        self.store.calls.get_or_create(&labels).inc_by(count);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_metric_is_in_the_catalogue() {
        let identity = Identity { name: "a", adapter_type: "pull-secret", version: "test", by_cluster: true };
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry, &identity);
        metrics.settled(Handled::Success, Duration::ZERO);
        metrics.decided(Reason::ResourceGone);
        metrics.failed(true, "kubernetes");
        metrics.nacked();
        metrics.show_dead_lettered(1);
        metrics.reported("success");
        metrics.show_in_progress(1);
        metrics.show_leading(true);
        metrics.store_checked(true, Some(Timestamp::UNIX_EPOCH));
        metrics.store_differs(FindingKind::SecretMissing);
        metrics.show_store_drifted(1);
        metrics.store_called("list", 1);
        metrics.created("cls-1");
        let message = json!({
            "status": "success",
            "reason": "Stored",
            "details": { "durationMs": 1, "versionsAdded": 1, "apiCalls": { "get": 1 }, "k8sApiCalls": { "get": 1 } },
        });
        let outcome = Outcome::of(0, &message.to_string());
        metrics.ended("cls-1", true, Some(&outcome));
        let declared = [catalogue::METRICS, catalogue::JOB_METRICS];
        assert_eq!(daemon::metrics::differences(&registry, &declared, "pull-secret"), [""; 0]);
    }
}
