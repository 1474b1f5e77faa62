//! The facts that decisions depend on, as they were observed.

use std::collections::BTreeMap;
use std::sync::Arc;

use docker_config::Digest;
use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodSpec, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::secret::DOCKER_CONFIG_JSON_KEY;
use secrecy::SecretSlice;

use crate::finding::ProbeResult;
use crate::images::ObservedImages;
use crate::objects::{REVERTING_KEY, REVISION_KEY};

/// The observed state of the hosted cluster.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The original pull secret.
    pub original: Option<Arc<ObservedSecret>>,
    /// The additional ones, in any order.
    pub additional: Vec<Arc<ObservedSecret>>,
    /// The merged one.
    pub global: Option<Arc<ObservedSecret>>,
    /// The syncer's identity.
    pub service_account: Option<Arc<ServiceAccount>>,
    /// The syncer's permissions.
    pub role: Option<Arc<Role>>,
    /// The binding of these permissions.
    pub role_binding: Option<Arc<RoleBinding>>,
    /// The syncer.
    pub daemon_set: Option<Arc<DaemonSet>>,
    /// The last status.
    pub status: Option<Arc<ConfigMap>>,
    /// The object in which the syncer confirms revisions.
    pub confirmations: Option<Arc<ConfigMap>>,
    /// The syncer's Pods.
    pub pods: Vec<ObservedPod>,
    /// The results of probes, by the digest of the entry's meaning.
    pub results: BTreeMap<Digest, ProbeResult>,
    /// The images of the hosted cluster's Pods, once they have been read.
    pub images: Option<ObservedImages>,
    /// The error of the last write, if it failed.
    pub refused: Option<String>,
}

/// A Secret as it was observed.
#[derive(Debug)]
pub struct ObservedSecret {
    /// Name, labels, annotations, versions.
    pub metadata: ObjectMeta,
    /// Its type.
    pub kind: String,
    /// Its content under `.dockerconfigjson`.
    pub content: Option<SecretSlice<u8>>,
    /// The revision in its data.
    pub revision: Option<String>,
    /// True if its data says that nodes are reverted.
    pub is_revert: bool,
    /// True if it has further keys.
    pub has_other_data: bool,
    /// True if its content is immutable.
    pub is_immutable: bool,
}

/// A Pod of the syncer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedPod {
    /// Its name.
    pub name: String,
    /// The node that it is on, once it is on one.
    pub node: Option<String>,
    /// Time since which it is ready; `None` while it is not.
    pub ready_since: Option<Timestamp>,
    /// Time of its creation, or of its last change of readiness.
    pub changed_at: Timestamp,
    /// The revision that it was created for.
    pub revision: Option<String>,
    /// True while it is being deleted.
    pub is_terminating: bool,
    /// The reason for which it is not ready, if its status has one.
    pub failure: Option<String>,
}

impl From<Secret> for ObservedSecret {
    fn from(secret: Secret) -> Self {
        let Secret { metadata, data, type_, immutable, .. } = secret;
        let mut data = data.unwrap_or_default();
        let content = data.remove(DOCKER_CONFIG_JSON_KEY);
        let revision = data.remove(REVISION_KEY);
        let is_revert = data.remove(REVERTING_KEY).is_some();
        Self {
            metadata,
            revision: revision.and_then(|ByteString(bytes)| String::from_utf8(bytes).ok()),
            kind: type_.unwrap_or_default(),
            is_revert,
            content: content.map(|ByteString(bytes)| SecretSlice::from(bytes)),
            has_other_data: !data.is_empty(),
            is_immutable: immutable.unwrap_or_default(),
        }
    }
}

impl ObservedSecret {
    /// Its name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The annotation of that name.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// True while it is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}

/// Returns true if the controller manages the object.
pub fn is_managed(metadata: &ObjectMeta) -> bool {
    let label = metadata.labels.as_ref().and_then(|labels| labels.get(names::LABEL_KUBERNETES_MANAGED_BY));
    label.map(String::as_str) == Some(names::GLOBAL_MANAGER)
}

/// The revision that the node of a Pod has confirmed. A confirmation of an earlier Pod there does not count: the node may be
/// another one of the same name.
pub fn confirmed_revision<'a>(confirmations: Option<&'a ConfigMap>, pod: &ObservedPod) -> Option<&'a str> {
    let confirmation = confirmations?.data.as_ref()?.get(pod.node.as_deref()?)?;
    let (revision, of) = confirmation.split_once(' ')?;
    (of == pod.name).then_some(revision)
}

/// The node that a Pod is on, or that its DaemonSet has created it for.
fn node_of(spec: PodSpec) -> Option<String> {
    let affinity = spec.affinity.and_then(|affinity| affinity.node_affinity);
    let meant = || {
        let required = affinity?.required_during_scheduling_ignored_during_execution;
        let term = required?.node_selector_terms.into_iter().next()?;
        let field = term.match_fields?.into_iter().find(|field| field.key == "metadata.name")?;
        field.values?.into_iter().next()
    };
    spec.node_name.or_else(meant)
}

impl From<Pod> for ObservedPod {
    fn from(pod: Pod) -> Self {
        let Pod { metadata, spec, status } = pod;
        let status = status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        let is_ready = ready.is_some_and(|condition| condition.status == "True");
        let since = ready.and_then(|condition| condition.last_transition_time.as_ref()).map(|time| time.0);
        let waiting = status.container_statuses.iter().flatten().find_map(|container| {
            let state = container.state.as_ref()?;
            let waiting = state.waiting.as_ref().and_then(|waiting| waiting.reason.clone());
            waiting.or_else(|| state.terminated.as_ref().and_then(|terminated| terminated.reason.clone()))
        });
        let failure = waiting.or(status.reason).or_else(|| ready.and_then(|condition| condition.reason.clone()));
        let mut annotations = metadata.annotations.unwrap_or_default();
        let created = metadata.creation_timestamp.map_or(Timestamp::MIN, |time| time.0);
        Self {
            changed_at: since.unwrap_or(Timestamp::MIN).max(created),
            name: metadata.name.unwrap_or_default(),
            node: spec.and_then(node_of),
            ready_since: is_ready.then(|| since.unwrap_or(Timestamp::MIN)),
            revision: annotations.remove(names::ANNOTATION_REVISION),
            is_terminating: metadata.deletion_timestamp.is_some(),
            failure: failure.filter(|_| !is_ready),
        }
    }
}
