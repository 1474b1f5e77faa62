//! Metrics of the Global Pull Secret controller.

use super::metrics;

metrics! {
    /// Metrics of the controller.
    METRICS:
    /// Reconcile passes.
    RECONCILIATIONS = Counter "global_pull_secret_reconciliations" by &[];
    /// Duration of reconcile passes that changed objects.
    RECONCILE_DURATION = Histogram "global_pull_secret_reconcile_duration" in Seconds by &[];
    /// Objects applied or deleted, by verb, kind and outcome (`done`, `failed`).
    ACTIONS = Counter "global_pull_secret_actions" by &["verb", "kind", "outcome"];
    /// Kubernetes Events emitted, by reason.
    EVENTS_EMITTED = Counter "global_pull_secret_events_emitted" by &["reason"];
    /// 1 for the current status of a condition, 0 for its other statuses.
    CONDITION = Gauge "global_pull_secret_condition" by &["type", "status"];
    /// Nodes.
    NODES = Gauge "global_pull_secret_nodes" by &[];
    /// Nodes that have the current credentials.
    NODES_IN_SYNC = Gauge "global_pull_secret_nodes_in_sync" by &[];
    /// Registries in the merged Secret.
    REGISTRIES = Gauge "global_pull_secret_registries" by &[];
    /// Registries with credentials in more than one Secret.
    CONFLICTS = Gauge "global_pull_secret_conflicts" by &[];
    /// 1 while an API server does not answer or refuses requests.
    DEGRADED = Gauge "global_pull_secret_degraded" by &[];
    /// Registry probes, by verdict.
    PROBES = Counter "global_pull_secret_probes" by &["verdict"];
    /// Spans of traces that no collector has taken: the queue was full, or the collector has refused them.
    TRACE_SPANS_DROPPED = Counter "global_pull_secret_trace_spans_dropped" by &[];
}
