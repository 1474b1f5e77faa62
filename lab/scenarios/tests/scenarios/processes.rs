//! Processes of a fleet plane: the API, and adapters.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use testkit::broker::Broker;
use testkit::program;

/// The servers that an adapter uses besides its broker.
#[derive(Clone, Copy)]
pub(crate) struct Servers<'a> {
    /// The address of the API.
    pub(crate) api: &'a str,
    /// The topic of the Sentinel's events; the namespace of the Jobs has the same name.
    pub(crate) topic: &'a str,
    pub(crate) kubeconfig: &'a Path,
}

/// A process of ours that has said on stderr that it runs.
pub(crate) async fn started(mut command: Command, first: &str) -> (Child, String) {
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).await.unwrap();
    assert!(line.contains(first), "{line}");
    (child, line)
}

/// An API with the keys of pull secrets and the token of their reader in this folder, and its address.
pub(crate) async fn api(folder: &Path, environment: &[(&str, &str)]) -> (Child, String) {
    let files = [("key", "k".repeat(32)), ("token", "a-token-of-this-test".to_owned())];
    for (name, content) in &files {
        daemon::file::replace(&folder.join(name), content.as_bytes()).unwrap();
    }
    let config = folder.join("api.yaml");
    let keys = json!({"pull_secret": {
        "keys": [{"id": "one", "file": folder.join("key")}],
        "reader_token_file": folder.join("token"),
    }});
    daemon::file::replace(&config, keys.to_string().as_bytes()).unwrap();
    let mut command = program::pull_secret(&["api", "--server-port=0", "--health-port=0", "--metrics-port=0"]);
    command.arg("--config").arg(&config).envs(environment.iter().copied()).current_dir(folder);
    let (api, line) = started(command, "HyperFleet API on ").await;
    let address = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    (api, address.trim_end_matches(',').to_owned())
}

/// An adapter that reads pull secrets with the token in the API's folder.
pub(crate) async fn adapter(folder: &Path, servers: Servers<'_>, broker: &Broker) -> Child {
    let config = json!({
        "apiVersion": "hyperfleet.redhat.com/v1alpha1", "kind": "AdapterConfig",
        "metadata": {"name": "pullsecret-adapter", "namespace": servers.topic},
        "spec": {
            "adapterType": "pullsecret",
            "hyperfleetAPI": {"url": servers.api, "tokenPath": folder.join("token")},
            "broker": {"topic": servers.topic},
            "kubernetes": {"kubeconfig": servers.kubeconfig, "lease": "pullsecret-adapter"},
            "health": {"port": 0}, "metrics": {"port": 0},
        },
    });
    let path = folder.join("adapter.yaml");
    daemon::file::replace(&path, config.to_string().as_bytes()).unwrap();
    let mut command = program::pull_secret(&["adapter"]);
    command.arg("--config").arg(&path).envs(broker.iter().cloned());
    // RabbitMQ makes what is missing by itself, and the adapter refuses what has no effect.
    if broker.iter().all(|(name, _)| *name != "BROKER_RABBITMQ_URL") {
        command.env("BROKER_GOOGLEPUBSUB_CREATE_IF_MISSING", "true");
    }
    started(command, "pullsecret-adapter of clusters").await.0
}
