//! The clusters that callers ask about, as the HyperFleet API has them.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use daemon::retry::Budget;
use fleet_model::ClusterId;
use hyperfleet_client::{Client, Error, ListQuery};
use registry_account::name::NamePrefix;
use tokio_util::sync::CancellationToken;

use crate::credential::{Approval, ClusterRef, RegistryName};

/// The plural of clusters in the API's paths.
const CLUSTERS: &str = "clusters";
/// Members of a cluster that are read.
const FIELDS: [&str; 6] = ["id", "kind", "name", "generation", "created_time", "deleted_time"];

/// A registry whose credentials are given.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Its name.
    pub name: RegistryName,
    /// The key in `auths`.
    pub host: String,
    /// The beginning of the names of accounts.
    pub prefix: NamePrefix,
    /// The search that finds its clusters; all without it.
    pub search: Option<String>,
    /// The condition for a revocation.
    pub revocation: Approval,
    /// The time in which a replacement is expected to be done: that for the evidence of adoption, and the quiet time.
    pub replaced_within: Duration,
}

/// A source of clusters.
pub trait Directory: Send + Sync + 'static {
    /// Finds a cluster; `None` if there is none.
    fn find(
        &self,
        id: &ClusterId,
        registries: &[Offered],
    ) -> impl Future<Output = Result<Option<KnownCluster>, Unread>> + Send;
}

/// A cluster of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCluster {
    /// The cluster.
    pub cluster: ClusterRef,
    /// True if it is being deleted.
    pub is_deleting: bool,
    /// The registries whose search finds it.
    pub registries: BTreeSet<RegistryName>,
}

/// Clusters that cannot be read now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unread(pub String);

/// The clusters of a HyperFleet API.
#[derive(Clone, Debug)]
pub struct ApiDirectory {
    /// Its client.
    pub client: Client,
    /// Maximum time to find a cluster.
    pub time: Duration,
    /// Ends the calls at work.
    pub stop: CancellationToken,
}

// === impl ApiDirectory ===

impl Directory for ApiDirectory {
    async fn find(&self, id: &ClusterId, registries: &[Offered]) -> Result<Option<KnownCluster>, Unread> {
        let budget = Budget::new(self.time, self.stop.clone());
        let calls = self.client.within(&budget);
        let unread = |error: Error| Unread(error.to_string());
        let Some(found) = calls.get(CLUSTERS, id.as_str()).await.map_err(unread)? else { return Ok(None) };
        // Without it the cluster could be another one.
        let Some(created) = found.created_time else {
            return Err(Unread(format!("cluster {id} has no created_time")));
        };
        let cluster = ClusterRef { id: id.to_string(), incarnation: created.as_microsecond() };
        let mut finding = BTreeSet::new();
        for Offered { name, search, .. } in registries {
            let is_found = match search {
                None => true,
                Some(search) => {
                    let search = Some(format!("id = '{id}' and ({search})"));
                    let fields = FIELDS.map(str::to_owned).to_vec();
                    let query = ListQuery { search, fields, size: Some(1), ..ListQuery::default() };
                    !calls.list(CLUSTERS, &query).await.map_err(unread)?.items.is_empty()
                }
            };
            if is_found {
                finding.insert(name.clone());
            }
        }
        Ok(Some(KnownCluster { cluster, is_deleting: found.is_deleting(), registries: finding }))
    }
}
