//! What a decision comes to.

use docker_config::merge::Decision;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::decide::probe::Question;
use crate::reason::Reason;
use crate::status::Condition;

/// What to do now, what to tell, why, and when to look again.
#[derive(Debug, Default)]
pub struct Plan {
    /// To be done in this order; after a failure the rest is not.
    pub actions: Vec<Action>,
    /// How things are.
    pub conditions: Vec<Condition>,
    /// What people are told.
    pub news: Vec<News>,
    /// Whose entry was taken for each registry; empty where nothing was merged.
    pub because: Vec<Decision>,
    /// How many nodes are in sync, of how many; `None` where nothing is deployed.
    pub nodes: Option<Nodes>,
    /// What registries are to be asked.
    pub ask: Vec<Question>,
    /// When to look again though nothing has changed.
    pub next: Option<Timestamp>,
}

/// One step, as of what was seen.
#[derive(Debug)]
pub enum Action {
    /// Make it, or put it in the place of the one with its uid and resource version.
    Put(Box<Thing>),
    /// Delete the one with its uid.
    Remove(Box<Thing>),
}

/// An object of ours. A Secret's content is in it: it is shown by kind only.
#[derive(Clone)]
#[expect(missing_docs, reason = "the kinds of Kubernetes")]
pub enum Thing {
    Secret(Secret),
    ServiceAccount(ServiceAccount),
    Role(Role),
    RoleBinding(RoleBinding),
    DaemonSet(Box<DaemonSet>),
    Status(ConfigMap),
}

/// One Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The Secret that it is about.
    pub about: String,
    /// Its uid, where it is there.
    pub uid: Option<String>,
    /// What happened.
    pub reason: Reason,
    /// In words; without any credential.
    pub note: String,
}

/// How far the nodes are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// How many have the content.
    pub in_sync: usize,
    /// How many there are.
    pub all: usize,
    /// Those that do not have it, with why, as far as that is known.
    pub behind: Vec<(String, String)>,
}

impl Thing {
    /// The kind, in the words of `kubectl get`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Secret(_) => "secret",
            Self::ServiceAccount(_) => "serviceaccount",
            Self::Role(_) => "role",
            Self::RoleBinding(_) => "rolebinding",
            Self::DaemonSet(_) => "daemonset",
            Self::Status(_) => "configmap",
        }
    }
}

impl Thing {
    /// The metadata of whichever it is.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Secret(object) => &object.metadata,
            Self::ServiceAccount(object) => &object.metadata,
            Self::Role(object) => &object.metadata,
            Self::RoleBinding(object) => &object.metadata,
            Self::DaemonSet(object) => &object.metadata,
            Self::Status(object) => &object.metadata,
        }
    }
}

impl std::fmt::Debug for Thing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.kind())
    }
}

impl Action {
    /// Verb and kind, for logs and metrics.
    pub fn label(&self) -> (&'static str, &'static str) {
        match self {
            Self::Put(thing) => ("put", thing.kind()),
            Self::Remove(thing) => ("remove", thing.kind()),
        }
    }
}
