//! The planes under load: processes around a real RabbitMQ, or the embedded plane in one process.

use std::path::Path;
use std::process::Stdio;

use emulators::secret_manager::{SecretManager, Settings as StoreSettings};
use hyperfleet_client::Client;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::{Load, Plane, variable};

const NAMESPACE: &str = "hyperfleet-system";
pub(super) const MANAGEMENT: &str = "clusters";
const IMAGE: &str = "burst/pull-secret:1";

impl Plane {
    /// Starts the embedded plane.
    pub(super) async fn embedded(load: Load) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(testkit::program::path("pull-secret-local"));
        command.args(["up", "--output", "json", "--log-level", "warn", "--port", "0"]).kill_on_drop(true);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = loop {
            let line = lines.next_line().await.unwrap().unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["event"] == "ready" {
                break event;
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        make_namespaces(Path::new(ready["kubeconfig"].as_str().unwrap()), &[MANAGEMENT]).await;
        let url = ready["api"].as_str().unwrap();
        let client = Client::new(hyperfleet_client::Settings::new(url.parse().unwrap())).unwrap();
        Self { load, _folder: folder, client, store: None, parts: vec![("embedded plane", child)] }
    }

    /// Starts API, Sentinel, adapter and Kubernetes emulator as processes around a broker.
    pub(super) async fn of_processes(broker: &str, load: Load) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = SecretManager::start(StoreSettings::default()).await.unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        daemon::file::replace(&folder.path().join("token"), b"burst-token").unwrap();
        let entities = "entities: [{kind: Cluster, plural: clusters, required_adapters: [validation, dns, placement, pullsecret]}]\n";
        daemon::file::replace(&folder.path().join("api.yaml"), entities.as_bytes()).unwrap();
        let image = format!("{IMAGE}={}", testkit::program::path("pull-secret").display());
        let arguments = ["emulator", "kubernetes", "--write-kubeconfig", "kubeconfig", "--run-pods", &image];
        let (kubernetes, _) = part(folder.path(), &arguments, &[("PATH", variable("PATH").unwrap())]).await;
        make_namespaces(&folder.path().join("kubeconfig"), &[NAMESPACE, MANAGEMENT]).await;
        make_service_account(&folder.path().join("kubeconfig")).await;
        let free = ["--health-port", "0", "--metrics-port", "0"];
        let token = ("HYPERFLEET_PULL_SECRET_READER_TOKEN_FILE", path("token"));
        let arguments =
            [&["api", "--config", "api.yaml", "--server-port", "0", "--log-level", "warn"], &free[..]].concat();
        let (api, line) = part(folder.path(), &arguments, &[token]).await;
        let url = line.strip_prefix("HyperFleet API on ").unwrap().split(',').next().unwrap().to_owned();
        let topic = format!("burst-{}", std::process::id());
        let broker = |kind: &str| [("BROKER_TYPE", kind.to_owned()), ("BROKER_RABBITMQ_URL", broker.to_owned())];
        let config = adapter((&url, &topic), load, &store.address().to_string(), ["token", "kubeconfig"].map(path));
        daemon::file::replace(&folder.path().join("adapter.yaml"), config.to_string().as_bytes()).unwrap();
        let (adapter, _) = part(folder.path(), &["adapter", "--config", "adapter.yaml"], &broker("rabbitmq")).await;
        let arguments =
            ["sentinel", "--resource-type", "clusters", "--hyperfleet-api-base-url", &url, "--broker-topic", &topic];
        let arguments = [&arguments[..], &free[..]].concat();
        let (sentinel, _) = part(folder.path(), &arguments, &broker("rabbitmq")).await;
        let client = Client::new(hyperfleet_client::Settings::new(url.parse().unwrap())).unwrap();
        let parts = vec![
            ("API (SQLite)", api),
            ("Sentinel", sentinel),
            ("adapter", adapter),
            ("Kubernetes emulator", kubernetes),
        ];
        Self { load, _folder: folder, client, store: Some(store), parts }
    }
}

fn adapter((url, topic): (&str, &str), load: Load, store: &str, [token, kubeconfig]: [String; 2]) -> Value {
    json!({
        "apiVersion": "hyperfleet.redhat.com/v1alpha1",
        "kind": "AdapterConfig",
        "metadata": {"name": "pullsecret-adapter", "namespace": NAMESPACE},
        "spec": {
            "adapterType": "pullsecret",
            "hyperfleetAPI": {"url": url, "tokenPath": token},
            "broker": {"type": "rabbitmq", "topic": topic},
            "kubernetes": {"kubeconfig": kubeconfig},
            "jobTemplate": {"image": IMAGE, "env": [
                {"name": "SECRET_MANAGER_EMULATOR_HOST", "value": store},
                {"name": "MANAGEMENT_KUBECONFIG", "value": kubeconfig},
            ]},
            "limits": {"writesPerMinute": load.writes, "runsPerProject": load.runs},
            "log": {"level": "warn"},
            "health": {"port": 0},
            "metrics": {"port": 0},
        },
    })
}

/// Starts a part; returns it with the first line that it says.
async fn part(folder: &Path, arguments: &[&str], environment: &[(&str, String)]) -> (Child, String) {
    let program = if arguments[0] == "emulator" { "pull-secret-local" } else { "pull-secret" };
    let mut command = Command::new(testkit::program::path(program));
    command.args(arguments).env_clear().envs(environment.iter().cloned()).env("TMPDIR", folder).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap_or_default();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, line)
}

async fn cluster(kubeconfig: &Path) -> kube::Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

async fn make_namespaces(kubeconfig: &Path, names: &[&str]) {
    let client = cluster(kubeconfig).await;
    for name in names {
        let object: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &object).await.unwrap();
    }
}

async fn make_service_account(kubeconfig: &Path) {
    let account = json!({"metadata": {"name": "pullsecret-adapter-job"}});
    let account: ServiceAccount = serde_json::from_value(account).unwrap();
    Api::namespaced(cluster(kubeconfig).await, NAMESPACE).create(&PostParams::default(), &account).await.unwrap();
}
