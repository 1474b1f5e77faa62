//! The plan that a decision returns.

use docker_config::merge::Decision;
use fleet_model::ReportedCondition;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::finding::ProbeRequest;
use crate::reason::Reason;

/// The actions, the conditions and Events to publish, and the time of the next reconcile.
#[derive(Debug, Default)]
pub struct Plan {
    /// The actions in order; after a failure the rest is skipped.
    pub actions: Vec<Action>,
    /// The conditions.
    pub conditions: Vec<ReportedCondition>,
    /// The Events to publish.
    pub events: Vec<Event>,
    /// The merge decision for each registry; empty if nothing was merged.
    pub decisions: Vec<Decision>,
    /// The revision that the nodes get; `None` if nothing is deployed.
    pub revision: Option<String>,
    /// The progress of the nodes; `None` if nothing is deployed.
    pub nodes: Option<Nodes>,
    /// The probes to start.
    pub requests: Vec<ProbeRequest>,
    /// The revision for which the images of Pods are to be read.
    pub images_for: Option<String>,
    /// Time of the next reconcile if nothing changes before.
    pub next: Option<Timestamp>,
}

/// One write, based on an observed object.
#[derive(Debug)]
pub enum Action {
    /// Creates it, or applies it over the one with its uid and resourceVersion.
    Apply(Box<ManagedObject>),
    /// Deletes the one with its uid.
    Delete(Box<ManagedObject>),
}

/// A managed object. It may contain a Secret's content, so `Debug` shows its kind only.
#[derive(Clone)]
#[expect(missing_docs, reason = "the kinds of Kubernetes")]
pub enum ManagedObject {
    Secret(Secret),
    ServiceAccount(ServiceAccount),
    Role(Role),
    RoleBinding(RoleBinding),
    DaemonSet(Box<DaemonSet>),
    Confirmations(ConfigMap),
    Status(ConfigMap),
}

/// A Kubernetes Event to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The Secret that it is about.
    pub about: String,
    /// Its uid, where it is there.
    pub uid: Option<String>,
    /// The reason.
    pub reason: Reason,
    /// The message; without any credential.
    pub note: String,
}

/// The roll-out progress of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// Number of nodes that have the content.
    pub in_sync: usize,
    /// Number of nodes.
    pub all: usize,
    /// The nodes that do not have it, with the reason if it is known.
    pub behind: Vec<(String, String)>,
    /// True if one of them has had its time.
    pub is_late: bool,
}

impl ManagedObject {
    /// The kind as `kubectl get` accepts it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Secret(_) => "secret",
            Self::ServiceAccount(_) => "serviceaccount",
            Self::Role(_) => "role",
            Self::RoleBinding(_) => "rolebinding",
            Self::DaemonSet(_) => "daemonset",
            Self::Confirmations(_) | Self::Status(_) => "configmap",
        }
    }

    /// The metadata of whichever it is.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Secret(object) => &object.metadata,
            Self::ServiceAccount(object) => &object.metadata,
            Self::Role(object) => &object.metadata,
            Self::RoleBinding(object) => &object.metadata,
            Self::DaemonSet(object) => &object.metadata,
            Self::Confirmations(object) | Self::Status(object) => &object.metadata,
        }
    }
}

impl std::fmt::Debug for ManagedObject {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.kind())
    }
}

impl Action {
    /// Verb and kind, for logs and metrics.
    pub fn label(&self) -> (&'static str, &'static str) {
        match self {
            Self::Apply(managed) => ("apply", managed.kind()),
            Self::Delete(managed) => ("delete", managed.kind()),
        }
    }
}
