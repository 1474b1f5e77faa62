//! A hosted cluster with its control plane's namespace beside it, on one API server.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use daemon::environment::{Environment as _, ProcessEnvironment};
use emulators::kubernetes::{Authorization, Kubernetes};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

/// So long a test waits for what must happen, on a machine that has much else to do.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
pub(crate) const SYSTEM: &str = "kube-system";
pub(crate) const SYNCER: &str = "global-pull-secret-syncer";
pub(crate) const GLOBAL: &str = "global-pull-secret";
pub(crate) const ADDITIONAL: &str = "additional-pull-secret";
pub(crate) const STATUS: &str = "global-pull-secret-status";

/// There is one `kube-system` on the real server.
static REAL: Mutex<()> = Mutex::const_new(());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Emulator,
    Real,
}

pub(crate) struct TestCluster {
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) emulator: Option<Kubernetes>,
    pub(crate) folder: TempDir,
    kubeconfig: Kubeconfig,
    _alone: Option<MutexGuard<'static, ()>>,
}

/// A kind of objects in a namespace.
pub(crate) trait ManagedObject:
    Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug
{
}

impl<K> ManagedObject for K where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug
{
}

impl TestCluster {
    /// A cluster with that many nodes; `None`, with a line that gives the reason, if there is no such server.
    pub(crate) async fn new(kind: Kind, nodes: usize) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (emulator, kubeconfig, alone) = match kind {
            Kind::Emulator => {
                let settings =
                    emulators::kubernetes::Settings { authorization: Authorization::Rbac, ..Default::default() };
                let emulator = Kubernetes::start(settings).await.unwrap();
                let mut kubeconfig = Kubeconfig::from_yaml(&emulator.kubeconfig()).unwrap();
                kubeconfig.clusters[0].cluster.as_mut().unwrap().server = Some(emulator.url());
                (Some(emulator), kubeconfig, None)
            }
            Kind::Real => {
                let kubeconfig = Kubeconfig::read_from(real_kubeconfig()?).unwrap();
                (None, kubeconfig, Some(REAL.lock().await))
            }
        };
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let namespace = format!("clusters-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        let cluster = Self { namespace, client, emulator, folder, kubeconfig, _alone: alone };
        cluster.clean().await;
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": cluster.namespace}})).unwrap();
        Api::all(cluster.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        for number in 0..nodes {
            let node: Node =
                serde_json::from_value(json!({"metadata": {"name": format!("node-{number:03}")}})).unwrap();
            Api::all(cluster.client.clone()).create(&PostParams::default(), &node).await.unwrap();
        }
        Some(cluster)
    }

    /// Removes what an earlier test has left on a real server.
    async fn clean(&self) {
        if self.emulator.is_some() {
            return;
        }
        let now = DeleteParams::background();
        self.delete::<DaemonSet>(SYNCER).await;
        self.delete::<Secret>(ADDITIONAL).await;
        self.delete::<Secret>(GLOBAL).await;
        self.delete::<ConfigMap>(STATUS).await;
        for name in [SYNCER, GLOBAL] {
            self.delete::<RoleBinding>(name).await;
            self.delete::<Role>(name).await;
            self.delete::<ServiceAccount>(name).await;
        }
        drop(self.api::<Event>(SYSTEM).delete_collection(&now, &ListParams::default()).await.unwrap());
        let nodes: Api<Node> = Api::all(self.client.clone());
        drop(nodes.delete_collection(&now, &ListParams::default()).await.unwrap());
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let managed = ListParams::default().labels(&format!("name={SYNCER}"));
        until("no Pod is left", async || {
            let pods = self.api::<Pod>(SYSTEM).list(&managed).await.unwrap().items;
            for pod in &pods {
                drop(self.api::<Pod>(SYSTEM).delete(pod.metadata.name.as_ref().unwrap(), &at_once).await);
            }
            let set = self.api::<DaemonSet>(SYSTEM).get_opt(SYNCER).await.unwrap();
            (pods.is_empty() && set.is_none()).then_some(())
        })
        .await;
    }

    pub(crate) fn api<K: ManagedObject>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) async fn create<K: ManagedObject>(&self, namespace: &str, object: Value) -> K {
        let object: K = serde_json::from_value(object).unwrap();
        self.api(namespace).create(&PostParams::default(), &object).await.unwrap()
    }

    /// Deletes one of `kube-system`; one that is not there is fine.
    pub(crate) async fn delete<K: ManagedObject>(&self, name: &str) {
        match self.api::<K>(SYSTEM).delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other.unwrap()),
        }
    }

    pub(crate) async fn get<K: ManagedObject>(&self, name: &str) -> Option<K> {
        self.api::<K>(SYSTEM).get_opt(name).await.unwrap()
    }

    /// Puts a pull secret with this document.
    pub(crate) async fn put_secret(&self, namespace: &str, name: &str, text: &str) {
        let api = self.api::<Secret>(namespace);
        let observed = api.get_opt(name).await.unwrap();
        let secret: Secret = serde_json::from_value(json!({
            "metadata": {
                "name": name,
                "resourceVersion": observed.as_ref().and_then(|observed| observed.metadata.resource_version.clone()),
            },
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": text},
        }))
        .unwrap();
        match observed {
            None => drop(api.create(&PostParams::default(), &secret).await.unwrap()),
            Some(_) => drop(api.replace(name, &PostParams::default(), &secret).await.unwrap()),
        }
    }

    /// Applies the objects of `deploy/global-pull-secret.yaml` but its Deployment, for this namespace.
    pub(crate) async fn deploy(&self) {
        let yaml = include_str!("../../../../deploy/global-pull-secret.yaml");
        for part in yaml.replace("clusters-example", &self.namespace).split("\n---\n") {
            let object: Value = serde_saphyr::from_str(part).unwrap();
            let namespace = object["metadata"]["namespace"].as_str().unwrap().to_owned();
            match object["kind"].as_str().unwrap() {
                "ServiceAccount" => drop(self.create::<ServiceAccount>(&namespace, object).await),
                "Role" => drop(self.create::<Role>(&namespace, object).await),
                "RoleBinding" => drop(self.create::<RoleBinding>(&namespace, object).await),
                "Deployment" => {}
                other => panic!("{other}"),
            }
        }
    }

    /// A kubeconfig file for the ServiceAccount `global-pull-secret` of a namespace.
    pub(crate) async fn kubeconfig_of(&self, namespace: &str) -> PathBuf {
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
        let accounts = self.api::<ServiceAccount>(namespace);
        let result = accounts.create_token_request(GLOBAL, &PostParams::default(), &request).await.unwrap();
        let token = result.status.unwrap().token;
        let mut kubeconfig = self.kubeconfig.clone();
        let user = json!({"name": kubeconfig.auth_infos[0].name, "user": {"token": token}});
        kubeconfig.auth_infos = vec![serde_json::from_value(user).unwrap()];
        self.written(&format!("{namespace}.kubeconfig"), &kubeconfig)
    }

    /// A kubeconfig file of an administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.written("admin.kubeconfig", &self.kubeconfig)
    }

    fn written(&self, name: &str, kubeconfig: &Kubeconfig) -> PathBuf {
        let path: &Path = self.folder.path();
        let path = path.join(name);
        daemon::file::replace(&path, serde_json::to_string(kubeconfig).unwrap().as_bytes()).unwrap();
        path
    }
}

/// Asks again and again until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(result) = ask().await {
                return result;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("it has not happened: {what}"))
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
