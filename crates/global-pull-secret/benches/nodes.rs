//! Five hundred nodes on one API server: requests and bytes a change, time until all are in sync, memory of the controller.
//!
//! The controller is the program itself; the API server is the emulator; each node's syncer is a watch of its own on the one
//! Secret, as raw HTTP, so that every byte is counted; kubelets are played by one task. In rolling mode a Pod's syncer watches
//! anew, as the real one does.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark prints, and fails where it cannot measure"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use emulators::kubernetes::Kubernetes;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

const NODES: usize = 500;
const SYSTEM: &str = "kube-system";
const SYNCER: &str = "global-pull-secret-syncer";
/// The user agent of the syncers.
const AGENT: &str = "bench-syncer";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("{NODES} nodes, one document of 10 registries each change");
    println!("mode       requests of the controller  of the syncers  bytes to syncers  all in sync  controller RSS");
    for mode in ["immediate", "rolling"] {
        runtime.block_on(Box::pin(measure(mode)));
    }
}

struct Bench {
    emulator: Kubernetes,
    client: Client,
    controller: Child,
    bytes: Arc<AtomicU64>,
    _folder: tempfile::TempDir,
}

async fn measure(mode: &str) {
    let bench = Bench::start(mode).await;
    // The first change creates everything, and the second one transfers what was created to the controller's apply.
    bench.change(0).await;
    bench.change(1).await;
    let (calls, bytes) = (bench.emulator.calls().len(), bench.bytes.load(Ordering::Relaxed));
    let began = Instant::now();
    bench.change(2).await;
    let took = began.elapsed();
    let received = bench.bytes.load(Ordering::Relaxed) - bytes;
    assert_ne!(received, 0, "the watches deliver nothing");
    let calls = bench.emulator.calls().split_off(calls);
    let of = |is_its: fn(&str) -> bool| calls.iter().filter(|call| is_its(&call.user_agent)).count();
    println!(
        "{mode:<10} {:>26} {:>15} {:>17} {:>10.1} s {:>13.1} MiB",
        of(|agent| agent.starts_with("global-pull-secret/")),
        of(|agent| agent == AGENT),
        received,
        took.as_secs_f64(),
        bench.memory() as f64 / 1024.0,
    );
    let mut by_kind: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.user_agent.starts_with("global-pull-secret/")) {
        *by_kind.entry(format!("{} {}", call.verb, call.resource)).or_default() += 1;
    }
    println!("           the controller's: {by_kind:?}");
}

impl Bench {
    async fn start(mode: &str) -> Self {
        let emulator = Kubernetes::start(emulators::kubernetes::Settings::default()).await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&emulator.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": "clusters-a"}})).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        for number in 0..NODES {
            let node: Node =
                serde_json::from_value(json!({"metadata": {"name": format!("node-{number:03}")}})).unwrap();
            Api::all(client.clone()).create(&PostParams::default(), &node).await.unwrap();
        }
        put(&client, "clusters-a", "pull-secret", 9).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        daemon::file::replace(&path, emulator.kubeconfig().as_bytes()).unwrap();
        let controller = Command::new(env!("CARGO_BIN_EXE_global-pull-secret"))
            .args(["run", "--control-plane-namespace", "clusters-a", "--syncer-image", "i", "--rollout", mode])
            .args(["--health-port", "0", "--metrics-port", "0", "--kubeconfig"])
            .arg(&path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let bytes = Arc::new(AtomicU64::new(0));
        let nodes = Nodes { client: client.clone(), address: emulator.address(), bytes: Arc::clone(&bytes) };
        tokio::spawn(nodes.play());
        Self { emulator, client, controller, bytes, _folder: folder }
    }

    /// Puts another additional Secret and waits until the status says that every node has it.
    async fn change(&self, revision: usize) {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), SYSTEM);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), SYSTEM);
        let current_revision = async || {
            let secret = secrets.get_opt("global-pull-secret").await.unwrap();
            let revision = secret.and_then(|secret| secret.data).and_then(|mut data| data.remove("revision"));
            revision.map(|revision| String::from_utf8(revision.0).unwrap())
        };
        let before = current_revision().await;
        put(&self.client, SYSTEM, "additional-pull-secret", revision).await;
        loop {
            let status = api.get_opt("global-pull-secret-status").await.unwrap();
            let summary = status.and_then(|status| status.data).unwrap_or_default();
            let all = format!("(RolledOut): {NODES}/{NODES}");
            let reported = summary.get("revision").cloned();
            let is_all = summary.get("summary").is_some_and(|summary| summary.contains(&all));
            if reported.is_some() && reported != before && reported == current_revision().await && is_all {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Memory of the controller in KiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.controller.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.controller.kill().unwrap();
        self.controller.wait().unwrap();
    }
}

/// All kubelets and syncers.
struct Nodes {
    client: Client,
    address: std::net::SocketAddr,
    bytes: Arc<AtomicU64>,
}

impl Nodes {
    async fn play(self) {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), SYSTEM);
        let mut known = BTreeSet::new();
        loop {
            // The server ends before its nodes do.
            self.confirm(&api).await;
            let Ok(pods) = api.list(&ListParams::default().labels(&format!("name={SYNCER}"))).await else { return };
            for pod in pods {
                let name = pod.metadata.name.clone().unwrap();
                if pod.metadata.deletion_timestamp.is_some() {
                    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
                    drop(api.delete(&name, &now).await);
                } else if known.insert(name.clone()) {
                    tokio::spawn(watch(self.address, Arc::clone(&self.bytes)));
                    let ready =
                        json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
                    let patch = Patch::Merge(json!({"status": {"phase": "Running", "conditions": [ready]}}));
                    drop(api.patch_status(&name, &PatchParams::default(), &patch).await);
                }
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Nodes {
    /// Confirms the current revision for all Pods that are for it. The syncers do so one by one; that cost is not measured.
    async fn confirm(&self, pods: &Api<Pod>) {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), SYSTEM);
        let Ok(Some(secret)) = secrets.get_opt("global-pull-secret").await else { return };
        let Some(revision) = secret.data.and_then(|mut data| data.remove("revision")) else { return };
        let revision = String::from_utf8(revision.0).unwrap();
        let Ok(pods) = pods.list(&ListParams::default().labels(&format!("name={SYNCER}"))).await else { return };
        let mut confirmed = BTreeMap::new();
        for pod in pods {
            let annotations = pod.metadata.annotations.unwrap_or_default();
            let only = annotations.get("hypershift.openshift.io/global-pull-secret-revision");
            if only.is_none_or(|only| *only == revision)
                && let (Some(node), Some(name)) = (pod.spec.and_then(|spec| spec.node_name), pod.metadata.name)
            {
                confirmed.insert(node, format!("{revision} {name}"));
            }
        }
        let confirmations: Api<ConfigMap> = Api::namespaced(self.client.clone(), SYSTEM);
        let patch = Patch::Merge(json!({"data": confirmed}));
        drop(confirmations.patch("global-pull-secret-nodes", &PatchParams::default(), &patch).await);
    }
}

/// One syncer's watch: read until it ends, every byte counted.
async fn watch(address: std::net::SocketAddr, bytes: Arc<AtomicU64>) {
    let Ok(mut stream) = TcpStream::connect(address).await else { return };
    let path = "/api/v1/namespaces/kube-system/secrets?watch=true&fieldSelector=metadata.name%3Dglobal-pull-secret";
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: {AGENT}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 16_384];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        bytes.fetch_add(read as u64, Ordering::Relaxed);
    }
}

async fn put(client: &Client, namespace: &str, name: &str, revision: usize) {
    let codes = ["dTpW", "dTpP", "dTpQ", "dTpX"];
    let auth = |registry: usize| json!({"auth": codes[(registry + revision) % 4]});
    let entries: serde_json::Map<String, Value> =
        (0..5).map(|registry| (format!("{name}-{registry}.example"), auth(registry))).collect();
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": json!({"auths": entries}).to_string()},
    }))
    .unwrap();
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    if api.create(&PostParams::default(), &secret).await.is_err() {
        let patch = json!({"stringData": secret.string_data});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}
