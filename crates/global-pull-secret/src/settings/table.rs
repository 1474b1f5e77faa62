//! Every setting; `docs/reference/global-pull-secret-settings.md` and `--help` are made from it.

use daemon::settings::{Kind, Row, Table};

/// All settings of the controller.
pub const TABLE: Table = Table { variable, rows: ROWS, retired: &[] };

/// The variable of a setting.
pub fn variable(path: &str) -> String {
    daemon::settings::variable("GLOBAL_PULL_SECRET", path)
}

const ROWS: &[Row] = &[
    Row::new(
        "hosted_kubeconfig",
        Some("hosted-kubeconfig"),
        Kind::Path,
        "",
        "The hosted cluster's kubeconfig; without it, the cluster of the control plane is the hosted one too",
    ),
    Row::new(
        "kubeconfig",
        Some("kubeconfig"),
        Kind::Path,
        "",
        "The kubeconfig of the cluster with the hosted control plane; in a pod not needed",
    ),
    Row::new(
        "control_plane_namespace",
        Some("control-plane-namespace"),
        Kind::Text,
        "",
        "The hosted control plane's namespace, where the original pull secret is [required]",
    ),
    Row::new("original_secret", Some("original-secret"), Kind::Text, "pull-secret", "The original pull secret's name"),
    Row::new("syncer.image", Some("syncer-image"), Kind::Text, "", "The node syncer's image [required]"),
    Row::new(
        "syncer.priority_class",
        Some("syncer-priority-class"),
        Kind::Text,
        "openshift-user-critical",
        "The priority class of the syncer's Pods; it must exist",
    ),
    Row::new(
        "syncer.node_selector",
        Some("syncer-node-selector"),
        Kind::Text,
        "",
        "The labels of the nodes that get it, `KEY=VALUE,…`; without any, all nodes",
    ),
    Row::new(
        "syncer.max_unavailable",
        Some("max-unavailable"),
        Kind::Text,
        "10%",
        "How many nodes may be in the middle of a change at a time when it rolls: a number or a percentage",
    ),
    Row::new(
        "syncer.restart_policy",
        Some("restart-policy"),
        Kind::Text,
        "always",
        "Whether the syncer restarts the kubelet, `always` or `never`: without, it takes a change by itself in 5 minutes",
    ),
    Row::new(
        "conflict_policy",
        Some("conflict-policy"),
        Kind::Text,
        "additional-wins",
        "Who wins where both name a registry, `additional-wins` or `original-wins`",
    ),
    Row::new(
        "protected_prefix",
        Some("protected-prefix"),
        Kind::Text,
        "",
        "A registry, or a part of one, in which only the original has a say; repeat the flag, or part by commas",
    ),
    Row::new(
        "invalid_entries",
        Some("invalid-entries"),
        Kind::Text,
        "reject-all",
        "What a bad entry does: `reject-all` refuses its Secret, `skip` leaves the entry out",
    ),
    Row::new(
        "labelled_additional",
        Some("labelled-additional"),
        Kind::Switch,
        "false",
        "Take Secrets with the label hypershift.openshift.io/additional-pull-secret=true too; needs to list Secrets",
    ),
    Row::new(
        "probe.credentials",
        Some("probe-credentials"),
        Kind::Text,
        "off",
        "Ask registries whether they take a new credential before it is rolled out: `off`; `warn` tells what they say; \
         `block` also holds back what they refuse",
    ),
    Row::new(
        "probe.deny",
        Some("probe-deny"),
        Kind::Text,
        "",
        "A host that is never asked, nor any below it; repeat the flag, or part by commas",
    ),
    Row::new(
        "probe.allow_private",
        Some("probe-allow-private"),
        Kind::Switch,
        "false",
        "Ask registries at private and loopback addresses too: admins of the hosted cluster then reach them from here",
    ),
    Row::new(
        "probe.ca_file",
        Some("probe-ca-file"),
        Kind::Path,
        "",
        "Certificates (PEM) of further authorities that registries may be vouched for by",
    ),
    Row::new("probe.timeout", Some("probe-timeout"), Kind::Duration, "10s", "Asking one registry may take so long"),
    Row::new(
        "rollout",
        Some("rollout"),
        Kind::Text,
        "immediate",
        "How a change comes to the nodes: `immediate` to all at once, `rolling` by new Pods step by step",
    ),
    Row::new(
        "settle",
        Some("settle"),
        Kind::Duration,
        "20s",
        "With `rollout immediate`: a Pod that is ready so long after a change has it",
    ),
    Row::new(
        "node_deadline",
        Some("node-deadline"),
        Kind::Duration,
        "10m",
        "Nodes that take longer are named in the condition Degraded",
    ),
    Row::new(
        "cleanup_deadline",
        Some("cleanup-deadline"),
        Kind::Duration,
        "10m",
        "So long nodes may take to come back to the original before everything is removed all the same",
    ),
    Row::new("call_timeout", None, Kind::Duration, "10s", "One request may take so long"),
    Row::new("log.level", Some("log-level"), Kind::Text, "info", "`error`, `warn`, `info` or `debug`"),
    Row::new("log.format", Some("log-format"), Kind::Text, "json", "`json` or `text`"),
    Row::new("health.host", Some("health-host"), Kind::Text, "127.0.0.1", "Where /healthz and /readyz are"),
    Row::new("health.port", Some("health-port"), Kind::Number, "8080", "The port; 0 takes a free one"),
    Row::new("metrics.host", Some("metrics-host"), Kind::Text, "127.0.0.1", "Where /metrics is"),
    Row::new("metrics.port", Some("metrics-port"), Kind::Number, "9090", "The port; 0 takes a free one"),
];
