//! Jobs as the API stores them: how they end, and the termination messages of their Pods.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::Resource as _;
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{ContainerState, ObjectReference, Pod};

/// The end of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// It has completed.
    Complete,
    /// It has failed for good, with the condition's reason and message.
    Failed {
        /// Such as `BackoffLimitExceeded` or `PodFailurePolicy`.
        reason: String,
        /// For people.
        message: String,
    },
}

/// The last state of a container that has terminated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The Pod that it ran in.
    pub pod: String,
    /// Its exit code.
    pub exit_code: i32,
    /// Its termination message; empty if it left none.
    pub message: String,
}

/// A Job as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedJob {
    /// Its name.
    pub name: String,
    /// Its uid; a Job that is created anew has another.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Time at which it was created.
    pub created: Option<Timestamp>,
    /// Its end; `None` while it runs.
    pub end: Option<JobEnd>,
    /// Time at which it ended.
    pub ended: Option<Timestamp>,
    /// Number of its Pods that are pending or running.
    pub active: u32,
    /// Number of its Pods that have failed.
    pub failed: u32,
    /// True while it is being deleted and waits for its Pods to go.
    pub is_terminating: bool,
}

impl ObservedJob {
    /// The reference by which an Event is about this Job.
    pub fn reference(&self, namespace: &str) -> ObjectReference {
        ObjectReference {
            api_version: Some(Job::API_VERSION.to_owned()),
            kind: Some(Job::KIND.to_owned()),
            name: Some(self.name.clone()),
            namespace: Some(namespace.to_owned()),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }
}

impl From<Job> for ObservedJob {
    fn from(job: Job) -> Self {
        let (end, ended) = (end(&job), ended_at(&job));
        let count = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok()).unwrap_or_default();
        let status = job.status.unwrap_or_default();
        let metadata = job.metadata;
        Self {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0),
            end,
            ended,
            active: count(status.active),
            failed: count(status.failed),
            is_terminating: metadata.deletion_timestamp.is_some(),
        }
    }
}

/// The end of a Job by its condition alone: counts of Pods say nothing while others may still be created.
pub(crate) fn end(job: &Job) -> Option<JobEnd> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let is_true = |kind: &str| -> Option<&JobCondition> {
        conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
    };
    if is_true("Complete").is_some() {
        return Some(JobEnd::Complete);
    }
    let failed = is_true("Failed")?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Some(JobEnd::Failed { reason: text(&failed.reason), message: text(&failed.message) })
}

/// The transition time of the condition by which a Job ended.
pub(crate) fn ended_at(job: &Job) -> Option<Timestamp> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = |condition: &&JobCondition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    };
    conditions.iter().find(ended)?.last_transition_time.as_ref().map(|time| time.0)
}

/// The termination of a Pod's container, and its time.
pub(crate) fn termination(pod: &Pod, container: &str) -> Option<(Option<Timestamp>, Termination)> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let status = statuses.iter().find(|status| status.name == container)?;
    let state = |state: &Option<ContainerState>| state.as_ref()?.terminated.clone();
    let terminated = state(&status.state).or_else(|| state(&status.last_state))?;
    let termination = Termination {
        pod: pod.metadata.name.clone().unwrap_or_default(),
        exit_code: terminated.exit_code,
        message: terminated.message.unwrap_or_default(),
    };
    Some((terminated.finished_at.map(|time| time.0), termination))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(conditions: &serde_json::Value) -> Job {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "status": {"failed": 1, "conditions": conditions}}))
            .unwrap()
    }

    #[test]
    fn a_job_ends_by_its_condition() {
        let failed = json!([{"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "exit 3"}]);
        let expected = JobEnd::Failed { reason: "PodFailurePolicy".to_owned(), message: "exit 3".to_owned() };
        assert_eq!(end(&job(&failed)), Some(expected));
        let complete =
            json!([{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]);
        assert_eq!(end(&job(&complete)), Some(JobEnd::Complete));
        let doomed = json!([{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "False"}]);
        assert_eq!(end(&job(&doomed)), None);
        assert_eq!(end(&Job::default()), None);
    }
}
