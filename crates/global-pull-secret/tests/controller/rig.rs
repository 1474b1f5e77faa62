//! A running controller with a cluster.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fleet_model::ReportedCondition;
use global_pull_secret::run::Progress;
use global_pull_secret::server::Server;
use global_pull_secret::settings::Checked;
use global_pull_secret::status;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cluster::{ADDITIONAL, GLOBAL, Kind, STATUS, SYNCER, SYSTEM, TestCluster, until};
use crate::faults::ask;
use crate::kubelet::{Broken, Kubelets};

/// `{"auth": …}` of `u:` and this password.
pub(crate) const CANARY: &str = "c4n4ry";

pub(crate) struct Rig {
    pub(crate) cluster: TestCluster,
    pub(crate) broken: Broken,
    pub(crate) progress: watch::Receiver<Progress>,
    pub(crate) metrics: std::net::SocketAddr,
    pub(crate) health: std::net::SocketAddr,
    flags: BTreeMap<&'static str, String>,
    stop: CancellationToken,
    running: JoinHandle<()>,
    _kubelets: Kubelets,
}

/// `quay.io=1 b.io=2` as a document; the values become parts of passwords.
pub(crate) fn document(entries: &str) -> String {
    let entries = entries.split_whitespace().map(|entry| {
        let (key, value) = entry.split_once('=').unwrap();
        let password = format!("{CANARY}{value}");
        let auth = encode(format!("u:{password}").as_bytes());
        format!(r#""{key}": {{"auth": "{auth}"}}"#)
    });
    format!(r#"{{"auths": {{{}}}}}"#, entries.collect::<Vec<_>>().join(", "))
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

impl Rig {
    /// A controller with the rights that `deploy/` gives it, with a cluster of three nodes and the original `q.io=1`.
    pub(crate) async fn new(kind: Kind, flags: &[(&'static str, &str)]) -> Option<Self> {
        Self::with_nodes(kind, 3, flags).await
    }

    pub(crate) async fn with_nodes(kind: Kind, nodes: usize, more: &[(&'static str, &str)]) -> Option<Self> {
        let cluster = TestCluster::new(kind, nodes).await?;
        cluster.deploy().await;
        cluster.put_secret(&cluster.namespace, "pull-secret", &document("q.io=1")).await;
        let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
        let mut flags = BTreeMap::from([
            ("kubeconfig", path(cluster.kubeconfig_of(&cluster.namespace).await)),
            ("hosted-kubeconfig", path(cluster.kubeconfig_of(SYSTEM).await)),
            ("control-plane-namespace", cluster.namespace.clone()),
            ("syncer-image", "registry.example/syncer:1".to_owned()),
            ("syncer-priority-class", "system-node-critical".to_owned()),
            ("health-port", "0".to_owned()),
            ("metrics-port", "0".to_owned()),
        ]);
        flags.extend(more.iter().map(|(flag, value)| (*flag, (*value).to_owned())));
        let broken = Broken::default();
        let kubelets = Kubelets::play(cluster.server.client.clone(), broken.clone());
        let stop = CancellationToken::new();
        let server = server(&flags).await;
        Some(Self {
            progress: server.progress(),
            metrics: server.metrics_address(),
            health: server.health_address(),
            running: tokio::spawn(server.run(stop.clone())),
            cluster,
            broken,
            flags,
            stop,
            _kubelets: kubelets,
        })
    }

    /// Ends the controller in the middle of whatever it does, and starts another one.
    pub(crate) async fn restart(&mut self) {
        self.stop();
        let server = server(&self.flags).await;
        self.stop = CancellationToken::new();
        self.progress = server.progress();
        (self.metrics, self.health) = (server.metrics_address(), server.health_address());
        self.running = tokio::spawn(server.run(self.stop.clone()));
    }

    pub(crate) fn stop(&mut self) {
        self.running.abort();
    }

    pub(crate) async fn add(&self, entries: &str) {
        self.cluster.put_secret(SYSTEM, ADDITIONAL, &document(entries)).await;
    }

    pub(crate) async fn original(&self, entries: &str) {
        self.cluster.put_secret(&self.cluster.namespace, "pull-secret", &document(entries)).await;
    }

    /// The deployed entries, as [`document`] writes them.
    pub(crate) async fn deployed(&self) -> Option<String> {
        let secret: Secret = self.cluster.get(GLOBAL).await?;
        let text = String::from_utf8(secret.data?.remove(".dockerconfigjson")?.0).ok()?;
        let parsed: serde_json::Value = serde_json::from_str(&text).ok()?;
        let entries = parsed["auths"].as_object()?.iter().map(|(key, entry)| {
            let auth: k8s_openapi::ByteString = serde_json::from_value(entry["auth"].clone()).unwrap();
            let plain = String::from_utf8(auth.0).unwrap();
            format!("{key}={}", plain.trim_start_matches("u:").trim_start_matches(CANARY))
        });
        Some(entries.collect::<Vec<_>>().join(" "))
    }

    /// Waits until this is deployed.
    pub(crate) async fn deploys(&self, expected: &str) {
        until(expected, async || (self.deployed().await.as_deref() == Some(expected)).then_some(())).await;
    }

    pub(crate) async fn conditions(&self) -> Vec<ReportedCondition> {
        let status: Option<ConfigMap> = self.cluster.get(STATUS).await;
        status.as_ref().map(status::conditions_of).unwrap_or_default()
    }

    /// Waits until the status has a condition with this status and reason, such as `Valid=True/Valid`, and returns its message.
    /// `RolledOut` counts for the newest revision only.
    pub(crate) async fn shows(&self, expected: &str) -> String {
        until(expected, async || {
            let status: Option<ConfigMap> = self.cluster.get(STATUS).await;
            let conditions = status.as_ref().map(status::conditions_of).unwrap_or_default();
            let found = conditions
                .into_iter()
                .find(|one| format!("{}={}/{}", one.kind, one.status, one.reason.as_deref().unwrap()) == expected)?;
            let reported = status?.data?.remove("revision");
            let is_newest = !expected.starts_with("RolledOut=True") || reported == self.revision().await;
            is_newest.then_some(found.message.unwrap())
        })
        .await
    }

    /// Waits until every object that the controller creates is removed, the status last.
    pub(crate) async fn is_removed(&self) {
        let cluster = &self.cluster;
        until("everything is removed", async || {
            let is_left = cluster.get::<Secret>(GLOBAL).await.is_some()
                || cluster.get::<DaemonSet>(SYNCER).await.is_some()
                || cluster.get::<Role>(SYNCER).await.is_some()
                || cluster.get::<RoleBinding>(SYNCER).await.is_some()
                || cluster.get::<ServiceAccount>(SYNCER).await.is_some()
                || cluster.get::<ConfigMap>(STATUS).await.is_some();
            (!is_left).then_some(())
        })
        .await;
    }

    /// Touches the additional Secret, and waits for the end of a reconcile.
    async fn reconcile_again(&self, value: &str) {
        let mut progress = self.progress.clone();
        let reconciles = progress.borrow().reconciles;
        let touched = Patch::Merge(json!({"metadata": {"annotations": {"example.com/touched": value}}}));
        let secrets = self.cluster.server.api::<Secret>(SYSTEM);
        drop(secrets.patch(ADDITIONAL, &PatchParams::default(), &touched).await.unwrap());
        drop(progress.wait_for(|progress| progress.reconciles > reconciles).await.unwrap());
    }

    /// Checks that a reconcile without a change applies and deletes nothing, apart from the status, whose counts of nodes may
    /// still change.
    pub(crate) async fn is_at_rest(&self) {
        let actions = async || {
            let metrics = ask(self.metrics, "/metrics").await;
            let is_action =
                |line: &&str| line.starts_with("global_pull_secret_actions_total") && !line.contains("configmap");
            metrics.lines().filter(is_action).map(str::to_owned).collect::<Vec<_>>()
        };
        // The pass that made the last repair may still be about to be counted.
        self.reconcile_again("once").await;
        let before = actions().await;
        self.reconcile_again("twice").await;
        assert_eq!(actions().await, before);
    }

    pub(crate) async fn revision(&self) -> Option<String> {
        let secret: Secret = self.cluster.get(GLOBAL).await?;
        String::from_utf8(secret.data?.remove("revision")?.0).ok()
    }

    /// The reasons of all Events about the additional Secret, in order.
    pub(crate) async fn events(&self) -> Vec<String> {
        let events = self.cluster.server.api::<Event>(SYSTEM).list(&ListParams::default()).await.unwrap().items;
        let managed = events.into_iter().filter(|event| event.involved_object.name.as_deref() == Some(ADDITIONAL));
        let mut reported: Vec<_> =
            managed.map(|event| (event.event_time.map(|time| time.0), event.reason.unwrap())).collect();
        reported.sort();
        reported.into_iter().map(|(_, reason)| reason).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn server(flags: &BTreeMap<&'static str, String>) -> Server {
    let environment: BTreeMap<&str, &str> = BTreeMap::new();
    let checked = Checked::load(flags.clone(), &environment).unwrap();
    Server::prepare(checked).await.unwrap()
}
