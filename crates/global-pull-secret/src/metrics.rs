//! What the controller counts.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::decide::probe::Verdict;
use crate::plan::Plan;
use crate::reason::Reason;

/// The metrics of one controller. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    rounds: Counter,
    actions: Family<ActionLabels, Counter>,
    news: Family<ReasonLabel, Counter>,
    conditions: Family<ConditionLabels, Gauge>,
    in_sync: Gauge,
    nodes: Gauge,
    registries: Gauge,
    conflicts: Gauge,
    troubled: Gauge,
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

/// From one write to a slow server's handful.
const BOUNDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

impl Metrics {
    /// Metrics, registered.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            rounds: Counter::default(),
            actions: Family::default(),
            news: Family::default(),
            conditions: Family::default(),
            in_sync: Gauge::default(),
            nodes: Gauge::default(),
            registries: Gauge::default(),
            conflicts: Gauge::default(),
            troubled: Gauge::default(),
            probes: Family::default(),
            reconcile: Histogram::new(BOUNDS),
        };
        let registry = registry.sub_registry_with_prefix("global_pull_secret");
        registry.register("decisions", "How often was decided", metrics.rounds.clone());
        registry.register("actions", "Objects put or removed, by kind and outcome", metrics.actions.clone());
        registry.register("news", "Events published, by reason", metrics.news.clone());
        registry.register("condition", "1 for the status that a condition has", metrics.conditions.clone());
        registry.register("nodes_in_sync", "Nodes that have the content", metrics.in_sync.clone());
        registry.register("nodes", "Nodes that are to have it", metrics.nodes.clone());
        registry.register("registries", "Registries in the merged Secret", metrics.registries.clone());
        registry.register("conflicts", "Registries that more than one Secret names", metrics.conflicts.clone());
        let help = "1 while an API server refuses or does not answer";
        registry.register("troubled", help, metrics.troubled.clone());
        registry.register("probes", "Registries asked about a credential, by verdict", metrics.probes.clone());
        let help = "How long it took to bring the objects from one state to the next";
        registry.register_with_unit("reconcile", help, Unit::Seconds, metrics.reconcile.clone());
        metrics
    }

    /// A decision was made.
    pub fn decided(&self, plan: &Plan) {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.rounds.inc();
        for condition in &plan.conditions {
            for status in STATUSES {
                let labels = ConditionLabels { r#type: condition.kind.clone(), status };
                self.conditions.get_or_create(&labels).set((condition.status == status).into());
            }
        }
        let nodes = plan.nodes.clone().unwrap_or_default();
        self.in_sync.set(count(nodes.in_sync));
        self.nodes.set(count(nodes.all));
        self.registries.set(count(plan.because.len()));
        self.conflicts.set(count(plan.because.iter().filter(|decision| !decision.overridden.is_empty()).count()));
    }

    /// An action was tried.
    pub fn acted(&self, verb: &'static str, kind: &'static str, is_done: bool) {
        let outcome = if is_done { "done" } else { "failed" };
        self.actions.get_or_create(&ActionLabels { verb, kind, outcome }).inc();
    }

    /// Objects were brought to another state.
    pub fn reconciled(&self, took: Duration) {
        self.reconcile.observe(took.as_secs_f64());
    }

    /// Something was told.
    pub fn told(&self, reason: Reason) {
        self.news.get_or_create(&ReasonLabel { reason: reason.as_str() }).inc();
    }

    /// A registry was asked.
    pub fn probed(&self, verdict: Verdict) {
        self.probes.get_or_create(&VerdictLabel { verdict: verdict.as_str() }).inc();
    }

    /// Whether a server refuses or does not answer.
    pub fn troubled(&self, is_troubled: bool) {
        self.troubled.set(is_troubled.into());
    }
}
