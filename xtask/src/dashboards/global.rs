//! "Global Pull Secret": the controllers of hosted clusters, and their nodes.

use super::panel::{Dashboard, Kind, panel};

pub(super) const DASHBOARD: Dashboard = Dashboard {
    name: "global-pull-secret",
    title: "Global Pull Secret",
    panels: &[
        panel(
            Kind::Lines,
            "Nodes",
            "short",
            &[
                ("sum by (namespace) (global_pull_secret_nodes)", "{{namespace}}: all"),
                ("sum by (namespace) (global_pull_secret_nodes_in_sync)", "{{namespace}}: in sync"),
            ],
        ),
        panel(
            Kind::Bars,
            "Nodes without the current credentials",
            "short",
            &[(
                "topk(10, sum by (namespace) (global_pull_secret_nodes - global_pull_secret_nodes_in_sync))",
                "{{namespace}}",
            )],
        ),
        panel(
            Kind::Bars,
            "Conditions that are False",
            "short",
            &[("sum by (type) (global_pull_secret_condition{status=\"False\"})", "{{type}}")],
        )
        .with_note("Number of hosted clusters. Degraded=False is the good state."),
        panel(
            Kind::Number,
            "Controllers whose API server does not answer",
            "short",
            &[("sum(global_pull_secret_degraded)", "degraded")],
        ),
        panel(
            Kind::Lines,
            "Registries",
            "short",
            &[
                ("sum by (namespace) (global_pull_secret_registries)", "{{namespace}}"),
                ("sum by (namespace) (global_pull_secret_conflicts)", "{{namespace}}: conflicts"),
            ],
        ),
        panel(
            Kind::Lines,
            "Registry probes",
            "ops",
            &[("sum by (verdict) (rate(global_pull_secret_probes_total[5m]))", "{{verdict}}")],
        ),
        panel(
            Kind::Lines,
            "Reconcile passes",
            "ops",
            &[("sum by (namespace) (rate(global_pull_secret_reconciliations_total[5m]))", "{{namespace}}")],
        ),
        panel(
            Kind::Lines,
            "Reconcile passes that changed objects (p95)",
            "s",
            &[(
                "histogram_quantile(0.95, sum by (le) (rate(global_pull_secret_reconcile_duration_seconds_bucket[5m])))",
                "duration",
            )],
        ),
        panel(
            Kind::Lines,
            "Objects applied and deleted",
            "ops",
            &[(
                "sum by (verb, kind, outcome) (rate(global_pull_secret_actions_total[5m]))",
                "{{verb}} {{kind}}: {{outcome}}",
            )],
        ),
        panel(
            Kind::Lines,
            "Kubernetes Events, by reason",
            "ops",
            &[("sum by (reason) (rate(global_pull_secret_events_emitted_total[5m]))", "{{reason}}")],
        ),
        panel(
            Kind::Bars,
            "Node agents, by reason",
            "short",
            &[("sum by (reason) (sync_global_pullsecret_reason) > 0", "{{reason}}")],
        ),
        panel(
            Kind::Lines,
            "Node agents that are not ready, or without their source",
            "short",
            &[
                ("count(sync_global_pullsecret_ready == 0)", "not ready"),
                ("sum(sync_global_pullsecret_source_unavailable)", "source unavailable"),
            ],
        ),
        panel(
            Kind::Lines,
            "Changes on nodes",
            "ops",
            &[
                ("sum(rate(sync_global_pullsecret_writes_total[5m]))", "files replaced"),
                ("sum(rate(sync_global_pullsecret_restarts_total[5m]))", "kubelets restarted"),
                ("sum(rate(sync_global_pullsecret_failed_restarts_total[5m]))", "restarts failed"),
                ("sum(rate(sync_global_pullsecret_rollbacks_total[5m]))", "rolled back"),
            ],
        ),
        panel(
            Kind::Lines,
            "Faults on nodes",
            "ops",
            &[
                ("sum(rate(sync_global_pullsecret_disk_faults_total[5m]))", "disk"),
                ("sum(rate(sync_global_pullsecret_systemd_unreachable_total[5m]))", "systemd did not answer"),
            ],
        ),
        panel(
            Kind::Number,
            "Since the last node applied credentials",
            "s",
            &[("time() - max(sync_global_pullsecret_applied_timestamp_seconds)", "age")],
        ),
    ],
};
