//! Metrics of a running controller, declared in `fleet_model::metrics::global_pull_secret`.

use std::time::Duration;

use daemon::metrics::register;
use daemon::traces;
use fleet_model::Status;
use fleet_model::metrics::global_pull_secret as catalogue;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::finding::Verdict;
use crate::plan::Plan;
use crate::reason::Reason;

/// The metrics of one controller. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    reconciliations: Counter,
    actions: Family<ActionLabels, Counter>,
    events: Family<ReasonLabel, Counter>,
    conditions: Family<ConditionLabels, Gauge>,
    in_sync: Gauge,
    nodes: Gauge,
    registries: Gauge,
    conflicts: Gauge,
    degraded: Gauge,
    probes: Family<VerdictLabel, Counter>,
    reconcile_duration: Histogram,
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

/// Buckets from one write to several writes to a slow server, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
const STATUSES: [Status; 3] = [Status::True, Status::False, Status::Unknown];

impl Metrics {
    /// Registers the metrics.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciliations: Counter::default(),
            actions: Family::default(),
            events: Family::default(),
            conditions: Family::default(),
            in_sync: Gauge::default(),
            nodes: Gauge::default(),
            registries: Gauge::default(),
            conflicts: Gauge::default(),
            degraded: Gauge::default(),
            probes: Family::default(),
            reconcile_duration: Histogram::new(BOUNDS),
        };
        register(registry, &catalogue::RECONCILIATIONS, metrics.reconciliations.clone());
        register(registry, &catalogue::RECONCILE_DURATION, metrics.reconcile_duration.clone());
        register(registry, &catalogue::ACTIONS, metrics.actions.clone());
        register(registry, &catalogue::EVENTS_EMITTED, metrics.events.clone());
        register(registry, &catalogue::CONDITION, metrics.conditions.clone());
        register(registry, &catalogue::NODES, metrics.nodes.clone());
        register(registry, &catalogue::NODES_IN_SYNC, metrics.in_sync.clone());
        register(registry, &catalogue::REGISTRIES, metrics.registries.clone());
        register(registry, &catalogue::CONFLICTS, metrics.conflicts.clone());
        register(registry, &catalogue::DEGRADED, metrics.degraded.clone());
        register(registry, &catalogue::PROBES, metrics.probes.clone());
        register(registry, &catalogue::TRACE_SPANS_DROPPED, traces::dropped());
        metrics
    }

    /// Records a decision.
    pub fn decided(&self, plan: &Plan) {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.reconciliations.inc();
        for condition in &plan.conditions {
            for status in STATUSES {
                let labels = ConditionLabels { r#type: condition.kind.clone(), status: status.as_str() };
                self.conditions.get_or_create(&labels).set((condition.status == status).into());
            }
        }
        let nodes = plan.nodes.clone().unwrap_or_default();
        self.in_sync.set(count(nodes.in_sync));
        self.nodes.set(count(nodes.all));
        self.registries.set(count(plan.decisions.len()));
        self.conflicts.set(count(plan.decisions.iter().filter(|decision| !decision.overridden.is_empty()).count()));
    }

    /// Records an attempted action.
    pub fn applied(&self, verb: &'static str, kind: &'static str, is_done: bool) {
        let outcome = if is_done { "done" } else { "failed" };
        self.actions.get_or_create(&ActionLabels { verb, kind, outcome }).inc();
    }

    /// Records the time of a reconcile that changed objects.
    pub fn reconciled(&self, took: Duration) {
        self.reconcile_duration.observe(took.as_secs_f64());
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
    pub fn set_degraded(&self, is_degraded: bool) {
        self.degraded.set(is_degraded.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_in_the_catalogue() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.conditions.get_or_create(&ConditionLabels { r#type: "Available".to_owned(), status: "True" }).set(1);
        metrics.applied("apply", "secret", true);
        metrics.reconciled(Duration::ZERO);
        metrics.published(Reason::ALL[0]);
        metrics.probed(Verdict::Accepted);
        metrics.set_degraded(true);
        assert_eq!(daemon::metrics::differences(&registry, &[catalogue::METRICS], ""), [""; 0]);
    }
}
