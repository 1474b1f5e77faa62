//! The kubelets of all nodes, played: Pods of the syncer become ready, confirm revisions, and end when they are deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleet_model::names;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::cluster::{GLOBAL, SYNCER, SYSTEM};

/// The nodes whose Pods do not become ready.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broken(Arc<Mutex<BTreeSet<String>>>);

/// Ends with its value.
#[derive(Debug)]
pub(crate) struct Kubelets(JoinHandle<()>);

impl Kubelets {
    pub(crate) fn play(client: Client, broken: Broken) -> Self {
        Self(tokio::spawn(async move {
            let api: Api<Pod> = Api::namespaced(client.clone(), SYSTEM);
            loop {
                reconcile(&api, &broken).await;
                confirm(&client, &api, &broken).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }))
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn reconcile(api: &Api<Pod>, broken: &Broken) {
    let Ok(pods) = api.list(&ListParams::default().labels(&format!("name={SYNCER}"))).await else { return };
    for pod in pods {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if pod.metadata.deletion_timestamp.is_some() {
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            drop(api.delete(&name, &at_once).await);
            continue;
        }
        let node = node_of(&pod);
        let desired = if broken.has(&node) { "False" } else { "True" };
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        if ready.is_some_and(|ready| ready.status == desired) {
            continue;
        }
        let condition = json!({
            "type": "Ready",
            "status": desired,
            "reason": if desired == "True" { "" } else { "ContainersNotReady" },
            "lastTransitionTime": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        });
        // Plays the scheduler, which does not run either.
        if pod.spec.is_some_and(|spec| spec.node_name.is_none()) {
            bind(api, &name, &node).await;
        }
        let patch = json!({"status": {"phase": "Running", "conditions": [condition]}});
        drop(api.patch_status(&name, &PatchParams::default(), &Patch::Strategic(patch)).await);
    }
}

/// Confirms the current revision for the ready Pods of nodes that work, as the syncer does.
async fn confirm(client: &Client, pods: &Api<Pod>, broken: &Broken) {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM);
    let Ok(Some(secret)) = secrets.get_opt(GLOBAL).await else { return };
    let revision = secret.data.and_then(|mut data| data.remove("revision"));
    let Some(revision) = revision.and_then(|bytes| String::from_utf8(bytes.0).ok()) else { return };
    let Ok(pods) = pods.list(&ListParams::default().labels(&format!("name={SYNCER}"))).await else { return };
    let of_revision = |pod: &Pod| {
        let only = pod.metadata.annotations.as_ref().and_then(|all| all.get(names::ANNOTATION_REVISION).cloned());
        only.is_none_or(|only| only == revision)
    };
    let works =
        |pod: &&Pod| pod.metadata.deletion_timestamp.is_none() && of_revision(pod) && !broken.has(&node_of(pod));
    let confirmed: BTreeMap<String, String> = pods
        .iter()
        .filter(works)
        .map(|pod| (node_of(pod), format!("{revision} {}", pod.metadata.name.as_deref().unwrap())))
        .collect();
    let confirmations: Api<ConfigMap> = Api::namespaced(client.clone(), SYSTEM);
    let patch = Patch::Merge(json!({"data": confirmed}));
    // It may not exist yet.
    drop(confirmations.patch(names::GLOBAL_NODES, &PatchParams::default(), &patch).await);
}

/// The node that the DaemonSet's controller means a Pod for.
fn node_of(pod: &Pod) -> String {
    let spec = serde_json::to_value(&pod.spec).unwrap_or_default();
    let terms = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0";
    let node = spec.pointer(&format!("{terms}/matchFields/0/values/0")).or(spec.get("nodeName"));
    node.and_then(|node| node.as_str()).unwrap_or_default().to_owned()
}

async fn bind(api: &Api<Pod>, name: &str, node: &str) {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    drop(api.create_subresource::<_, serde_json::Value>("binding", name, &PostParams::default(), &binding).await);
}

impl Broken {
    pub(crate) fn breaks(&self, node: &str) {
        self.0.lock().unwrap().insert(node.to_owned());
    }

    pub(crate) fn repair(&self, node: &str) {
        self.0.lock().unwrap().remove(node);
    }

    fn has(&self, node: &str) -> bool {
        self.0.lock().unwrap().contains(node)
    }
}
