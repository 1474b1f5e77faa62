//! Summaries of a Job, its Pods, a Lease and a Secret for people; the content of a Secret is not requested.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ContainerState, Namespace, Pod, Secret};
use kube::Api;
use kube::api::ListParams;

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::job::{JobEnd, end, ended_at};
use crate::secret::SecretKey;
use crate::verb::Verb;

/// The label with which a namespace says which Pods it admits.
const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";

/// A Job, summarized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSummary {
    /// Its name.
    pub name: String,
    /// Time at which it was created.
    pub created: Option<Timestamp>,
    /// Time at which its controller first handled it.
    pub started: Option<Timestamp>,
    /// Number of its Pods that have failed.
    pub failed: i32,
    /// Its end; `None` while it runs.
    pub end: Option<JobEnd>,
    /// Time at which it ended.
    pub ended: Option<Timestamp>,
}

/// A Lease, summarized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSummary {
    /// Its name.
    pub name: String,
    /// The holder's identity; `None` where it was released.
    pub holder: Option<String>,
    /// Time of the last renewal, by the holder's clock.
    pub renewed: Option<Timestamp>,
    /// Time until it expires unless it is renewed.
    pub duration: SignedDuration,
}

/// One of a Job's Pods, summarized.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSummary {
    /// Its name.
    pub name: String,
    /// Such as `Pending` or `Failed`.
    pub phase: String,
    /// The reason for its phase, in one word; empty where Kubernetes gives none.
    pub reason: String,
    /// The reason in a sentence, or the termination message that its program left.
    pub message: String,
    /// The exit code of its container, once that has terminated.
    pub exit_code: Option<i32>,
    /// The image of its container.
    pub image: String,
    /// The Secrets with which its images are pulled.
    pub image_pull_secrets: Vec<String>,
}

/// A namespace, summarized.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSummary {
    /// The level of Pod Security that it enforces, if it names one.
    pub pod_security: Option<String>,
    /// True if it is being deleted.
    pub is_terminating: bool,
}

/// A Secret without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretMetadata {
    /// Time at which it was created.
    pub created: Option<Timestamp>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Cluster {
    /// The summary of a Job; `None` if there is none of that name.
    pub async fn job_summary(&self, namespace: &str, name: &str) -> Result<Option<JobSummary>, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let found = self.call(Verb::Get, &format!("job {namespace}/{name}"), api.get_opt(name)).await?;
        Ok(found.as_ref().map(|job| {
            let status = job.status.as_ref();
            JobSummary {
                name: name.to_owned(),
                created: job.metadata.creation_timestamp.as_ref().map(|time| time.0),
                started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
                failed: status.and_then(|status| status.failed).unwrap_or_default(),
                end: end(job),
                ended: ended_at(job),
            }
        }))
    }

    /// The summary of a Lease; `None` if there is none of that name.
    pub async fn lease_summary(&self, namespace: &str, name: &str) -> Result<Option<LeaseSummary>, KubernetesError> {
        let found: Option<Lease> = self.find(namespace, name).await?;
        Ok(found.and_then(|lease| lease.spec).map(|spec| LeaseSummary {
            name: name.to_owned(),
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            renewed: spec.renew_time.map(|time| time.0),
            duration: SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into()),
        }))
    }

    /// The summaries of a Job's Pods, the newest first.
    pub async fn pod_summaries(&self, namespace: &str, job: &str) -> Result<Vec<PodSummary>, KubernetesError> {
        self.pods_with(namespace, &format!("job-name={job}")).await
    }

    /// The summaries of the Pods with these labels, the newest first.
    pub async fn pods_with(&self, namespace: &str, selector: &str) -> Result<Vec<PodSummary>, KubernetesError> {
        let api: Api<Pod> = Api::namespaced(self.client(), namespace);
        let parameters = ListParams::default().labels(selector);
        let object = format!("pods with {selector} in {namespace}");
        let mut pods = self.call(Verb::List, &object, api.list(&parameters)).await?.items;
        pods.sort_by_key(|pod| std::cmp::Reverse(pod.metadata.creation_timestamp.as_ref().map(|time| time.0)));
        Ok(pods.iter().map(PodSummary::of).collect())
    }

    /// The summary of a namespace; `None` if there is none of that name.
    pub async fn namespace_summary(&self, name: &str) -> Result<Option<NamespaceSummary>, KubernetesError> {
        let api: Api<Namespace> = Api::all(self.client());
        let found = match self.call(Verb::Get, &format!("namespace {name}"), api.get_metadata_opt(name)).await {
            Err(error) if error.kind == ErrorKind::NamespaceMissing => None,
            found => found?,
        };
        Ok(found.map(|namespace| NamespaceSummary {
            pod_security: namespace.metadata.labels.unwrap_or_default().remove(POD_SECURITY),
            is_terminating: namespace.metadata.deletion_timestamp.is_some(),
        }))
    }

    /// The Secret without its content; `None` if there is none of that name, or no such namespace.
    pub async fn secret_metadata(&self, key: &SecretKey) -> Result<Option<SecretMetadata>, KubernetesError> {
        let api: Api<Secret> = Api::namespaced(self.client(), &key.namespace);
        let found = match self.call(Verb::Get, &key.to_string(), api.get_metadata_opt(&key.name)).await {
            Err(error) if error.kind == ErrorKind::NamespaceMissing => None,
            found => found?,
        };
        Ok(found.map(|secret| SecretMetadata {
            created: secret.metadata.creation_timestamp.map(|time| time.0),
            labels: secret.metadata.labels.unwrap_or_default(),
            annotations: secret.metadata.annotations.unwrap_or_default(),
        }))
    }
}

// === impl PodSummary ===

impl PodSummary {
    fn of(pod: &Pod) -> Self {
        let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
        let secrets = spec.and_then(|spec| spec.image_pull_secrets.as_ref()).into_iter().flatten();
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
            image: spec.and_then(|spec| spec.containers.first()?.image.clone()).unwrap_or_default(),
            image_pull_secrets: secrets.map(|secret| secret.name.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn summary(status: &Value) -> PodSummary {
        PodSummary::of(&serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status})).unwrap())
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
    fn a_pods_phase_has_its_reason(#[case] status: Value, #[case] expect: (&str, &str, &str, Option<i32>)) {
        let pod = summary(&status);
        assert_eq!((pod.phase.as_str(), pod.reason.as_str(), pod.message.as_str(), pod.exit_code), expect);
    }

    fn container(state: &Value) -> Value {
        json!({"name": "a", "image": "b", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }
}
