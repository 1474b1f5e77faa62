//! The table of all settings.

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its flag, without the dashes.
    pub flag: &'static str,
    /// Its variable.
    pub variable: &'static str,
    /// What its value looks like.
    pub value: &'static str,
    /// What holds when nothing is given; empty where that is nothing.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

const fn row(
    flag: &'static str,
    variable: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { flag, variable, value, default, help }
}

/// All settings, in the order of the help.
pub const SETTINGS: &[Setting] = &[
    row(
        "from-files",
        "SYNC_FROM_FILES",
        "FOLDER",
        "",
        "Read the credentials from mounted Secrets, without any access \
         to the API server: FOLDER/global/.dockerconfigjson, and FOLDER/original/.dockerconfigjson while the first is \
         missing or empty. A file `revision` beside them names their revision",
    ),
    row(
        "secret",
        "SYNC_SECRET",
        "NAMESPACE/NAME",
        "kube-system/global-pull-secret",
        "Watch this Secret through the API \
         server. Needed: get, list and watch on secrets with that resourceName. Its key `revision` names its revision",
    ),
    row(
        "api-server",
        "SYNC_API_SERVER",
        "URL",
        "",
        "The API server, such as https://10.0.0.1:6443; without it, the one \
         that Kubernetes names to pods (KUBERNETES_SERVICE_HOST). http:// is taken for loopback only",
    ),
    row(
        "api-authority",
        "SYNC_API_AUTHORITY",
        "FILE",
        "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
        "The \
         certificates that sign the API server's, as PEM",
    ),
    row(
        "api-token",
        "SYNC_API_TOKEN",
        "FILE",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "The file with \
         the token, read anew for every request",
    ),
    row(
        "kubelet-file",
        "SYNC_KUBELET_FILE",
        "FILE",
        "/var/lib/kubelet/config.json",
        "The kubelet's credential file. \
         Its state is kept in the folder `global-pull-secret` beside it",
    ),
    row(
        "foreign-entries",
        "SYNC_FOREIGN_ENTRIES",
        "keep|remove",
        "keep",
        "What happens to entries that somebody else \
         has put into the kubelet's file",
    ),
    row("unit", "SYNC_UNIT", "NAME", "kubelet.service", "The kubelet's unit in systemd"),
    row("bus", "DBUS_SYSTEM_BUS_ADDRESS", "ADDRESS", "unix:path=/var/run/dbus/system_bus_socket", "The system's D-Bus"),
    row(
        "restart-policy",
        "SYNC_RESTART_POLICY",
        "always|never",
        "always",
        "Whether the kubelet is restarted on a \
         change. It rereads the file by itself within 5 minutes; only a restart shows at once, and whether it works",
    ),
    row("restart-timeout", "SYNC_RESTART_TIMEOUT", "TIME", "90s", "How long a restart may take"),
    row("stable-for", "SYNC_STABLE_FOR", "TIME", "10s", "How long the kubelet must stay up after a restart"),
    row(
        "retry-failed-after",
        "SYNC_RETRY_FAILED_AFTER",
        "TIME",
        "10m",
        "When credentials that were taken back are tried \
         again; twice as long each time, up to twelve times as long",
    ),
    row("revision", "SYNC_REVISION", "NAME", "", "Be ready only when the credentials of this revision are applied"),
    row(
        "only-this-revision",
        "SYNC_ONLY_THIS_REVISION",
        "true|false",
        "false",
        "Leave credentials of other revisions \
         alone, so that a DaemonSet's rolling update decides which node gets them when",
    ),
    row(
        "socket",
        "SYNC_SOCKET",
        "FILE",
        "",
        "The Unix socket of health, status and metrics; without it, `socket` in the \
         folder of the state",
    ),
    row("listen", "SYNC_LISTEN", "ADDRESS", "", "Answer on this loopback address too, such as 127.0.0.1:9110"),
    row(
        "termination-log",
        "SYNC_TERMINATION_LOG",
        "FILE",
        "/dev/termination-log",
        "Where the last status is left for \
         Kubernetes, if the file is there",
    ),
    row(
        "log-level",
        "SYNC_LOG_LEVEL",
        "LEVEL",
        "info",
        "The least severe level that is logged: error, warn, info, debug",
    ),
    row("log-format", "SYNC_LOG_FORMAT", "json|text", "json", "How log lines look"),
];
