//! Metrics of a running adapter and of its Jobs, declared in `fleet_model::metrics::adapter`.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use daemon::metrics::register;
use daemon::traces;
use fleet_model::metrics::adapter as catalogue;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::decide::FindingKind;
use crate::reason::Reason;

mod jobs;

pub use jobs::Ended;
use jobs::{JobMetrics, WithResult};

/// Metrics of one adapter. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    labels: AdapterLabels,
    events: Family<WithStatus, Counter>,
    duration: Family<AdapterLabels, Histogram>,
    decisions: Family<WithReason, Counter>,
    errors: Family<WithError, Counter>,
    nacks: Family<AdapterLabels, Counter>,
    dead_letters: Family<AdapterLabels, Counter>,
    reports: Family<WithStatus, Counter>,
    in_progress: Family<AdapterLabels, Gauge>,
    leading: Family<AdapterLabels, Gauge>,
    store: StoreMetrics,
    last_pass: Family<AdapterLabels, Gauge>,
    quota_used: Family<AdapterLabels, Gauge<f64, AtomicU64>>,
    jobs: JobMetrics,
}

/// Metrics of the check of secret stores.
#[derive(Clone, Debug, Default)]
struct StoreMetrics {
    checks: Family<WithStatus, Counter>,
    last_success: Family<AdapterLabels, Gauge>,
    findings: Family<WithKind, Counter>,
    drifted: Family<AdapterLabels, Gauge>,
    calls: Family<WithOperation, Counter>,
}

/// Labels of every metric of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AdapterLabels {
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

/// The adapter that metrics belong to.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The adapter's name.
    pub name: &'a str,
    /// The adapter's type, such as `pullsecret`.
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
        let labels = AdapterLabels { component: "adapter", version, adapter_name: name.to_owned() };
        let metrics = Self {
            labels,
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
            last_pass: Family::default(),
            quota_used: Family::default(),
            jobs: JobMetrics::new(by_cluster),
        };
        metrics.register_common(registry);
        metrics.jobs.register(registry, adapter_type);
        metrics.passed(Timestamp::now());
        metrics
    }

    fn register_common(&self, registry: &mut Registry) {
        let up: Family<AdapterLabels, Gauge> = Family::default();
        up.get_or_create(&self.labels).set(1);
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
        register(registry, &catalogue::TRACE_SPANS_DROPPED, traces::dropped());
        register(registry, &catalogue::LAST_SUCCESSFUL_PASS, self.last_pass.clone());
        register(registry, &catalogue::STORE_QUOTA_USED, self.quota_used.clone());
        self.store.register(registry);
    }

    /// Counts an event that was acked or nacked.
    pub fn event_handled(&self, handled: Handled, took: Duration) {
        // `status` is HyperFleet's value, `result` the specification's.
        let (status, result) = match handled {
            Handled::Success => ("success", "success"),
            Handled::Skipped => ("skipped", "skipped"),
            Handled::Failed => ("failed", "failure"),
        };
        self.events.get_or_create(&self.with_status(status)).inc();
        self.jobs.events.get_or_create(&WithResult { result }).inc();
        self.duration.get_or_create(&self.labels).observe(took.as_secs_f64());
    }

    /// Counts a decision.
    pub fn decided(&self, reason: Reason) {
        let AdapterLabels { component, version, adapter_name } = self.labels.clone();
        let labels = WithReason { component, version, adapter_name, reason: reason.as_str() };
        self.decisions.get_or_create(&labels).inc();
    }

    /// Counts an error.
    pub fn failed(&self, is_transient: bool, error_type: &'static str) {
        let classification = if is_transient { "transient" } else { "terminal" };
        let AdapterLabels { component, version, adapter_name } = self.labels.clone();
        let labels = WithError { component, version, adapter_name, classification, error_type };
        self.errors.get_or_create(&labels).inc();
    }

    /// Counts an event that was nacked.
    pub fn nacked(&self) {
        self.nacks.get_or_create(&self.labels).inc();
    }

    /// Shows the number of messages that were dead-lettered.
    pub fn show_dead_lettered(&self, count: u64) {
        let dead_letters = self.dead_letters.get_or_create(&self.labels);
        dead_letters.inc_by(count.saturating_sub(dead_letters.get()));
    }

    /// Counts a report: `success`, `discarded`, `gone` or `error`.
    pub fn reported(&self, status: &'static str) {
        self.reports.get_or_create(&self.with_status(status)).inc();
        let result = if status == "error" { "failure" } else { status };
        self.jobs.status_updates.get_or_create(&WithResult { result }).inc();
    }

    /// Notes the time of a reconcile pass that has succeeded.
    pub fn passed(&self, time: Timestamp) {
        self.last_pass.get_or_create(&self.labels).set(time.as_second());
    }

    /// Sets the share of the quota of writes that the busiest project has used.
    pub fn show_quota_used(&self, share: f64) {
        self.quota_used.get_or_create(&self.labels).set(share);
    }

    /// Sets the number of resources that are being reconciled.
    pub fn show_in_progress(&self, count: usize) {
        self.in_progress.get_or_create(&self.labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the leadership of this replica.
    pub fn show_leading(&self, leads: bool) {
        self.leading.get_or_create(&self.labels).set(leads.into());
    }

    /// Counts a check of the secret stores, and notes its time if it has succeeded.
    pub fn store_checked(&self, is_success: bool, succeeded: Option<Timestamp>) {
        let status = if is_success { "success" } else { "failed" };
        self.store.checks.get_or_create(&self.with_status(status)).inc();
        if let Some(time) = succeeded {
            self.store.last_success.get_or_create(&self.labels).set(time.as_second());
        }
    }

    /// Counts a difference between a secret store and what was reported.
    pub fn store_differs(&self, kind: FindingKind) {
        let AdapterLabels { component, version, adapter_name } = self.labels.clone();
        let labels = WithKind { component, version, adapter_name, kind: kind.as_str() };
        self.store.findings.get_or_create(&labels).inc();
    }

    /// Sets the number of differences that no run repairs yet.
    pub fn show_store_drifted(&self, count: usize) {
        self.store.drifted.get_or_create(&self.labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts calls of checks to secret stores.
    pub fn store_called(&self, operation: &'static str, count: u64) {
        let AdapterLabels { component, version, adapter_name } = self.labels.clone();
        let labels = WithOperation { component, version, adapter_name, operation };
        self.store.calls.get_or_create(&labels).inc_by(count);
    }

    /// Counts a Job that was created.
    pub fn created(&self, cluster: &str) {
        self.jobs.created(cluster);
    }

    /// Counts a Job that has ended, with its calls and versions.
    pub fn ended(&self, ended: &Ended<'_>) {
        self.jobs.ended(ended);
    }

    fn with_status(&self, status: &'static str) -> WithStatus {
        let AdapterLabels { component, version, adapter_name } = self.labels.clone();
        WithStatus { component, version, adapter_name, status }
    }
}

#[cfg(test)]
mod tests;
