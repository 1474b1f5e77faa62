//! The table of the node syncer's settings; `docs/reference/node-syncer.md` and the help are generated from it.

use daemon::settings::{Kind, Row, Table};

/// All settings, in the order of the help.
pub const TABLE: Table =
    Table { variable: |path| daemon::settings::variable("SYNC", path), families: &["SYNC_"], ..Table::of(SETTINGS) };

/// Durations have an upper bound, so that arithmetic with them cannot overflow.
const LONGEST: &str = "2400h";

/// The rows of the table.
pub const SETTINGS: &[Row] = &[
    Row::at("from_files").flag("from-files").of(Kind::Path).placeholder("FOLDER").help(
        "Read the credentials from mounted Secrets, without any access to the API server: FOLDER/global/.dockerconfigjson, \
         and FOLDER/original/.dockerconfigjson while the first is missing or empty. A file `revision` beside them names \
         their revision",
    ),
    Row::at("secret").flag("secret").placeholder("NAMESPACE/NAME").default("kube-system/global-pull-secret").help(
        "Secret to watch through the API server. Needed: get, list and watch on secrets with that resourceName. Its key \
         `revision` names its revision",
    ),
    Row::at("api_server").flag("api-server").placeholder("URL").unset("the one that Kubernetes names to Pods").help(
        "Address of the API server, such as https://10.0.0.1:6443; http:// is accepted for loopback only",
    ),
    Row::at("api_authority")
        .flag("api-authority")
        .of(Kind::Path)
        .placeholder("FILE")
        .default("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
        .help("Certificate authorities of the API server, PEM"),
    Row::at("api_token")
        .flag("api-token")
        .of(Kind::Path)
        .placeholder("FILE")
        .default("/var/run/secrets/kubernetes.io/serviceaccount/token")
        .help("File with the token, read again for every request"),
    Row::at("kubelet_file")
        .flag("kubelet-file")
        .of(Kind::Path)
        .placeholder("FILE")
        .default("/var/lib/kubelet/config.json")
        .help(
            "Credential file of the kubelet. The syncer's state is stored in the folder `global-pull-secret` beside it",
        ),
    Row::at("unmanaged_entries").flag("unmanaged-entries").of(Kind::Choice(&[&["keep"], &["remove"]])).default("keep").help(
        "Treatment of entries that other programs have written to the kubelet's file",
    ),
    Row::at("unit").flag("unit").placeholder("NAME").default("kubelet.service").help("systemd unit of the kubelet"),
    Row::at("bus")
        .flag("bus")
        .variable("DBUS_SYSTEM_BUS_ADDRESS")
        .placeholder("ADDRESS")
        .default("unix:path=/var/run/dbus/system_bus_socket")
        .help("Address of the system's D-Bus"),
    Row::at("restart_policy").flag("restart-policy").of(Kind::Choice(&[&["always"], &["never"]])).default("always").help(
        "Restart of the kubelet after a change. The kubelet rereads the file within 5 minutes; only a restart applies it at \
         once and shows that it works",
    ),
    Row::at("restart_timeout")
        .flag("restart-timeout")
        .of(Kind::Duration)
        .default("90s")
        .within("1ms", LONGEST)
        .help("Maximum time of a restart"),
    Row::at("stable_for")
        .flag("stable-for")
        .of(Kind::Duration)
        .default("10s")
        .within("1ms", LONGEST)
        .help("Time that the kubelet must stay up after a restart"),
    Row::at("retry_failed_after")
        .flag("retry-failed-after")
        .of(Kind::Duration)
        .default("10m")
        .within("1ms", LONGEST)
        .help("Time until credentials that were rolled back are retried; doubles each time, up to twelve times as long"),
    Row::at("revision")
        .flag("revision")
        .placeholder("NAME")
        .help("Report ready only when the credentials of this revision are applied"),
    Row::at("only_this_revision").flag("only-this-revision").of(Kind::Switch).default("false").help(
        "Ignore credentials of other revisions, so that a DaemonSet's rolling update stages the change",
    ),
    Row::at("confirm_in").flag("confirm-in").placeholder("NAMESPACE/NAME").help(
        "ConfigMap in which each applied revision is confirmed, under the node's name. Needed: patch on configmaps with that \
         resourceName",
    ),
    Row::at("node").flag("node").placeholder("NAME").help("Name of this node in confirmations"),
    Row::at("pod").flag("pod").placeholder("NAME").help("Name of this Pod in confirmations"),
    Row::at("socket")
        .flag("socket")
        .of(Kind::Path)
        .placeholder("FILE")
        .unset("`socket` in the folder of the state")
        .help("Unix socket of health, status and metrics"),
    Row::at("listen")
        .flag("listen")
        .placeholder("ADDRESS")
        .help("Loopback address that serves the same, such as 127.0.0.1:9110"),
    Row::at("metrics_listen")
        .flag("metrics-listen")
        .placeholder("ADDRESS")
        .help("Address that serves the metrics and nothing else, for the network, such as 10.0.0.1:9110"),
    Row::at("termination_log")
        .flag("termination-log")
        .of(Kind::Path)
        .placeholder("FILE")
        .default("/dev/termination-log")
        .help("File that the last status is written to for Kubernetes, if it exists"),
    Row::at("log.level")
        .flag("log-level")
        .variable("LOG_LEVEL")
        .or_variables(&["SYNC_LOG_LEVEL"])
        .of(Kind::Choice(&[&["error"], &["warn"], &["info"], &["debug"]]))
        .default("info")
        .help("Least severe level that is logged"),
    Row::at("log.format")
        .flag("log-format")
        .variable("LOG_FORMAT")
        .or_variables(&["SYNC_LOG_FORMAT"])
        .of(Kind::Choice(&[&["json"], &["text"]]))
        .default("json")
        .help("Form of log lines: `json` for programs, `text` for people"),
];
