//! Confirms the applied revision, so that the controller knows what this node has.
//!
//! The confirmation is one value in a ConfigMap that all nodes share: under the node's name the revision and the Pod. The Role
//! allows to patch that one object; a replaced Pod confirms anew, so the confirmation of a former node with the name does
//! not count.

use std::time::Duration;

use daemon::backoff::Backoff;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::source::http::{self, Server};
use crate::source::{ApiSettings, ObjectName};
use crate::status::SharedStatus;

/// Back-off while the API server takes no confirmation.
const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1)).with_jitter(20);

/// Time after which the confirmation is repeated, in case that the ConfigMap was replaced. The repetition changes nothing on
/// the server.
const REPEAT: Backoff = Backoff::doubling(Duration::from_mins(10), Duration::from_mins(10)).with_jitter(20);

/// The object that takes the confirmations, and the names under which this process confirms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfirmSettings {
    /// The ConfigMap.
    pub config_map: ObjectName,
    /// The node.
    pub node: String,
    /// The Pod.
    pub pod: String,
}

/// Confirms each applied revision until the future is dropped.
pub async fn run(settings: ConfirmSettings, api: ApiSettings, status: SharedStatus) {
    let mut applied = status.applied();
    let server = api.server();
    let mut failures = 0_u32;
    loop {
        let revision = applied.borrow_and_update().clone();
        let wait = match revision {
            None => None,
            Some(revision) => Some(match confirm(&server, &settings, &revision).await {
                Ok(()) => {
                    if failures > 0 {
                        info!(operation = "confirm", "The applied revision is confirmed again");
                    }
                    failures = 0;
                    REPEAT.delay(1, rand::random())
                }
                Err(reason) => {
                    if failures == 0 {
                        warn!(operation = "confirm", "The applied revision cannot be confirmed: {reason}");
                    }
                    failures = failures.saturating_add(1);
                    RETRY.delay(failures, rand::random())
                }
            }),
        };
        if next(&mut applied, wait).await.is_err() {
            return;
        }
    }
}

/// Confirms a revision. The error is a phrase for the log.
async fn confirm(server: &Server, settings: &ConfirmSettings, revision: &str) -> Result<(), String> {
    let ConfirmSettings { config_map: ObjectName { namespace, name }, node, pod } = settings;
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}?fieldManager=sync-global-pullsecret");
    let patch = json!({ "data": { node.as_str(): format!("{revision} {pod}") } });
    match http::merge_patch(server, &path, patch.to_string().into_bytes()).await.map(|status| status.as_u16()) {
        Ok(200) => Ok(()),
        Ok(403) => Err("the service account may not patch the ConfigMap (403): see the Role".to_owned()),
        Ok(404) => Err("there is no such ConfigMap (404): its controller creates it".to_owned()),
        Ok(status) => Err(format!("the API server answers {status}")),
        Err(error) => Err(format!("the API server cannot be reached: {error}")),
    }
}

/// Waits for another revision, or for the time. Fails when no revision will be applied any more.
async fn next(
    applied: &mut watch::Receiver<Option<String>>,
    wait: Option<Duration>,
) -> Result<(), watch::error::RecvError> {
    match wait {
        None => applied.changed().await,
        Some(wait) => timeout(wait, applied.changed()).await.unwrap_or(Ok(())),
    }
}
