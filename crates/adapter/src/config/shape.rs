//! Declares the `AdapterConfig`: the specification's keys, and those that the specification leaves open.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use daemon::settings::Row;
use daemon::settings::common::{self, Address, Log};
use daemon::settings::traces::Tracing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::broker::Broker;
use super::secret_store::SecretStore;
use crate::binding::{Binding, ValueSource};

daemon::settings! {
    /// An adapter's configuration.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Config {
        /// `hyperfleet.redhat.com/v1alpha1`
        pub api_version: String = Row::at("apiVersion").no_variable().required(),
        /// `AdapterConfig`
        pub kind: String = Row::at("kind").no_variable().required(),
        /// Name and namespace of the adapter
        pub metadata: Metadata = Row::at("metadata"),
        /// The adapter's work
        pub spec: Spec,
        /// The log
        pub log: Log,
        /// Traces
        pub tracing: Tracing,
        /// Address of probes
        pub health: Address = common::HEALTH,
        /// Address of metrics
        pub metrics: Address = common::METRICS,
    }
}

/// Name and namespace of an adapter.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// Name of the adapter in Events and in User-Agent.
    pub name: String,
    /// Namespace that its Jobs run in.
    pub namespace: String,
    /// Labels without effect, for the reader.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

daemon::settings! {
    /// The adapter's work.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Spec {
        /// Name by which the API knows the adapter's reports; `pullsecret` has everything else built in
        pub adapter_type: String = Row::at("spec.adapterType").no_variable().required(),
        /// Resources to work on, by their plural in the API's paths
        pub resource_type: String = Row::at("spec.resourceType").default("clusters"),
        /// Preconditions and dependencies of a run
        #[serde(default)]
        pub criteria: Criteria = Row::at("spec.criteria"),
        /// The HyperFleet API
        #[serde(rename = "hyperfleetAPI")]
        pub hyperfleet_api: Api,
        /// The message broker
        pub broker: Broker,
        /// The Kubernetes cluster that Jobs run in
        pub kubernetes: Kubernetes,
        /// Template of the adapter's Jobs
        pub job_template: JobTemplate,
        /// Secret that a run reads
        #[serde(default)]
        pub input: Option<Input> = Row::at("spec.input"),
        /// Secret that a run applies, watched for drift
        #[serde(default)]
        pub output: Option<Output> = Row::at("spec.output"),
        /// Secret store of the pull secrets
        pub secret_store: SecretStore,
        /// Allowed destinations of pull secrets: a run starts only if a rule allows its project (in OpenBao, Vault or AWS its
        /// folder), and one its namespace; without this list every destination is allowed
        #[serde(default)]
        pub destinations: Option<Vec<Destination>> = Row::at("spec.destinations"),
        /// Limits of concurrent work
        pub limits: Limits,
        /// Intervals of retries
        pub retry: Retry,
        /// The check of the secret stores
        pub store_check: StoreCheck,
    }
}

/// Preconditions and dependencies of a run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Criteria {
    /// Expressions that must be true before a run.
    #[serde(default)]
    pub preconditions: Option<Vec<Expression>>,
    /// Adapters that must report the resource as available before a run.
    #[serde(default)]
    pub dependencies: Option<Vec<String>>,
}

/// One precondition.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expression {
    /// Such as `spec.provider == "gcp"`.
    pub expression: String,
}

daemon::settings! {
    /// The client of the HyperFleet API.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Api {
        /// Address of the HyperFleet API: `http://HOST:PORT`
        #[serde(default)]
        pub url: Option<String> = Row::at("spec.hyperfleetAPI.url")
            .flag("hyperfleet-api-base-url")
            .variable("HYPERFLEET_API_BASE_URL")
            .required(),
        /// Maximum time of a request
        #[schemars(with = "String")]
        pub timeout: Duration = Row::at("spec.hyperfleetAPI.timeout")
            .flag("hyperfleet-api-timeout")
            .variable("HYPERFLEET_API_TIMEOUT")
            .default("10s"),
        /// File with the bearer token
        #[serde(default)]
        pub token_path: Option<PathBuf> =
            Row::at("spec.hyperfleetAPI.tokenPath").variable("HYPERFLEET_API_AUTH_TOKEN_PATH"),
        /// Certificate authorities to trust, PEM
        #[serde(default)]
        pub ca_file: Option<PathBuf> = Row::at("spec.hyperfleetAPI.caFile").variable("HYPERFLEET_API_CA_FILE"),
        /// The one host, beside this machine, to which the token may be sent over plain HTTP
        #[serde(default)]
        pub plain_http_host: Option<String> =
            Row::at("spec.hyperfleetAPI.plainHttpHost").variable("HYPERFLEET_API_PLAIN_HTTP_HOST"),
        /// Form of reports: `PUT`, `POST`, or `PUT` with a fallback to `POST` where the API refuses it
        pub report_method: Method = Row::at("spec.hyperfleetAPI.reportMethod")
            .variable("HYPERFLEET_API_REPORT_METHOD")
            .default("auto"),
    }
}

daemon::choices! {
    /// Form of reports.
    #[derive(JsonSchema)]
    pub enum Method {
        /// `PUT`, and where the API refuses it `POST`.
        Auto = "auto",
        /// `PUT` in `snake_case`.
        Put = "put",
        /// `POST` in camelCase.
        Post = "post",
    }
}

daemon::settings! {
    /// The Kubernetes cluster that Jobs run in.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Kubernetes {
        /// Kubeconfig of the cluster that Jobs run in
        #[serde(default)]
        pub kubeconfig: Option<PathBuf> = Row::at("spec.kubernetes.kubeconfig")
            .flag("kubeconfig")
            .variable("HYPERFLEET_KUBERNETES_KUBE_CONFIG_PATH")
            .unset("the Pod's service account, else the user's kubeconfig"),
        /// Context of the kubeconfig
        #[serde(default)]
        pub context: Option<String> = Row::at("spec.kubernetes.context"),
        /// Maximum time of a request to Kubernetes
        #[schemars(with = "String")]
        pub timeout: Duration = Row::at("spec.kubernetes.timeout").default("10s"),
        /// Lease that elects the replica which reports finished Jobs; without it every replica reports them
        #[serde(default)]
        pub lease: Option<String> = Row::at("spec.kubernetes.lease"),
        /// Holder identity in the Lease, such as the Pod's name
        #[serde(default)]
        pub identity: Option<String> = Row::at("spec.kubernetes.identity")
            .variable("HYPERFLEET_KUBERNETES_IDENTITY")
            .unset("generated"),
        /// Service account of this adapter, `NAMESPACE/NAME`: with it, the adapter grants itself and its Jobs access to the Secret
        /// that a run applies; without it, that access must have been granted
        #[serde(default)]
        pub service_account: Option<String> = Row::at("spec.kubernetes.serviceAccount"),
    }
}

daemon::settings! {
    /// Template of the adapter's Jobs.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct JobTemplate {
        /// Image of the Jobs
        #[serde(default)]
        pub image: Option<String> =
            Row::at("spec.jobTemplate.image").flag("job-image").variable("HYPERFLEET_JOB_IMAGE"),
        /// Pull policy of the image
        #[serde(default)]
        pub image_pull_policy: Option<String> = Row::at("spec.jobTemplate.imagePullPolicy").no_variable(),
        /// Command, if not the image's own
        #[serde(default)]
        pub command: Option<Vec<String>> = Row::at("spec.jobTemplate.command"),
        /// Arguments of a run that creates or repairs
        #[serde(default)]
        pub args: Option<Vec<String>> = Row::at("spec.jobTemplate.args"),
        /// Arguments of a run that deletes; none where nothing has to be deleted
        #[serde(default)]
        pub delete_args: Option<Vec<String>> = Row::at("spec.jobTemplate.deleteArgs"),
        /// Value of the label `job-type`
        #[serde(default)]
        pub job_type: Option<String> = Row::at("spec.jobTemplate.jobType").no_variable().unset("the adapter's type"),
        /// Name of the container
        #[serde(default)]
        pub container_name: Option<String> = Row::at("spec.jobTemplate.containerName").no_variable(),
        /// Service account of the Pods: a name, in which `{id}` and `{adapter}` are replaced, or `from` a field that tells
        /// tenants apart, such as `metadata.tenancy.org`
        #[serde(default)]
        pub service_account_name: Option<ServiceAccount> = Row::at("spec.jobTemplate.serviceAccountName").no_variable(),
        /// Variables of the container
        #[serde(default)]
        pub env: Option<Vec<Binding>> = Row::at("spec.jobTemplate.env"),
        /// Resource requests and limits of the container
        #[serde(default)]
        pub resources: Option<Resources> = Row::at("spec.jobTemplate.resources"),
        /// Security context of the container, instead of the built-in one: not root, no privileges, read-only
        #[serde(default)]
        pub security_context: Option<Map<String, Value>> = Row::at("spec.jobTemplate.securityContext"),
        /// Further members of the Pod's spec, such as `tolerations` or `nodeSelector`
        #[serde(default)]
        pub pod_spec: Option<Map<String, Value>> = Row::at("spec.jobTemplate.podSpec"),
        /// Further volumes of the Pod
        #[serde(default)]
        pub volumes: Option<Vec<Value>> = Row::at("spec.jobTemplate.volumes"),
        /// Mounts of these volumes in the container
        #[serde(default)]
        pub volume_mounts: Option<Vec<Value>> = Row::at("spec.jobTemplate.volumeMounts"),
        /// Maximum number of retries by further Pods after a transient failure
        pub backoff_limit: u32 = Row::at("spec.jobTemplate.backoffLimit").default("3"),
        /// Time after which a running Job has failed
        #[schemars(with = "String")]
        pub active_deadline: Duration = Row::at("spec.jobTemplate.activeDeadline").default("30m").least("1s"),
        /// Time that a finished Job is kept; it must suffice to read the Job's result
        #[schemars(with = "String")]
        pub keep_finished: Duration = Row::at("spec.jobTemplate.keepFinished").default("1h").least("1m"),
        /// Exit codes after which a retry cannot help
        #[serde(default)]
        pub permanent_exit_codes: Option<Vec<i32>> = Row::at("spec.jobTemplate.permanentExitCodes"),
    }
}

/// The service account of a Job's Pods.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ServiceAccount {
    /// A name with placeholders.
    Name(String),
    /// The value of a field of the resource.
    Field(ValueSource),
}

/// Resource requests and limits of a container.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// Resources that are reserved.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// Resources that must not be exceeded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

/// The Secret that a run reads: a copy of the resource's pull secret, which exists only during the run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Input {
    /// Key of the content in the Secret.
    pub key: String,
    /// Path that the Secret is mounted at.
    pub mount_path: String,
    /// Namespaces in which `spec.pullSecret.secretRef` may name a Secret; without any, none. The Secret must allow the cluster
    /// by its annotation `hyperfleet.io/allowed-clusters`.
    pub secret_namespaces: Vec<String>,
}

impl Default for Input {
    /// The Job's own: `PULL_SECRET_FILE` points to the key.
    fn default() -> Self {
        Self {
            key: "pullsecret".to_owned(),
            mount_path: "/var/run/pull-secret".to_owned(),
            secret_namespaces: Vec::new(),
        }
    }
}

/// A rule that allows destinations of pull secrets. In patterns, `*` stands for any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Destination {
    /// Tenancy that a resource must have for the rule to apply; without any, the rule is for all resources.
    pub tenancy: BTreeMap<String, String>,
    /// Patterns of Google Cloud projects.
    pub projects: Vec<String>,
    /// Patterns of folders in OpenBao, Vault or AWS, such as `tenants/acme/*`.
    pub folders: Vec<String>,
    /// Patterns of namespaces in the management cluster.
    pub namespaces: Vec<String>,
}

/// The Secret that a run applies.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    /// Namespace of the Secret.
    pub namespace: ValueSource,
    /// Name of the Secret.
    pub name: ValueSource,
}

daemon::settings! {
    /// Limits of concurrent work.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Limits {
        /// Maximum number of resources that are reconciled at once
        pub concurrency: u16 = Row::at("spec.limits.concurrency").default("32").within("1", "1000"),
        /// Variable of the Job that names the project whose quota runs are counted against
        #[serde(default)]
        pub project_variable: Option<String> = Row::at("spec.limits.projectVariable").no_variable(),
        /// Maximum number of writes in any minute that runs cause in one project, whichever replica has started them; 0 is no
        /// limit
        pub writes_per_minute: u32 = Row::at("spec.limits.writesPerMinute").default("600"),
        /// Number of writes that a run is expected to need; what its Job reports replaces it
        pub writes_per_run: u32 = Row::at("spec.limits.writesPerRun").default("4").least("1"),
        /// Maximum number of concurrent runs in one project; 0 is no limit
        pub runs_per_project: u32 = Row::at("spec.limits.runsPerProject").default("100"),
        /// Label metrics with `cluster_id`: one series per cluster, for small fleets only
        pub cluster_id_label: bool = Row::at("spec.limits.clusterIdLabel").default("false"),
    }
}

daemon::settings! {
    /// Intervals of retries.
    #[derive(Copy, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Retry {
        /// Time until a run is repeated after a transient failure; doubles each time, up to an hour
        #[schemars(with = "String")]
        pub transient_after: Duration = Row::at("spec.retry.transientAfter").default("1m").least("1s"),
        /// Time until a run is repeated after a permanent failure, in case its cause has been removed
        #[schemars(with = "String")]
        pub permanent_after: Duration = Row::at("spec.retry.permanentAfter").default("30m"),
    }
}

daemon::settings! {
    /// The check of stored pull secrets against what was reported.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct StoreCheck {
        /// Time between two checks of all stored pull secrets, with a jitter of a tenth; `0s` switches them off
        #[schemars(with = "String")]
        pub interval: Duration = Row::at("spec.storeCheck.interval").default("1h"),
        /// Time after a run in which its secret is not checked, as the lists of the store may lag
        #[schemars(with = "String")]
        pub settle: Duration = Row::at("spec.storeCheck.settle").default("10m"),
        /// Maximum number of secrets and versions that are read one by one per minute, in all projects together
        pub reads_per_minute: u32 = Row::at("spec.storeCheck.readsPerMinute").default("60").within("1", "60000"),
        /// Maximum number of repairs that checks begin per minute
        pub repairs_per_minute: u32 = Row::at("spec.storeCheck.repairsPerMinute").default("60").within("1", "60000"),
        /// Another address of Secret Manager (a private endpoint); https, or http to this machine
        #[serde(default)]
        pub endpoint: Option<String> = Row::at("spec.storeCheck.endpoint"),
    }
}

daemon::file_only!(Metadata, Criteria, Resources, Input, Output, Destination, ServiceAccount);
