//! Looks at what is in Kubernetes while it happens: Jobs, Pods and Events must never hold a credential.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::world::{NAMESPACE, World, holds_credential};
use testkit::broker::fetch;

pub(crate) struct Watcher {
    stop: CancellationToken,
    task: JoinHandle<BTreeSet<String>>,
}

impl Watcher {
    pub(crate) fn start(world: &World) -> Self {
        let stop = CancellationToken::new();
        let (stopping, base) = (stop.clone(), world.kubernetes_url());
        let paths = [
            format!("{base}/apis/batch/v1/namespaces/{NAMESPACE}/jobs"),
            format!("{base}/api/v1/namespaces/{NAMESPACE}/pods"),
            format!("{base}/api/v1/namespaces/{NAMESPACE}/events"),
        ];
        let task = tokio::spawn(async move {
            let mut wrong = BTreeSet::new();
            while !stopping.is_cancelled() {
                for path in &paths {
                    // It may be down.
                    let text = fetch(path).await.unwrap_or_default();
                    if holds_credential(&text) {
                        wrong.insert(format!("a credential shows in {path}"));
                    }
                }
                sleep(Duration::from_secs(2)).await;
            }
            wrong
        });
        Self { stop, task }
    }

    pub(crate) async fn stop(self) -> BTreeSet<String> {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}
