//! A simulated node: it ends the adapter's Pods with a scripted result, and applies the Secret that the Job would apply.

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

use crate::environment::Environment;

/// The result that Pods end with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PodResult {
    /// Success: the pull secret was stored, or removed.
    Success,
    /// Failure with this exit code and reason.
    Failure(i32, &'static str),
    /// None: Pods keep running.
    Never,
}

/// A simulated node.
pub(crate) struct Node {
    result: Arc<Mutex<PodResult>>,
    /// The number of started Pods, by cluster and generation.
    started: Arc<Mutex<BTreeMap<(String, String), usize>>>,
    task: JoinHandle<()>,
    kubelet: Kubelet,
}

#[derive(Clone)]
struct Kubelet {
    result: Arc<Mutex<PodResult>>,
    started: Arc<Mutex<BTreeMap<(String, String), usize>>>,
    /// The content of the inputs that were mounted when their Pods started, by the Pods' uids. It is locked while a Pod is
    /// processed, so that the watch and a test do not process the same Pod at the same time.
    mounted: Arc<tokio::sync::Mutex<BTreeMap<String, Option<ByteString>>>>,
    pods: Api<Pod>,
    inputs: Api<Secret>,
    outputs: Api<Secret>,
}

impl Node {
    pub(crate) fn start(environment: &Environment) -> Self {
        let (result, started) = (Arc::new(Mutex::new(PodResult::Success)), Arc::default());
        let kubelet = Kubelet {
            result: Arc::clone(&result),
            started: Arc::clone(&started),
            mounted: Arc::default(),
            pods: Api::namespaced(environment.server.client.clone(), &environment.namespace),
            inputs: environment.inputs(),
            outputs: environment.outputs(),
        };
        let running = kubelet.clone();
        let task = tokio::spawn(async move {
            // Without a back-off it would not yield while the server is down, and could not be aborted.
            let mut events = watcher(running.pods.clone(), watcher::Config::default()).default_backoff().boxed();
            while let Some(event) = events.next().await {
                if let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event {
                    running.run_pod(&pod).await;
                }
            }
        });
        Self { result, started, task, kubelet }
    }

    /// Sets the result of all Pods, those that are running included.
    pub(crate) async fn end_pods_with(&self, result: PodResult) {
        *self.result.lock().unwrap() = result;
        for pod in self.kubelet.pods.list(&kube::api::ListParams::default()).await.unwrap().items {
            self.kubelet.run_pod(&pod).await;
        }
    }

    /// Returns the number of Pods that were started for a cluster at a generation.
    pub(crate) fn started(&self, cluster: &str, generation: i64) -> usize {
        let key = (cluster.to_owned(), generation.to_string());
        self.started.lock().unwrap().get(&key).copied().unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kubelet {
    /// Runs a Pod in its current state: the watch may lag, and a kubelet does not run deleted Pods.
    async fn run_pod(&self, observed: &Pod) {
        let mut mounted = self.mounted.lock().await;
        let name = observed.metadata.name.as_deref().unwrap_or_default();
        // The server may be down; the watch lists the Pods again when it is back.
        let Ok(Some(pod)) = self.pods.get_opt(name).await else { return };
        if pod.metadata.uid != observed.metadata.uid || pod.metadata.deletion_timestamp.is_some() {
            return;
        }
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let pod = serde_json::to_value(pod).unwrap();
        let text = |environment: &str| pod.pointer(environment).and_then(Value::as_str).unwrap_or_default().to_owned();
        let label = |name: &str| text(&format!("/metadata/labels/{}", name.replace('/', "~1")));
        let (name, cluster) = (text("/metadata/name"), label("hyperfleet.io/resource-id"));
        let phase = text("/status/phase");
        if cluster.is_empty() || phase == "Succeeded" || phase == "Failed" {
            return;
        }
        if phase != "Running" {
            // As with a kubelet, a Pod does not start without its volumes.
            let Some(volume) = self.mount(&pod, &cluster).await else { return };
            mounted.insert(uid.clone(), volume);
            let key = (cluster.clone(), label("hyperfleet.io/generation"));
            *self.started.lock().unwrap().entry(key).or_default() += 1;
            self.report(&name, "Running", &json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
        }
        let result = self.result.lock().unwrap().clone();
        let (code, message) = match result {
            PodResult::Never => return,
            PodResult::Success => (0, self.succeed(&pod, &cluster, mounted.get(&uid).cloned().flatten()).await),
            PodResult::Failure(code, reason) => {
                (code, json!({"status": "failure", "reason": reason, "message": "a scripted failure", "details": {}}))
            }
        };
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let terminated = json!({"exitCode": code, "reason": "Completed", "message": message.to_string(),
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"});
        self.report(&name, phase, &json!({"terminated": terminated})).await;
    }

    async fn report(&self, pod: &str, phase: &str, state: &Value) {
        let container = json!({"name": "pull-secret", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
            "state": state});
        let status = json!({"status": {"phase": phase, "containerStatuses": [container]}});
        // The Pod may have been deleted meanwhile.
        let _gone = self.pods.patch_status(pod, &PatchParams::default(), &Patch::Merge(&status)).await;
    }

    /// Reads the input that the Pod mounts. The inner `None` is a Pod that mounts none, the outer one a missing input.
    async fn mount(&self, pod: &Value, cluster: &str) -> Option<Option<ByteString>> {
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        if !volumes.iter().any(|volume| volume["name"] == "input") {
            return Some(None);
        }
        let input = self.inputs.get_opt(&format!("cluster-{cluster}-pullsecret-data")).await.ok()??;
        Some(input.data.unwrap().remove("pullsecret"))
    }

    /// Applies or deletes the Secret as the Job would, and returns its termination message.
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
            "gcpProject": project, "namespace": variable("MANAGEMENT_NAMESPACE"), "k8sSecretName": output,
            "generation": variable("GENERATION"),
            "versionsAdded": 1, "durationMs": 12, "apiCalls": [
                {"operation": "get_secret", "statusCode": 404, "count": 1, "ms": [5]},
                {"operation": "add_secret_version", "statusCode": 200, "count": 1, "ms": [245]},
            ],
        });
        json!({"status": "success", "reason": "SecretStored", "message": "stored as version 1", "details": details})
    }
}
