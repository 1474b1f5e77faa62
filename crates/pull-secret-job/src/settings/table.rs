//! Every setting of the Job, once: flags, `--help` and the reference page are made from this table.

/// One setting.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// The environment variable; `None` for what only a person on a command line asks for.
    pub variable: Option<&'static str>,
    /// The flag, without its dashes; `None` for credentials, which must not show in a process list.
    pub flag: Option<&'static str>,
    /// What a value looks like; empty for a switch.
    pub value: &'static str,
    /// The value where none is given, for people.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

const fn both(variable: &'static str, flag: &'static str) -> Setting {
    Setting { variable: Some(variable), flag: Some(flag), value: "", default: "", help: "" }
}

const fn variable(name: &'static str) -> Setting {
    Setting { variable: Some(name), flag: None, value: "", default: "", help: "" }
}

const fn flag(name: &'static str) -> Setting {
    Setting { variable: None, flag: Some(name), value: "", default: "", help: "" }
}

impl Setting {
    const fn value(self, value: &'static str) -> Self {
        Self { value, ..self }
    }

    const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// Whether the flag takes no value.
    pub fn is_switch(&self) -> bool {
        self.value.is_empty()
    }

    /// The setting's name in messages.
    pub fn name(&self) -> String {
        self.variable.map_or_else(|| format!("--{}", self.flag.unwrap_or_default()), str::to_owned)
    }
}

/// Declares settings together with the list of them.
macro_rules! settings {
    ($($constant:ident = $setting:expr;)+) => {
        $(
            #[doc = concat!("The setting `", stringify!($constant), "`; see its `help`.")]
            pub const $constant: Setting = $setting;
        )+
        /// All settings, in the order of `--help`.
        pub const SETTINGS: &[Setting] = &[$($constant,)+];
    };
}

settings! {
    CLUSTER_ID = both("CLUSTER_ID", "cluster-id").value("ID").default("required")
        .help("The cluster whose pull secret it is: a DNS-1123 label");
    CLUSTER_NAME = both("CLUSTER_NAME", "cluster-name").value("NAME")
        .help("The cluster's name, written as a label for people");
    GCP_PROJECT_ID = both("GCP_PROJECT_ID", "gcp-project-id").value("PROJECT").default("required")
        .help("The Google Cloud project that the secret rests in");
    GCP_LOCATION = both("GCP_LOCATION", "gcp-location").value("LOCATION").default("none: a global secret")
        .help("Keep a regional secret in this location");
    SECRET_NAME = both("SECRET_NAME", "secret-name").value("NAME").default("hyperfleet-{CLUSTER_ID}-pull-secret")
        .help("The secret's name: 1 to 255 of A-Z, a-z, 0-9, '_' and '-'");
    PULL_SECRET_FILE = both("PULL_SECRET_FILE", "pull-secret-file").value("FILE")
        .help("The file that holds the pull secret (Docker config JSON); better than PULL_SECRET_DATA");
    PULL_SECRET_DATA = variable("PULL_SECRET_DATA").value("JSON")
        .help("The pull secret itself (Docker config JSON)");
    FAKE_PULL_SECRET = flag("fake-pull-secret")
        .help("Store the specification's fake pull secret; for tests only");
    GENERATION = both("GENERATION", "generation").value("NUMBER").default("none: no ordering of runs")
        .help("The generation of the cluster's specification that the pull secret is from; an older one never \
               replaces a newer one");
    SECRET_LABELS = both("SECRET_LABELS", "secret-labels").value("KEY=VALUE,…")
        .help("Further labels for the secret");
    REPLICATION_POLICY = both("REPLICATION_POLICY", "replication-policy").value("POLICY").default("automatic")
        .help("Where a new secret's content rests: automatic[=KMS_KEY], or user-managed:LOCATION[=KMS_KEY],…; with \
               GCP_LOCATION: regional[=KMS_KEY]");
    RETAIN_VERSIONS = both("RETAIN_VERSIONS", "retain-versions").value("COUNT").default("3")
        .help("How many of the versions that this project added are kept, the current one included; older ones are \
               destroyed after success; 0 keeps all");
    ALWAYS_ADD_VERSION = both("ALWAYS_ADD_VERSION", "always-add-version").default("false")
        .help("Add a version even where the newest one holds the same pull secret");
    DIGEST_KEY_FILE = both("DIGEST_KEY_FILE", "digest-key-file").value("FILE").default("none: no digest")
        .help("The file that holds the key (32 bytes or more) of the digests written to annotations and results");
    MANAGEMENT_NAMESPACE = both("MANAGEMENT_NAMESPACE", "management-namespace").value("NAMESPACE")
        .default("none: the Kubernetes phase is skipped")
        .help("The namespace that HyperShift reads the pull secret from; needs CLUSTER_NAME too");
    K8S_SECRET_NAME = both("K8S_SECRET_NAME", "k8s-secret-name").value("NAME").default("{CLUSTER_ID}-pull-secret")
        .help("The name of the Kubernetes Secret");
    MANAGEMENT_KUBECONFIG = both("MANAGEMENT_KUBECONFIG", "management-kubeconfig").value("FILE")
        .default("the pod's service account, else the user's kubeconfig")
        .help("A kubeconfig for a management cluster that is not the one the Job runs in");
    MANAGEMENT_CONTEXT = both("MANAGEMENT_CONTEXT", "management-context").value("CONTEXT")
        .default("the kubeconfig's current context")
        .help("The context of the kubeconfig to use");
    K8S_API_TIMEOUT = both("K8S_API_TIMEOUT", "k8s-api-timeout").value("DURATION").default("30s")
        .help("How long one call to Kubernetes may take");
    ADOPT = flag("adopt")
        .help("Take over a Kubernetes Secret of that name that is not this cluster's");
    PRINT_HOSTED_CLUSTER_PATCH = flag("print-hosted-cluster-patch")
        .help("Print the patch that makes a HostedCluster use the Kubernetes Secret, and do nothing else");
    DELETE = flag("delete")
        .help("Delete the secret with all its versions; needs no pull secret; one that is not there is a success");
    DRY_RUN = flag("dry-run")
        .help("Look, check permissions and conflicts for real, print what would be done, change nothing");
    TRACEPARENT = variable("TRACEPARENT").value("TRACEPARENT")
        .help("The trace that the run belongs to, in the W3C's form; its id is in every line of the log; one that is malformed is \
               ignored");
    LOG_LEVEL = both("LOG_LEVEL", "log-level").value("LEVEL").default("info")
        .help("error, warn, info or debug");
    LOG_FORMAT = both("LOG_FORMAT", "log-format").value("FORMAT").default("json")
        .help("json, or text for people");
    GCP_API_TIMEOUT = both("GCP_API_TIMEOUT", "gcp-api-timeout").value("DURATION").default("30s")
        .help("How long one call may take, fetching a token included");
    RUN_TIMEOUT = both("RUN_TIMEOUT", "run-timeout").value("DURATION").default("300s")
        .help("How long the whole run may take");
    RESULTS_PATH = both("RESULTS_PATH", "results-path").value("FILE").default("/results/adapter-result.json where that folder exists")
        .help("Where the result goes, in the format of HyperFleet's status-reporter");
    TERMINATION_LOG_PATH = both("TERMINATION_LOG_PATH", "termination-log-path").value("FILE").default("/dev/termination-log")
        .help("Where the result goes as the container's termination message, if that file exists");
    SECRET_MANAGER_EMULATOR_HOST = both("SECRET_MANAGER_EMULATOR_HOST", "secret-manager-emulator-host").value("HOST:PORT")
        .help("Use an emulator there: plain HTTP, no identity");
    GCP_SECRET_MANAGER_ENDPOINT = both("GCP_SECRET_MANAGER_ENDPOINT", "gcp-secret-manager-endpoint").value("URL").default("https://secretmanager.googleapis.com, or the location's own")
        .help("Another address of Secret Manager (a private endpoint); https, or http to this machine");
}
