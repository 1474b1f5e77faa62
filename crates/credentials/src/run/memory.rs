//! Clusters in memory, for tests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fleet_model::Generation;
use jiff::Timestamp;
use registry_account::contract::Login;
use secrecy::ExposeSecret as _;

use super::clusters::{ClusterError, ClusterErrorKind, Clusters, Document, Entry, ObserveRequest, Observed};
use crate::credential::{ClusterRef, Proof};

/// [`Clusters`] in memory.
#[derive(Default)]
pub struct MemoryClusters {
    clusters: Mutex<BTreeMap<ClusterRef, Cluster>>,
}

#[derive(Default)]
struct Cluster {
    generation: Generation,
    entries: BTreeMap<String, Login>,
    reported: Generation,
    on_nodes: Generation,
}

// === impl MemoryClusters ===

impl MemoryClusters {
    /// Returns a fleet without clusters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a cluster at its first generation.
    pub fn add(&self, cluster: &ClusterRef) {
        self.lock().insert(cluster.clone(), Cluster { generation: Generation::FIRST, ..Cluster::default() });
    }

    /// Removes a cluster.
    pub fn remove(&self, cluster: &ClusterRef) {
        self.lock().remove(cluster);
    }

    /// Reports the present generation of a cluster as available and as applied on all nodes.
    pub fn report(&self, cluster: &ClusterRef) {
        if let Some(cluster) = self.lock().get_mut(cluster) {
            (cluster.reported, cluster.on_nodes) = (cluster.generation, cluster.generation);
        }
    }

    /// Writes an entry, as another client of the API might.
    pub fn put(&self, cluster: &ClusterRef, host: &str, login: Login) {
        if let Some(cluster) = self.lock().get_mut(cluster) {
            cluster.generation = cluster.generation.next();
            cluster.entries.insert(host.to_owned(), login);
        }
    }

    /// Returns all clusters.
    pub fn all(&self) -> Vec<ClusterRef> {
        self.lock().keys().cloned().collect()
    }

    /// Returns the entries of the pull secret of a cluster by their hosts; `None` if there is no such cluster.
    pub fn entries(&self, cluster: &ClusterRef) -> Option<BTreeMap<String, Login>> {
        self.lock().get(cluster).map(|cluster| cluster.entries.clone())
    }

    /// Returns the login that the pull secret of a cluster has for a host.
    pub fn login(&self, cluster: &ClusterRef, host: &str) -> Option<Login> {
        self.lock().get(cluster)?.entries.get(host).cloned()
    }

    /// Returns the clusters whose pull secret names a user.
    pub fn naming(&self, user: &str) -> Vec<ClusterRef> {
        let names = |cluster: &Cluster| cluster.entries.values().any(|login| login.username == user);
        self.lock().iter().filter(|(_, cluster)| names(cluster)).map(|(id, _)| id.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClusterRef, Cluster>> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clusters for MemoryClusters {
    async fn observe(&self, request: &ObserveRequest<'_>) -> Result<Observed, ClusterError> {
        let clusters = self.lock();
        let Some(cluster) = clusters.get(request.cluster) else { return Ok(Observed::Gone) };
        let found = cluster.entries.get(request.host);
        let is_same = |login: &Login| {
            login.username == request.login.username
                && login.password.expose_secret() == request.login.password.expose_secret()
        };
        let proof = |generation: Generation, source: &str| {
            let source = format!("{source} of generation {generation}");
            (generation >= request.generation).then_some(Proof { at: Timestamp::UNIX_EPOCH, source })
        };
        Ok(Observed::Found(Document {
            generation: cluster.generation,
            user: found.map(|login| login.username.clone()),
            is_same: found.is_some_and(is_same),
            report: proof(cluster.reported, "report"),
            nodes: proof(cluster.on_nodes, "nodes"),
        }))
    }

    async fn publish(
        &self,
        cluster: &ClusterRef,
        entry: &Entry<'_>,
        at: Generation,
    ) -> Result<Generation, ClusterError> {
        let mut clusters = self.lock();
        let found = clusters.get_mut(cluster).filter(|cluster| cluster.generation == at);
        let Some(cluster) = found else {
            let message = format!("cannot publish to cluster {cluster}: it has changed");
            return Err(ClusterError { kind: ClusterErrorKind::Changed, message, retry_after: None });
        };
        cluster.generation = cluster.generation.next();
        cluster.entries.insert(entry.host.to_owned(), entry.login.clone());
        Ok(cluster.generation)
    }
}

impl fmt::Debug for MemoryClusters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryClusters").finish_non_exhaustive()
    }
}
