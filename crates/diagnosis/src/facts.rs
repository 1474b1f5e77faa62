//! Facts about a cluster, and the page that is derived from them.

use std::collections::BTreeMap;

use adapter::store_check::record::{Record, RecordedFinding};
use credentials::credential::Credential;
use fleet_model::condition::known_time;
use fleet_model::copy::{self, StoredCopy};
use fleet_model::names;
use hyperfleet_client::{Generation, Report, ReportedCondition, Resource, Status, Transition};
use jiff::{SignedDuration, Timestamp};
use kubernetes::{JobSummary, KubernetesError, LeaseSummary, PodSummary, SecretKey, SecretMetadata};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::copies::Copies;
use crate::credentials::CredentialsView;

/// Everything that was observed about a cluster.
#[derive(Debug, Default)]
pub struct Facts {
    /// The cluster's id.
    pub id: String,
    /// The adapter's preconditions, as expressions.
    pub preconditions: Vec<String>,
    /// The preconditions that are not met, in the adapter's wording.
    pub unmet: Vec<String>,
    /// `None` if the API says that there is no such cluster.
    pub cluster: Option<Resource>,
    /// The adapter's last report.
    pub report: Option<Report>,
    /// The times of the reports of all adapters.
    pub heartbeats: Vec<Heartbeat>,
    /// The time of the observation.
    pub now: Timestamp,
    /// The time that the adapter has to report a change before it counts as stalled.
    pub stale_after: SignedDuration,
    /// Transitions of the adapter's conditions, the newest first.
    pub history: Vec<Transition>,
    /// The state in Kubernetes.
    pub observed: Observed,
    /// The adapter's record of the last check of the secret stores.
    pub store_check: Observation<Option<Record>>,
    /// Its registry credentials in the ledger of the credentials service.
    pub credentials: Observation<Vec<Credential>>,
}

/// The times of an adapter's reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Heartbeat {
    /// Name of the adapter.
    pub adapter: String,
    /// Its condition `Available` of this cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<Status>,
    /// The reason of that condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Time of the last transition of that condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
    /// Time of its last report about this cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<Timestamp>,
    /// Time of its last report about any of the clusters on the first page of the API's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_any: Option<Timestamp>,
}

/// The state that was observed in Kubernetes.
#[derive(Debug, Default)]
pub struct Observed {
    /// Namespace and name of the Job.
    pub job_key: Option<(String, String)>,
    /// The Job.
    pub job: Observation<Option<JobSummary>>,
    /// The Job's pods.
    pub pods: Observation<Vec<PodSummary>>,
    /// The last line of the log of the Job's newest pod.
    pub last_line: Observation<Option<String>>,
    /// Warnings of Kubernetes about the Job and its newest pod.
    pub warnings: Observation<Vec<String>>,
    /// Namespace and name of the Secret.
    pub secret_key: Option<SecretKey>,
    /// The Secret, without its content.
    pub secret: Observation<Option<SecretMetadata>>,
    /// True if the namespace of the Secret exists; `None` if it may not be read.
    pub has_secret_namespace: Observation<Option<bool>>,
    /// The namespace of Jobs.
    pub namespace: String,
    /// True if that namespace exists; `None` if it may not be read.
    pub has_namespace: Observation<Option<bool>>,
    /// The Lease of the adapter's replicas.
    pub lease: Observation<Option<LeaseSummary>>,
}

/// The result of an observation that may not have been made.
#[derive(Debug, Default)]
pub enum Observation<T> {
    /// It was not observed.
    #[default]
    NotObserved,
    /// The observation failed, with this message.
    Failed(String),
    /// The observed value.
    Found(T),
}

/// The state of a cluster's pull secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The API does not know the cluster.
    Absent,
    /// The cluster is terminating.
    Deleting,
    /// A precondition is not met, or the adapter has not reported yet.
    Waiting,
    /// Nothing is missing, and the adapter does not report it: its last report is older than what was observed.
    Stalled,
    /// The adapter is reconciling it.
    Running,
    /// The last run failed.
    Failed,
    /// The pull secret is available, and every observation agrees.
    Available,
    /// The adapter reports it as available, and an observation contradicts that.
    Contradicted,
}

/// The state, its causes, and the next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The state.
    pub state: State,
    /// True if it is available at this generation and no observation contradicts that.
    pub agrees: bool,
    /// The causes, the most important one first.
    pub because: Vec<String>,
    /// The next step, where one can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The commands of the next step, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
}

/// The last change of what is desired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The time.
    pub time: Timestamp,
    /// The identity that made it, as the API shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The page about one cluster.
#[derive(Debug, Serialize)]
pub struct Page {
    /// The cluster's id.
    pub cluster: String,
    /// The name.
    pub name: String,
    /// The cluster's generation.
    pub generation: Generation,
    /// The last change of the cluster's spec, or its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Change>,
    /// The conclusion.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Time since which the reported reason holds, where the API knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_since: Option<Timestamp>,
    /// Time of the deletion request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted_time: Option<Timestamp>,
    /// The generation that the report observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_generation: Option<Generation>,
    /// Time of the last report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_time: Option<Timestamp>,
    /// The reported conditions.
    pub conditions: Vec<ReportedCondition>,
    /// The times of the reports of all adapters.
    pub adapters: Vec<Heartbeat>,
    /// The Lease of the adapter's replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseView>,
    /// The preconditions and their results.
    pub preconditions: Vec<Evaluation>,
    /// The Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobView>,
    /// The reported data about the stored secret.
    pub stored: Map<String, Value>,
    /// Both copies of a mirrored pull secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies: Option<Copies>,
    /// The digest of the desired pull secret, as the API shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desired_digest: Option<String>,
    /// The Kubernetes Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_secret: Option<SecretView>,
    /// The last check of the secret store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_check: Option<StoreCheckView>,
    /// The cluster's registry credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry_credentials: Option<CredentialsView>,
    /// The newest transitions.
    pub history: Vec<Transition>,
}

/// The last check of the secret store, as far as it concerns the cluster.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct StoreCheckView {
    /// `checked`, `never checked`, or the error of the observation.
    pub state: String,
    /// End of the last check of labels and records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_checked: Option<Timestamp>,
    /// End of the last round through the states of all versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_checked: Option<Timestamp>,
    /// The last finding about this cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<RecordedFinding>,
    /// The reason for which the store of the cluster's pull secret could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The Lease of the adapter's replicas.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct LeaseView {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The replica that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Time of the last renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Timestamp>,
}

/// A precondition and its result.
#[derive(Debug, Serialize)]
pub struct Evaluation {
    /// The expression.
    pub expression: String,
    /// `met`, `not met` or `cannot be answered`.
    pub verdict: &'static str,
    /// Every part of the expression with its value.
    pub values: Vec<String>,
    /// The parts that decided the result.
    pub because: Vec<String>,
}

/// The Job as Kubernetes shows it.
#[derive(Debug, Serialize)]
pub struct JobView {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// `running`, `complete`, `failed` with a reason, `not there`, or the error of the observation.
    pub state: String,
    /// Start time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// The pods.
    pub pods: Vec<PodView>,
    /// The last line of the newest pod's log, or the error of reading it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
    /// Warnings of Kubernetes about the Job and its newest pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A pod of the Job.
#[derive(Debug, Serialize)]
pub struct PodView {
    /// The name.
    pub name: String,
    /// The phase.
    pub phase: String,
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
    /// The exit code of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// The Kubernetes Secret without its content.
#[derive(Debug, Serialize)]
pub struct SecretView {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// `there`, `not there`, or the error of the observation.
    pub state: String,
    /// Creation time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
}

// === impl Facts ===

impl Facts {
    /// The places where the report says that the pull secret is, or is about to be.
    pub fn copies(&self) -> Vec<StoredCopy> {
        let listed = self.report.as_ref().and_then(|report| report.data.get(copy::MEMBER)?.as_array());
        let read = |listed: &Value| serde_json::from_value(listed.clone()).ok();
        listed.into_iter().flatten().filter_map(read).collect()
    }

    /// Returns true if the report names this copy as the one that the last successful run has stored.
    pub fn names_as_stored(&self, copy: &StoredCopy) -> bool {
        let is_stored = !matches!(copy, StoredCopy::KubernetesSecret { .. });
        is_stored && self.report.as_ref().is_some_and(|report| copy.is_written(&report.data) == Some(true))
    }
}

// === impl Heartbeat ===

impl Heartbeat {
    /// Takes the times from an adapter's report about a cluster.
    pub fn of(report: &Report) -> Self {
        let available = report.condition(names::condition::AVAILABLE);
        Self {
            adapter: report.adapter.clone(),
            available: available.map(|available| available.status),
            reason: available.and_then(|available| available.reason.clone()),
            message: available.and_then(|available| available.message.clone()),
            changed: available.and_then(|available| known_time(available.last_transition_time)),
            reported: known_time(report.last_report_time),
            reported_any: None,
        }
    }
}

// === impl Observation ===

impl<T> Observation<T> {
    /// The observed value, if there is one.
    pub fn found(&self) -> Option<&T> {
        if let Self::Found(found) = self { Some(found) } else { None }
    }
}

impl<T> From<Result<T, KubernetesError>> for Observation<T> {
    fn from(result: Result<T, KubernetesError>) -> Self {
        match result {
            Ok(found) => Self::Found(found),
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}
