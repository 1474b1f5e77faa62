//! The shape of the `AdapterConfig`: the specification's, and what it is silent about.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::broker::Broker;
use crate::binding::{Binding, ValueSource};

/// An adapter's configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// `hyperfleet.redhat.com/v1alpha1`.
    pub api_version: String,
    /// `AdapterConfig`.
    pub kind: String,
    /// What the adapter is called, and where it works.
    pub metadata: Metadata,
    /// What it does.
    pub spec: Spec,
}

/// What the adapter is called, and where it works.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// What it calls itself.
    pub name: String,
    /// The namespace that its Jobs run in.
    pub namespace: String,
    /// For people.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// What the adapter does.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// By what name the API knows its reports. For `pullsecret`, everything that is not given here is built in.
    pub adapter_type: String,
    /// What it works on, as the API's paths have it.
    pub resource_type: String,
    /// When it works.
    #[serde(default)]
    pub criteria: Criteria,
    /// The HyperFleet API.
    #[serde(rename = "hyperfleetAPI")]
    pub hyperfleet_api: Api,
    /// The message broker.
    pub broker: Broker,
    /// The Kubernetes that Jobs run in.
    pub kubernetes: Kubernetes,
    /// What its Jobs look like.
    pub job_template: JobTemplate,
    /// The Secret that a run reads.
    #[serde(default)]
    pub input: Option<Input>,
    /// The Secret that a run leaves behind, watched for drift.
    #[serde(default)]
    pub output: Option<Output>,
    /// How much at once.
    pub limits: Limits,
    /// When failed runs are repeated.
    pub retry: Retry,
    /// The log.
    pub log: Logging,
    /// Where probes are answered.
    pub health: Address,
    /// Where metrics are served.
    pub metrics: Address,
}

/// When the adapter works.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Criteria {
    /// Expressions that must be true before a run.
    #[serde(default)]
    pub preconditions: Option<Vec<Expression>>,
    /// Adapters that must say that the resource is available before a run.
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

/// The HyperFleet API.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Api {
    /// Where it is: `http://HOST:PORT`.
    #[serde(default)]
    pub url: Option<String>,
    /// One request may take so long.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub timeout: Duration,
    /// The file with the bearer token.
    #[serde(default)]
    pub token_path: Option<PathBuf>,
    /// The certificate authorities to trust, PEM.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// How reports are sent.
    pub report_method: Method,
}

/// How reports are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// `PUT`, and where the API refuses it `POST`.
    Auto,
    /// `PUT` in `snake_case`.
    Put,
    /// `POST` in camelCase.
    Post,
}

/// The Kubernetes that Jobs run in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kubernetes {
    /// A kubeconfig; without one the pod's own service account.
    #[serde(default)]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig.
    #[serde(default)]
    pub context: Option<String>,
    /// One call may take so long.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub timeout: Duration,
    /// The Lease by which one of several replicas is chosen to report the ends of Jobs; without it each does.
    #[serde(default)]
    pub lease: Option<String>,
    /// Who claims the Lease, such as the pod's name.
    #[serde(default)]
    pub identity: Option<String>,
}

/// What the adapter's Jobs look like.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobTemplate {
    /// The image.
    #[serde(default)]
    pub image: Option<String>,
    /// When the image is pulled.
    #[serde(default)]
    pub image_pull_policy: Option<String>,
    /// The program, if not the image's own.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Its arguments in a run that makes or repairs.
    #[serde(default)]
    pub args: Option<Vec<String>>,
    /// Its arguments in a run that removes what others have made; none where nothing need be removed.
    #[serde(default)]
    pub delete_args: Option<Vec<String>>,
    /// What it is about, as the label `job-type`; the adapter's type if not given.
    #[serde(default)]
    pub job_type: Option<String>,
    /// The container's name.
    #[serde(default)]
    pub container_name: Option<String>,
    /// As whom it runs.
    #[serde(default)]
    pub service_account_name: Option<String>,
    /// Its variables.
    #[serde(default)]
    pub env: Option<Vec<Binding>>,
    /// What it may use.
    #[serde(default)]
    pub resources: Option<Resources>,
    /// The container's, in the place of the one built in: no root, no privileges, nothing writable.
    #[serde(default)]
    pub security_context: Option<Map<String, Value>>,
    /// Further members of the Pod's spec, such as `tolerations` or `nodeSelector`.
    #[serde(default)]
    pub pod_spec: Option<Map<String, Value>>,
    /// Further volumes of the Pod.
    #[serde(default)]
    pub volumes: Option<Vec<Value>>,
    /// Where the container mounts them.
    #[serde(default)]
    pub volume_mounts: Option<Vec<Value>>,
    /// So many more Pods are tried after one that failed for a reason that may pass.
    pub backoff_limit: u32,
    /// A Job that takes longer has failed.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub active_deadline: Duration,
    /// A Job that is over is kept so long.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub keep_finished: Duration,
    /// Exit codes after which another try cannot help.
    #[serde(default)]
    pub permanent_exit_codes: Option<Vec<i32>>,
}

/// What a container may use.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// What it is given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// What it must not exceed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

/// The Secret that a run reads: a copy of the resource's pull secret, for as long as the run takes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// Under which key the content is.
    pub key: String,
    /// Where the Secret is mounted.
    pub mount_path: String,
    /// The namespaces in which `spec.pullSecret.secretRef` may name a Secret; without any, only the adapter's own.
    #[serde(default)]
    pub secret_namespaces: Vec<String>,
}

/// The Secret that a run leaves behind.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Output {
    /// Its namespace.
    pub namespace: ValueSource,
    /// Its name.
    pub name: ValueSource,
}

/// How much at once.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// So many resources are worked on at once.
    pub concurrency: u16,
    /// The variable that names the project whose quota runs are counted against.
    #[serde(default)]
    pub project_variable: Option<String>,
    /// So many writes a minute this replica may cause in one project; 0 is no limit. Divide a project's quota by the number
    /// of replicas.
    pub writes_per_minute: u32,
    /// So many of them one run needs.
    pub writes_per_run: u32,
    /// So many runs may go on at once in one project; 0 is no limit.
    pub runs_per_project: u32,
    /// Whether metrics have the resource's id as a label: one series for each, so only in small fleets.
    pub cluster_id_label: bool,
}

/// When failed runs are repeated.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// So long after a failure that may pass; twice as long after each further one.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub transient_after: Duration,
    /// So long after one that needs somebody to change something.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub permanent_after: Duration,
}

/// The log.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Logging {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// `json` or `text`.
    pub format: String,
}

/// Where something is served.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Address {
    /// The host.
    pub host: String,
    /// The port; 0 takes a free one.
    pub port: u16,
}

/// A duration is milliseconds by the time that it gets here.
fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
