//! Clusters as the worker needs them: reads of a pull secret and its evidence, and the write of one entry.

use std::fmt;
use std::time::Duration;

use fleet_model::Generation;
use registry_account::contract::Login;

use crate::credential::{ClusterRef, Proof};

/// The clusters of a fleet.
pub trait Clusters: Send + Sync {
    /// Reads the pull secret of a cluster and the evidence about one of its generations.
    fn observe(&self, request: &ObserveRequest<'_>) -> impl Future<Output = Result<Observed, ClusterError>> + Send;

    /// Writes an entry into the pull secret of a cluster, and changes nothing else in it. Returns the new generation. The entry
    /// is written only if the cluster still has the generation `at`.
    ///
    /// # Errors
    ///
    /// `Changed` at another generation; `Ambiguous` if it may have been written: observe it again.
    fn publish(
        &self,
        cluster: &ClusterRef,
        entry: &Entry<'_>,
        at: Generation,
    ) -> impl Future<Output = Result<Generation, ClusterError>> + Send;
}

/// The cluster to observe, and what to compare it with.
#[derive(Clone, Copy, Debug)]
pub struct ObserveRequest<'a> {
    /// The cluster.
    pub cluster: &'a ClusterRef,
    /// The host of the registry, with a port where it needs one.
    pub host: &'a str,
    /// The login to compare with.
    pub login: &'a Login,
    /// The generation that the evidence must be about, or a later one.
    pub generation: Generation,
}

/// An entry of a pull secret.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The host of the registry.
    pub host: &'a str,
    /// The login.
    pub login: &'a Login,
}

/// A cluster as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// This incarnation does not exist any more.
    Gone,
    /// It exists.
    Found(Document),
}

/// The pull secret of a cluster, without its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The generation of the cluster.
    pub generation: Generation,
    /// The user of the registry's entry; `None` if there is none.
    pub user: Option<String>,
    /// True if the entry has the login's password, too.
    pub is_same: bool,
    /// The report of the adapter about the generation, if it is available.
    pub report: Option<Proof>,
    /// The nodes that have the generation, if they are known to be all.
    pub nodes: Option<Proof>,
}

/// A failed call about a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterError {
    /// The kind.
    pub kind: ClusterErrorKind,
    /// One line for people, without content of a pull secret.
    pub message: String,
    /// The delay that the API asked for.
    pub retry_after: Option<Duration>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterErrorKind {
    /// The same call may succeed later; nothing was changed.
    Transient,
    /// The change may have been made.
    Ambiguous,
    /// The cluster has another generation.
    Changed,
    /// The caller lacks a permission, or the request is refused.
    Denied,
    /// The pull secret is not inline, is hidden from the caller, or cannot be read.
    NotWritable,
}

impl std::error::Error for ClusterError {}

impl fmt::Display for ClusterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
