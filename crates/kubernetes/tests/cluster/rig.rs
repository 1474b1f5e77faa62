//! A namespace on an API server: the emulator's, or a real one's.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use emulators::kubernetes::Kubernetes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Config};
use kubernetes::{Cluster, Object, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::api_server::{self, ApiServer};
pub(crate) use testkit::api_server::{Kind, TIMEOUT, until};

pub(crate) struct Rig {
    pub(crate) namespace: String,
    /// The crate, with an identity that may do everything.
    pub(crate) cluster: Cluster,
    /// The API server's address, for connections that a test stands in the middle of.
    pub(crate) address: String,
    server: ApiServer,
    _folder: TempDir,
}

impl Rig {
    /// `None`, with a line that gives the reason, where there is no such server; in CI that is a failure.
    pub(crate) async fn new(kind: Kind) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = ApiServer::start(kind).await?;
        let folder = tempfile::tempdir().unwrap();
        let config =
            Config::from_custom_kubeconfig(server.kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
        let url = &config.cluster_url;
        let address = format!("{}:{}", url.host().unwrap(), url.port_u16().unwrap_or(443));
        let cluster = connect(folder.path(), &server.kubeconfig).await;
        let namespace = format!("cluster-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        server.create_namespace(&namespace).await;
        Some(Self { namespace, cluster, address, server, _folder: folder })
    }

    pub(crate) fn emulator(&self) -> &Kubernetes {
        self.server.emulator()
    }

    /// The crate with another bearer token.
    pub(crate) async fn with_token(&self, token: &str) -> Cluster {
        connect(tempfile::tempdir().unwrap().path(), &self.server.with_token(token)).await
    }

    /// The crate, calling by another address.
    pub(crate) async fn through(&self, address: &str) -> Cluster {
        let mut kubeconfig = self.server.kubeconfig.clone();
        let server = api_server::address(&mut kubeconfig);
        *server = server.replace(&self.address, address);
        connect(tempfile::tempdir().unwrap().path(), &kubeconfig).await
    }

    /// The objects of a kind, as another client handles them.
    pub(crate) fn api<K: Object>(&self) -> Api<K> {
        self.server.api(&self.namespace)
    }

    pub(crate) async fn create<K: Object>(&self, object: Value) -> K {
        self.server.create(&self.namespace, object).await
    }

    /// Merges into an object as the field manager `another-manager`.
    pub(crate) async fn merge<K: Object>(&self, name: &str, patch: Value) -> K {
        let parameters = PatchParams { field_manager: Some("another-manager".to_owned()), ..PatchParams::default() };
        self.api().patch(name, &parameters, &Patch::Merge(&patch)).await.unwrap()
    }

    pub(crate) async fn delete_namespace(&self) {
        self.server.delete_namespace(&self.namespace).await;
    }

    /// Deletes the namespace, which stays on its way until [`Self::release_namespace`].
    pub(crate) async fn hold_namespace(&self) {
        let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/held"]}});
        drop(self.create::<ConfigMap>(held).await);
        self.delete_namespace().await;
    }

    pub(crate) async fn release_namespace(&self) {
        drop(self.merge::<ConfigMap>("held", json!({"metadata": {"finalizers": null}})).await);
    }
}

/// The crate with a kubeconfig, which it has read when this returns.
async fn connect(folder: &Path, kubeconfig: &Kubeconfig) -> Cluster {
    let path = folder.join("kubeconfig");
    daemon::file::replace(&path, serde_json::to_string(kubeconfig).unwrap().as_bytes()).unwrap();
    Cluster::connect(&settings(path)).await.unwrap()
}

pub(crate) fn settings(kubeconfig: PathBuf) -> Settings {
    Settings { kubeconfig: Some(kubeconfig), call_timeout: TIMEOUT, ..Settings::default() }
}
