//! What people are shown of a Job, its pods and a Secret; a Secret's content is not even asked for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, Pod, Secret};
use kube::Api;
use kube::api::ListParams;

use crate::cluster::Cluster;
use crate::error::{Fault, KubernetesError};
use crate::job::{JobEnd, end};
use crate::secret::SecretKey;
use crate::verb::Verb;

/// A Job as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSight {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// When its first pod was to start.
    pub started: Option<Timestamp>,
    /// How many of its pods have failed.
    pub failed: i32,
    /// How it has ended, if it has.
    pub end: Option<JobEnd>,
}

/// One of a Job's pods as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSight {
    /// Its name.
    pub name: String,
    /// Such as `Pending` or `Failed`.
    pub phase: String,
    /// Why it waits or why it has ended, in one word; empty where Kubernetes does not say.
    pub reason: String,
    /// Why, in a sentence; a termination message as its program has left it.
    pub message: String,
    /// The exit code of its container, once that has ended.
    pub exit_code: Option<i32>,
}

/// A Secret without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSight {
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Cluster {
    /// The Job; `None` when there is none of that name.
    pub async fn see_job(&self, namespace: &str, name: &str) -> Result<Option<JobSight>, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let found = self.call(Verb::Get, &format!("job {namespace}/{name}"), api.get_opt(name)).await?;
        Ok(found.as_ref().map(|job| {
            let status = job.status.as_ref();
            JobSight {
                name: name.to_owned(),
                created: job.metadata.creation_timestamp.as_ref().map(|time| time.0),
                started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
                failed: status.and_then(|status| status.failed).unwrap_or_default(),
                end: end(Some(job)),
            }
        }))
    }

    /// The pods of a Job, the newest first.
    pub async fn see_pods(&self, namespace: &str, job: &str) -> Result<Vec<PodSight>, KubernetesError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let parameters = ListParams::default().labels(&format!("job-name={job}"));
        let object = format!("pods of job {namespace}/{job}");
        let mut pods = self.call(Verb::Get, &object, api.list(&parameters)).await?.items;
        pods.sort_by_key(|pod| std::cmp::Reverse(pod.metadata.creation_timestamp.as_ref().map(|time| time.0)));
        Ok(pods.iter().map(PodSight::of).collect())
    }

    /// The Secret without its content; `None` when there is none of that name, or no such namespace.
    pub async fn see_secret(&self, key: &SecretKey) -> Result<Option<SecretSight>, KubernetesError> {
        let api: Api<Secret> = Api::namespaced(self.client(), &key.namespace);
        let found = match self.call(Verb::Get, &key.to_string(), api.get_metadata_opt(&key.name)).await {
            Err(error) if error.fault == Fault::NamespaceMissing => None,
            found => found?,
        };
        Ok(found.map(|secret| SecretSight {
            created: secret.metadata.creation_timestamp.map(|time| time.0),
            labels: secret.metadata.labels.unwrap_or_default(),
            annotations: secret.metadata.annotations.unwrap_or_default(),
        }))
    }
}

// === impl PodSight ===

impl PodSight {
    fn of(pod: &Pod) -> Self {
        let status = pod.status.as_ref();
        let state = status
            .and_then(|status| status.container_statuses.as_ref()?.first())
            .and_then(|container| container.state.clone())
            .unwrap_or_default();
        let unscheduled = status
            .and_then(|status| status.conditions.as_ref()?.iter().find(|condition| condition.type_ == "PodScheduled"))
            .filter(|condition| condition.status == "False");
        let own = status.map(|status| (status.reason.clone(), status.message.clone())).unwrap_or_default();
        let ContainerState { waiting, terminated, .. } = state;
        let exit_code = terminated.as_ref().map(|ended| ended.exit_code);
        let ended = terminated.map(|ended| (ended.reason, ended.message));
        let waits = waiting.map(|waiting| (waiting.reason, waiting.message));
        let pending = unscheduled.map(|condition| (condition.reason.clone(), condition.message.clone()));
        let (reason, message) = ended.or(waits).or(pending).unwrap_or(own);
        Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            phase: status.and_then(|status| status.phase.clone()).unwrap_or_default(),
            reason: reason.unwrap_or_default(),
            message: message.unwrap_or_default(),
            exit_code,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn sight(status: &Value) -> PodSight {
        PodSight::of(&serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status})).unwrap())
    }

    #[rstest]
    #[case::unscheduled(
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}]}),
        ("Pending", "Unschedulable", "no node", None)
    )]
    #[case::waiting(
        json!({"phase": "Pending", "containerStatuses": [container(&json!({"waiting": {"reason": "ImagePullBackOff", "message": "no image"}}))]}),
        ("Pending", "ImagePullBackOff", "no image", None)
    )]
    #[case::failed(
        json!({"phase": "Failed", "containerStatuses": [container(&json!({"terminated": {"exitCode": 4, "reason": "Error", "message": "{}"}}))]}),
        ("Failed", "Error", "{}", Some(4))
    )]
    #[case::evicted(json!({"phase": "Failed", "reason": "Evicted", "message": "disk"}), ("Failed", "Evicted", "disk", None))]
    fn a_pod_says_why_it_is_as_it_is(#[case] status: Value, #[case] expect: (&str, &str, &str, Option<i32>)) {
        let pod = sight(&status);
        assert_eq!((pod.phase.as_str(), pod.reason.as_str(), pod.message.as_str(), pod.exit_code), expect);
    }

    fn container(state: &Value) -> Value {
        json!({"name": "a", "image": "b", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }
}
