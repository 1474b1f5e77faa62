//! Clients of all projects, created when they are needed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tokio::sync::Mutex;

use super::GoogleSecretManager;
use crate::{Endpoint, Location, ProjectId, Settings, StoreError};

/// Creates the client of any project; the clients of one location share connections and credentials.
pub struct GoogleProjects {
    endpoint: Endpoint,
    call_timeout: Duration,
    clients: Mutex<BTreeMap<Option<Location>, GoogleSecretManager>>,
}

/// Maximum number of locations with a client. Google has fewer; others are invented names.
const MAX_LOCATIONS: usize = 100;

// === impl GoogleProjects ===

impl GoogleProjects {
    /// Creates no client yet.
    pub fn new(endpoint: Endpoint, call_timeout: Duration) -> Self {
        Self { endpoint, call_timeout, clients: Mutex::default() }
    }

    /// Returns the client of a project's secrets: the global ones, or those of a location.
    pub async fn client(
        &self,
        project: ProjectId,
        location: Option<Location>,
    ) -> Result<GoogleSecretManager, StoreError> {
        let mut clients = self.clients.lock().await;
        if let Some(client) = clients.get(&location) {
            return Ok(client.of_project(project));
        }
        let (endpoint, call_timeout) = (self.endpoint.clone(), self.call_timeout);
        let settings = Settings { project, location: location.clone(), endpoint, call_timeout, calls: None };
        let client = GoogleSecretManager::connect(&settings).await?;
        if clients.len() < MAX_LOCATIONS {
            clients.insert(location, client.of_project(settings.project));
        }
        Ok(client)
    }
}

impl fmt::Debug for GoogleProjects {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GoogleProjects").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
