//! The pull secrets of a fleet, as a whole.

use fleet_model::Generation;

use crate::credential::ClusterRef;
use crate::publish::PullSecret;
use crate::run::ClusterError;

/// The pull secrets of a fleet.
pub trait PullSecrets {
    /// Lists the clusters that are not being deleted.
    fn clusters(&self) -> impl Future<Output = Result<Vec<ClusterRef>, ClusterError>>;

    /// Returns true if there is a cluster with this id, listed or not, even one that is being deleted.
    fn exists(&self, id: &str) -> impl Future<Output = Result<bool, ClusterError>>;

    /// Reads the pull secret of a cluster.
    fn read(&self, cluster: &ClusterRef) -> impl Future<Output = Result<Content, ClusterError>>;
}

/// The result of reading a cluster's pull secret.
#[derive(Debug)]
pub enum Content {
    /// This incarnation of the cluster does not exist any more.
    Gone,
    /// It is by reference, hidden, or unreadable.
    NotReadable,
    /// It is there, at this generation of the cluster.
    Here {
        /// The generation.
        generation: Generation,
        /// The pull secret.
        secret: PullSecret,
    },
}
