//! What was found out about a cluster, and the page that is made of it.

use std::collections::BTreeMap;

use hyperfleet_client::{Condition, Resource, StatusItem, Transition};
use jiff::Timestamp;
use kubernetes::{JobSight, KubernetesError, PodSight, SecretKey, SecretSight};
use serde::Serialize;
use serde_json::{Map, Value};

/// All that was found out.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) id: String,
    /// What the adapter asks before it does anything.
    pub(crate) preconditions: Vec<String>,
    /// What of them the adapter awaits, in its own words.
    pub(crate) unmet: Vec<String>,
    /// `None` if the API says that there is no such cluster.
    pub(crate) cluster: Option<Resource>,
    /// The adapter's last report.
    pub(crate) report: Option<StatusItem>,
    /// Changes of what the adapter has found, the newest first.
    pub(crate) history: Vec<Transition>,
    pub(crate) seen: Seen,
}

/// What was seen in Kubernetes.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Namespace and name.
    pub(crate) job_key: Option<(String, String)>,
    pub(crate) job: Sight<Option<JobSight>>,
    pub(crate) pods: Sight<Vec<PodSight>>,
    pub(crate) secret_key: Option<SecretKey>,
    pub(crate) secret: Sight<Option<SecretSight>>,
}

/// Something that may not have been looked at.
#[derive(Debug, Default)]
pub(crate) enum Sight<T> {
    /// Nobody asked for it.
    #[default]
    NotLookedAt,
    /// It could not be seen, for this reason.
    Failed(String),
    /// This was seen.
    Seen(T),
}

/// How it is with the pull secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// There is no such cluster.
    Absent,
    /// The cluster's deletion was asked for.
    Deleting,
    /// A precondition is not met, or nobody has looked yet.
    Waiting,
    /// The adapter is at it.
    Running,
    /// The last run has failed.
    Failed,
    /// It is where it belongs, and all agree.
    Available,
    /// It is said to be available, and something contradicts that.
    Contradicted,
}

/// The state, why it is so, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) state: State,
    /// Whether it is available, at this generation, and nothing that was looked at contradicts that.
    pub(crate) agrees: bool,
    pub(crate) because: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

/// One page.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    pub(crate) cluster: String,
    pub(crate) name: String,
    pub(crate) generation: i64,
    #[serde(flatten)]
    pub(crate) verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deleted_time: Option<Timestamp>,
    /// The generation that the report is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reported_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reported_time: Option<Timestamp>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) preconditions: Vec<Asked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<Run>,
    /// What is in store, as it is reported.
    pub(crate) stored: Map<String, Value>,
    /// The digest of what is wanted, as the API shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wanted_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kubernetes_secret: Option<HandedOver>,
    pub(crate) history: Vec<Transition>,
}

/// A precondition and its answer.
#[derive(Debug, Serialize)]
pub(crate) struct Asked {
    pub(crate) expression: String,
    /// `met`, `not met` or `cannot be answered`.
    pub(crate) verdict: &'static str,
    /// Every part with its value.
    pub(crate) values: Vec<String>,
    /// The parts that are to blame.
    pub(crate) because: Vec<String>,
}

/// The Job as Kubernetes shows it.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// `running`, `complete`, `failed` with a reason, `not there`, or why it could not be seen.
    pub(crate) state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<Timestamp>,
    pub(crate) pods: Vec<PodLine>,
}

/// A pod of the Job.
#[derive(Debug, Serialize)]
pub(crate) struct PodLine {
    pub(crate) name: String,
    pub(crate) phase: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
}

/// The Kubernetes Secret without its content.
#[derive(Debug, Serialize)]
pub(crate) struct HandedOver {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// `there`, `not there`, or why it could not be seen.
    pub(crate) state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<Timestamp>,
    pub(crate) annotations: BTreeMap<String, String>,
}

// === impl Sight ===

impl<T> Sight<T> {
    /// What was seen, if anything was.
    pub(crate) fn seen(&self) -> Option<&T> {
        if let Self::Seen(seen) = self { Some(seen) } else { None }
    }
}

impl<T> From<Result<T, KubernetesError>> for Sight<T> {
    fn from(result: Result<T, KubernetesError>) -> Self {
        match result {
            Ok(seen) => Self::Seen(seen),
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}
