//! A node that is played: it ends the adapter's Pods as a test says, and does what the Job would do in Kubernetes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::place::Place;

/// How Pods end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    /// As a Job that has stored the pull secret, or removed it.
    Success,
    /// With this exit code and reason.
    Failure(i32, &'static str),
    /// Not at all.
    Never,
}

/// A node that is played.
pub(crate) struct Node {
    ending: Arc<Mutex<Ending>>,
    /// How many Pods were begun, by their clusters and generations.
    begun: Arc<Mutex<BTreeMap<(String, String), usize>>>,
    task: JoinHandle<()>,
    player: Player,
}

#[derive(Clone)]
struct Player {
    ending: Arc<Mutex<Ending>>,
    begun: Arc<Mutex<BTreeMap<(String, String), usize>>>,
    /// The content of the inputs that were mounted when their Pods started, by the Pods' uids. It is locked while a Pod is
    /// played, so that the watch and a test do not play the same Pod at the same time.
    mounted: Arc<tokio::sync::Mutex<BTreeMap<String, Option<ByteString>>>>,
    pods: Api<Pod>,
    inputs: Api<Secret>,
    outputs: Api<Secret>,
}

impl Node {
    pub(crate) fn start(place: &Place) -> Self {
        let (ending, begun) = (Arc::new(Mutex::new(Ending::Success)), Arc::default());
        let player = Player {
            ending: Arc::clone(&ending),
            begun: Arc::clone(&begun),
            mounted: Arc::default(),
            pods: Api::namespaced(place.client.clone(), &place.namespace),
            inputs: place.inputs(),
            outputs: place.outputs(),
        };
        let playing = player.clone();
        let task = tokio::spawn(async move {
            // Without waits it would not yield while the server is gone, and nobody could end it.
            let mut events = watcher(playing.pods.clone(), watcher::Config::default()).default_backoff().boxed();
            while let Some(event) = events.next().await {
                if let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event {
                    playing.play(&pod).await;
                }
            }
        });
        Self { ending, begun, task, player }
    }

    /// From now on Pods end so; those that wait, too.
    pub(crate) async fn will(&self, ending: Ending) {
        *self.ending.lock().unwrap() = ending;
        for pod in self.player.pods.list(&kube::api::ListParams::default()).await.unwrap().items {
            self.player.play(&pod).await;
        }
    }

    /// How many Pods were begun for a cluster at a generation.
    pub(crate) fn begun(&self, cluster: &str, generation: i64) -> usize {
        let key = (cluster.to_owned(), generation.to_string());
        self.begun.lock().unwrap().get(&key).copied().unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Player {
    /// Plays a Pod as it is now: a watch may be behind, and a kubelet does not run Pods that have gone.
    async fn play(&self, observed: &Pod) {
        let mut mounted = self.mounted.lock().await;
        let name = observed.metadata.name.as_deref().unwrap_or_default();
        // The server may be gone; the watch lists the Pods again when it is back.
        let Ok(Some(pod)) = self.pods.get_opt(name).await else { return };
        if pod.metadata.uid != observed.metadata.uid || pod.metadata.deletion_timestamp.is_some() {
            return;
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let pod = serde_json::to_value(pod).unwrap();
        let text = |place: &str| pod.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned();
        let label = |name: &str| text(&format!("/metadata/labels/{}", name.replace('/', "~1")));
        let (name, cluster) = (text("/metadata/name"), label("hyperfleet.io/resource-id"));
        let phase = text("/status/phase");
        if cluster.is_empty() || phase == "Succeeded" || phase == "Failed" {
            return;
        }
        if phase != "Running" {
            // As a kubelet: without its volumes a Pod does not start.
            let Some(volume) = self.mount(&pod, &cluster).await else { return };
            mounted.insert(uid.clone(), volume);
            let key = (cluster.clone(), label("hyperfleet.io/generation"));
            *self.begun.lock().unwrap().entry(key).or_default() += 1;
            self.report(&name, "Running", &json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
        }
        let ending = self.ending.lock().unwrap().clone();
        let (code, said) = match ending {
            Ending::Never => return,
            Ending::Success => (0, self.succeed(&pod, &cluster, mounted.get(&uid).cloned().flatten()).await),
            Ending::Failure(code, reason) => {
                (code, json!({"status": "failure", "reason": reason, "message": "it went wrong", "details": {}}))
            }
        };
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let terminated = json!({"exitCode": code, "reason": "Completed", "message": said.to_string(),
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"});
        self.report(&name, phase, &json!({"terminated": terminated})).await;
    }

    async fn report(&self, pod: &str, phase: &str, state: &Value) {
        let container = json!({"name": "pull-secret", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
            "state": state});
        let status = json!({"status": {"phase": phase, "containerStatuses": [container]}});
        // It may have been removed meanwhile.
        let _gone = self.pods.patch_status(pod, &PatchParams::default(), &Patch::Merge(&status)).await;
    }

    /// Reads the input that the Pod mounts; the inner `None` is a Pod that mounts none, the outer one an input that is missing.
    async fn mount(&self, pod: &Value, cluster: &str) -> Option<Option<ByteString>> {
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        if !volumes.iter().any(|volume| volume["name"] == "input") {
            return Some(None);
        }
        let input = self.inputs.get_opt(&format!("cluster-{cluster}-pullsecret-data")).await.ok()??;
        Some(input.data.unwrap().remove("pullsecret"))
    }

    /// Does what the Job would do, and says what it would say.
    async fn succeed(&self, pod: &Value, cluster: &str, content: Option<ByteString>) -> Value {
        let container = &pod["spec"]["containers"][0];
        let variable = |name: &str| {
            let found = container["env"].as_array().unwrap().iter().find(|variable| variable["name"] == name);
            found.and_then(|variable| variable["value"].as_str()).unwrap_or_default().to_owned()
        };
        let output = format!("{cluster}-pull-secret");
        if container["args"].as_array().unwrap().contains(&json!("--delete")) {
            let _absent = self.outputs.delete(&output, &DeleteParams::default()).await;
            return json!({"status": "success", "reason": "SecretDeleted", "message": "deleted", "details": {}});
        }
        let content = content.unwrap();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {
                "name": output,
                "labels": {"managed-by": "hyperfleet", "cluster-id": cluster},
                "annotations": {"hyperfleet.io/generation": variable("GENERATION")},
            },
            "data": {".dockerconfigjson": content},
        });
        let parameters = PatchParams::apply("job").force();
        self.outputs.patch(&output, &parameters, &Patch::Apply(&secret)).await.unwrap();
        let project = variable("GCP_PROJECT_ID");
        let details = json!({
            "clusterId": cluster, "secretName": format!("hyperfleet-{cluster}-pull-secret"), "secretVersion": 1,
            "gcpProject": project, "namespace": variable("MANAGEMENT_NAMESPACE"), "generation": variable("GENERATION"),
            "versionsAdded": 1, "durationMs": 12, "apiCalls": {"getSecret": 1, "addVersion": 1},
        });
        json!({"status": "success", "reason": "SecretStored", "message": "stored as version 1", "details": details})
    }
}
