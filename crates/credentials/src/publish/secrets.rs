//! All pull secrets of a HyperFleet API.

use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_client::{Client, ListQuery};
use tokio_util::sync::CancellationToken;

use super::clusters::{Found, find, unread};
use crate::ams::{Content, PullSecrets};
use crate::credential::ClusterRef;
use crate::run::{ClusterError, ClusterErrorKind};

/// Maximum time of a complete list.
const LIST_TIMEOUT: Duration = Duration::from_mins(10);
/// Maximum time to read one pull secret.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Members of a cluster that a list asks for.
const FIELDS: [&str; 6] = ["id", "kind", "name", "generation", "created_time", "deleted_time"];

/// The pull secrets of the clusters that a search finds.
#[derive(Clone, Debug)]
pub struct ApiPullSecrets {
    client: Client,
    search: Option<String>,
}

// === impl ApiPullSecrets ===

impl ApiPullSecrets {
    /// Returns the pull secrets of an API; `search` is in the API's language, all without it.
    pub fn new(client: Client, search: Option<String>) -> Self {
        Self { client, search }
    }
}

impl PullSecrets for ApiPullSecrets {
    async fn clusters(&self) -> Result<Vec<ClusterRef>, ClusterError> {
        let budget = Budget::new(LIST_TIMEOUT, CancellationToken::new());
        let fields = FIELDS.map(str::to_owned).to_vec();
        let query = ListQuery { search: self.search.clone(), fields, ..ListQuery::default() };
        let calls = self.client.within(&budget);
        let (mut pages, mut found) = (calls.list_all("clusters", query), Vec::new());
        while let Some(page) = pages.next().await.map_err(|error| unread(&error))? {
            let living = page.into_iter().filter(|cluster| !cluster.is_deleting());
            found.extend(living.filter_map(|cluster| {
                let incarnation = cluster.created_time?.as_microsecond();
                Some(ClusterRef { id: cluster.id, incarnation })
            }));
        }
        Ok(found)
    }

    async fn exists(&self, id: &str) -> Result<bool, ClusterError> {
        let budget = Budget::new(READ_TIMEOUT, CancellationToken::new());
        let found = self.client.within(&budget).get("clusters", id).await;
        Ok(found.map_err(|error| unread(&error))?.is_some())
    }

    async fn read(&self, cluster: &ClusterRef) -> Result<Content, ClusterError> {
        let budget = Budget::new(READ_TIMEOUT, CancellationToken::new());
        match find(&self.client.within(&budget), cluster).await {
            Ok(None) => Ok(Content::Gone),
            Ok(Some(Found { resource, secret })) => Ok(Content::Here { generation: resource.generation, secret }),
            Err(error) if error.kind == ClusterErrorKind::NotWritable => Ok(Content::NotReadable),
            Err(error) => Err(error),
        }
    }
}
