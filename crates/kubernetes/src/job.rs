//! Jobs: created once by name, watched to their end, their result read.

use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::{wait, watcher};

use crate::cluster::Cluster;
use crate::error::{Fault, KubernetesError};
use crate::jobs::SeenJob;
use crate::verb::Verb;

/// How a Job ended.
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
    /// It is not there any more.
    Gone,
}

/// What a container said at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The pod that it ran in.
    pub pod: String,
    /// Its exit code.
    pub exit_code: i32,
    /// Its termination message; empty where it has left none.
    pub message: String,
}

impl Cluster {
    /// Creates the Job unless there is one of its name; returns the one that was created.
    pub async fn create_job_once(&self, namespace: &str, job: &Job) -> Result<Option<SeenJob>, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("job {namespace}/{}", job.metadata.name.as_deref().unwrap_or_default());
        let parameters = self.creation();
        match self.call(Verb::Create, &object, api.create(&parameters, job)).await {
            Ok(created) => Ok(Some(created.into())),
            Err(error) if error.fault == Fault::AlreadyExists => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the Job of that name has completed, has failed for good, or is gone; how long is the caller's to
    /// say. A watch that is lost is a transient failure: call again.
    pub async fn job_end(&self, namespace: &str, name: &str) -> Result<JobEnd, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("job {namespace}/{name}");
        let ended = |job: Option<&Job>| end(job).is_some();
        match wait::await_condition(api, name, ended).await {
            Ok(job) => Ok(end(job.as_ref()).unwrap_or(JobEnd::Gone)),
            Err(wait::Error::ProbeFailed(problem)) => Err(lost(&object, &problem)),
        }
    }

    /// What the container `container` of the Job's pods said at its end, the pod that ended last first; Kubernetes tells
    /// times by the second.
    pub async fn terminations(
        &self,
        namespace: &str,
        job: &str,
        container: &str,
    ) -> Result<Vec<Termination>, KubernetesError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let object = format!("pods of job {namespace}/{job}");
        let parameters = ListParams::default().labels(&format!("job-name={job}"));
        let pods = self.call(Verb::Get, &object, api.list(&parameters)).await?;
        let mut ends: Vec<_> = pods.items.iter().filter_map(|pod| termination(pod, container)).collect();
        ends.sort_by_key(|end| std::cmp::Reverse(end.0));
        Ok(ends.into_iter().map(|(_, termination)| termination).collect())
    }
}

pub(crate) fn lost(object: &str, problem: &watcher::Error) -> KubernetesError {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match problem {
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            KubernetesError::classify(Verb::Watch, object, error)
        }
        WatchError(status) => KubernetesError::classify(Verb::Watch, object, &kube::Error::Api(status.clone())),
        watcher::Error::NoResourceVersion => KubernetesError::new(Verb::Watch, object, Fault::Internal),
    }
}

/// A Job ends by its condition alone: counts of pods say nothing while some may still be made.
pub(crate) fn end(job: Option<&Job>) -> Option<JobEnd> {
    let Some(job) = job else { return Some(JobEnd::Gone) };
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

/// When the Job ended, by the condition that says so.
pub(crate) fn ended_at(job: &Job) -> Option<jiff::Timestamp> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = |condition: &&JobCondition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    };
    conditions.iter().find(ended)?.last_transition_time.as_ref().map(|time| time.0)
}

/// When the container ended, and what it said.
fn termination(pod: &Pod, container: &str) -> Option<(Option<jiff::Timestamp>, Termination)> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let status = statuses.iter().find(|status| status.name == container)?;
    let state = |state: &Option<k8s_openapi::api::core::v1::ContainerState>| state.as_ref()?.terminated.clone();
    let terminated = state(&status.state).or_else(|| state(&status.last_state))?;
    let told = Termination {
        pod: pod.metadata.name.clone().unwrap_or_default(),
        exit_code: terminated.exit_code,
        message: terminated.message.unwrap_or_default(),
    };
    Some((terminated.finished_at.map(|time| time.0), told))
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
        assert_eq!(end(Some(&job(&failed))), Some(expected));
        let complete =
            json!([{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]);
        assert_eq!(end(Some(&job(&complete))), Some(JobEnd::Complete));
        let doomed = json!([{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "False"}]);
        assert_eq!(end(Some(&job(&doomed))), None);
        assert_eq!(end(Some(&Job::default())), None);
        assert_eq!(end(None), Some(JobEnd::Gone));
    }
}
