//! A namespace on an API server: the emulator's, or a real one's.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use daemon::environment::{Environment as _, ProcessEnvironment};
use emulators::kubernetes::{Authorization, Kubernetes};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use kubernetes::{Cluster, Settings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Maximum time until an expected event, on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// The API server that a test runs against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Emulator,
    Real,
}

pub(crate) struct Rig {
    pub(crate) namespace: String,
    /// The crate, with an identity that may do everything.
    pub(crate) cluster: Cluster,
    /// The API server's address, for connections that a test stands in the middle of.
    pub(crate) address: String,
    kubeconfig: Kubeconfig,
    client: Client,
    emulator: Option<Kubernetes>,
    _folder: TempDir,
}

impl Rig {
    /// `None`, with a line that says why, where there is no such server; in CI that is a failure.
    pub(crate) async fn new(kind: Kind) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let folder = tempfile::tempdir().unwrap();
        let (emulator, kubeconfig) = match kind {
            Kind::Emulator => {
                let authorization = Authorization::Rbac;
                let settings = emulators::kubernetes::Settings { authorization, ..Default::default() };
                let emulator = Kubernetes::start(settings).await.unwrap();
                let mut kubeconfig = Kubeconfig::from_yaml(&emulator.kubeconfig()).unwrap();
                // The token stands in the address as well, for kubectl; here the user's entry has to be enough.
                *server(&mut kubeconfig) = emulator.url();
                (Some(emulator), kubeconfig)
            }
            Kind::Real => (None, Kubeconfig::read_from(real_kubeconfig()?).unwrap()),
        };
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
        let url = &config.cluster_url;
        let address = format!("{}:{}", url.host().unwrap(), url.port_u16().unwrap_or(443));
        let client = Client::try_from(config).unwrap();
        let cluster = connect(folder.path(), &kubeconfig).await;
        let namespace = format!("cluster-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let rig = Self { namespace, cluster, address, kubeconfig, client, emulator, _folder: folder };
        rig.create_namespace().await;
        Some(rig)
    }

    pub(crate) fn emulator(&self) -> &Kubernetes {
        self.emulator.as_ref().unwrap()
    }

    /// The crate with another bearer token.
    pub(crate) async fn with_token(&self, token: &str) -> Cluster {
        let mut kubeconfig = self.kubeconfig.clone();
        let user = json!({"name": kubeconfig.auth_infos[0].name, "user": {"token": token}});
        kubeconfig.auth_infos = vec![serde_json::from_value(user).unwrap()];
        connect(tempfile::tempdir().unwrap().path(), &kubeconfig).await
    }

    /// The crate, calling by another address.
    pub(crate) async fn through(&self, address: &str) -> Cluster {
        let mut kubeconfig = self.kubeconfig.clone();
        let server = server(&mut kubeconfig);
        *server = server.replace(&self.address, address);
        connect(tempfile::tempdir().unwrap().path(), &kubeconfig).await
    }

    /// The objects of a kind, as another client handles them.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    /// Merges into an object as the field manager `another-manager`.
    pub(crate) async fn merge<K>(&self, name: &str, patch: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default> + DeserializeOwned + Clone + Debug,
    {
        let parameters = PatchParams { field_manager: Some("another-manager".to_owned()), ..PatchParams::default() };
        self.api().patch(name, &parameters, &Patch::Merge(&patch)).await.unwrap()
    }

    pub(crate) async fn create_namespace(&self) {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": self.namespace}})).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }

    pub(crate) async fn delete_namespace(&self) {
        let api: Api<Namespace> = Api::all(self.client.clone());
        drop(api.delete(&self.namespace, &DeleteParams::default()).await.unwrap());
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

/// The address in a kubeconfig with one cluster.
fn server(kubeconfig: &mut Kubeconfig) -> &mut String {
    kubeconfig.clusters[0].cluster.as_mut().unwrap().server.as_mut().unwrap()
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

/// Polls until there is an answer.
pub(crate) async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, asking).await.unwrap_or_else(|_| panic!("it has not happened"))
}

fn real_kubeconfig() -> Option<PathBuf> {
    let variable = |name: &str| ProcessEnvironment.text(name).unwrap();
    let kubeconfig = variable("REAL_KUBECONFIG").map(PathBuf::from);
    if kubeconfig.is_none() {
        let missing = "REAL_KUBECONFIG is not set: no real API server; `make real-parts` starts one";
        assert_ne!(variable("CI").as_deref(), Some("true"), "{missing}");
        eprintln!("{missing}");
    }
    kubeconfig
}
