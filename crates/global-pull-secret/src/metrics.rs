//! The controller's metrics.

use std::time::Duration;

use fleet_model::Status;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::decide::probe::Verdict;
use crate::plan::Plan;
use crate::reason::Reason;

/// The metrics of one controller. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    reconciles: Counter,
    actions: Family<ActionLabels, Counter>,
    events: Family<ReasonLabel, Counter>,
    conditions: Family<ConditionLabels, Gauge>,
    in_sync: Gauge,
    nodes: Gauge,
    registries: Gauge,
    conflicts: Gauge,
    api_server_failing: Gauge,
    probes: Family<VerdictLabel, Counter>,
    reconcile: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    verb: &'static str,
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabel {
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    r#type: String,
    status: &'static str,
}

/// Buckets from one write to several writes to a slow server.
const BOUNDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const STATUSES: [Status; 3] = [Status::True, Status::False, Status::Unknown];

impl Metrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Counter::default(),
            actions: Family::default(),
            events: Family::default(),
            conditions: Family::default(),
            in_sync: Gauge::default(),
            nodes: Gauge::default(),
            registries: Gauge::default(),
            conflicts: Gauge::default(),
            api_server_failing: Gauge::default(),
            probes: Family::default(),
            reconcile: Histogram::new(BOUNDS),
        };
        let registry = registry.sub_registry_with_prefix("global_pull_secret");
        registry.register("reconciles", "Reconciles", metrics.reconciles.clone());
        registry.register("actions", "Writes of managed objects, by verb, kind and outcome", metrics.actions.clone());
        registry.register("events", "Events published, by reason", metrics.events.clone());
        registry.register("condition", "1 for the present status of each condition", metrics.conditions.clone());
        registry.register("nodes_in_sync", "Nodes that have applied the current revision", metrics.in_sync.clone());
        registry.register("nodes", "Nodes that the syncer runs on", metrics.nodes.clone());
        registry.register("registries", "Registries in the merged Secret", metrics.registries.clone());
        registry.register("conflicts", "Registries with entries in more than one Secret", metrics.conflicts.clone());
        let help = "1 while a watch or write of an API server fails";
        registry.register("api_server_failing", help, metrics.api_server_failing.clone());
        registry.register("probes", "Probes of credentials at registries, by verdict", metrics.probes.clone());
        let help = "Time of a reconcile that changed objects";
        registry.register_with_unit("reconcile", help, Unit::Seconds, metrics.reconcile.clone());
        metrics
    }

    /// Records a decision.
    pub fn decided(&self, plan: &Plan) {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.reconciles.inc();
        for condition in &plan.conditions {
            for status in STATUSES {
                let labels = ConditionLabels { r#type: condition.kind.clone(), status: status.as_str() };
                self.conditions.get_or_create(&labels).set((condition.status == status).into());
            }
        }
        let nodes = plan.nodes.clone().unwrap_or_default();
        self.in_sync.set(count(nodes.in_sync));
        self.nodes.set(count(nodes.all));
        self.registries.set(count(plan.because.len()));
        self.conflicts.set(count(plan.because.iter().filter(|decision| !decision.overridden.is_empty()).count()));
    }

    /// Records an attempted action.
    pub fn applied(&self, verb: &'static str, kind: &'static str, is_done: bool) {
        let outcome = if is_done { "done" } else { "failed" };
        self.actions.get_or_create(&ActionLabels { verb, kind, outcome }).inc();
    }

    /// Records the time of a reconcile that changed objects.
    pub fn reconciled(&self, took: Duration) {
        self.reconcile.observe(took.as_secs_f64());
    }

    /// Records a published Event.
    pub fn published(&self, reason: Reason) {
        self.events.get_or_create(&ReasonLabel { reason: reason.as_str() }).inc();
    }

    /// Records a probe.
    pub fn probed(&self, verdict: Verdict) {
        self.probes.get_or_create(&VerdictLabel { verdict: verdict.as_str() }).inc();
    }

    /// Records the present state of the API servers.
    pub fn api_server_failing(&self, is_failing: bool) {
        self.api_server_failing.set(is_failing.into());
    }
}
