//! Reads the images of Pods for decisions: page by page, once for a revision that has taken keys away.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubernetes::Cluster;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::images::{ObservedImages, RunningImages};

/// Maximum time of reading all pages.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The reader, and the images that it has read last. Dropping it cancels a reading.
pub(super) struct ImageReader {
    cluster: Cluster,
    running: JoinSet<ObservedImages>,
    observed: Option<ObservedImages>,
}

impl ImageReader {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { cluster, running: JoinSet::new(), observed: None }
    }

    pub(super) fn observed(&self) -> Option<ObservedImages> {
        self.observed.clone()
    }

    /// Reads the images for a revision, unless a reading is running; a decision asks again.
    pub(super) fn start(&mut self, revision: Option<String>) {
        let Some(revision) = revision.filter(|_| self.running.is_empty()) else { return };
        let cluster = self.cluster.clone();
        self.running.spawn(async move {
            let images = match timeout(TIMEOUT, read(&cluster)).await {
                Ok(Ok(images)) => Ok(Arc::new(images)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_elapsed) => Err("the images of the running Pods could not be read within a minute".to_owned()),
            };
            ObservedImages { revision, at: Timestamp::now(), images }
        });
    }

    /// Waits for the images; forever if none are being read.
    pub(super) async fn wait(&mut self) {
        match self.running.join_next().await {
            Some(Ok(observed)) => {
                match &observed.images {
                    Ok(images) => tracing::info!(operation = "read_images", pods = images.pods, "images were read"),
                    Err(error) => tracing::warn!(operation = "read_images", "{error}"),
                }
                self.observed = Some(observed);
            }
            // The next decision asks again.
            Some(Err(_aborted)) => {}
            None => std::future::pending().await,
        }
    }
}

/// The images of the Pods of a hosted cluster.
pub async fn read(cluster: &Cluster) -> Result<RunningImages, kubernetes::KubernetesError> {
    let mut images = RunningImages::default();
    cluster.images_of_pods(|pod| images.add(Some(&pod.namespace), pod.images.iter().map(String::as_str))).await?;
    Ok(images)
}
