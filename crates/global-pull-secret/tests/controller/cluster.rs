//! A hosted cluster with its control plane's namespace beside it, on one API server.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use emulators::kubernetes::Kubernetes;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::config::Kubeconfig;
use kubernetes::Object;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::api_server::ApiServer;
pub(crate) use testkit::api_server::{Kind, until};
use tokio::sync::{Mutex, MutexGuard};

pub(crate) const SYSTEM: &str = "kube-system";
pub(crate) const SYNCER: &str = "global-pull-secret-syncer";
pub(crate) const GLOBAL: &str = "global-pull-secret";
pub(crate) const ADDITIONAL: &str = "additional-pull-secret";
pub(crate) const STATUS: &str = "global-pull-secret-status";

/// There is one `kube-system` on the real server.
static REAL: Mutex<()> = Mutex::const_new(());

pub(crate) struct TestCluster {
    pub(crate) namespace: String,
    pub(crate) server: ApiServer,
    pub(crate) folder: TempDir,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl TestCluster {
    /// A cluster with that many nodes; `None`, with a line that gives the reason, if there is no such server.
    pub(crate) async fn new(kind: Kind, nodes: usize) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = ApiServer::start(kind).await?;
        let alone = if server.is_real() { Some(REAL.lock().await) } else { None };
        let namespace = format!("clusters-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let cluster = Self { namespace, server, folder: tempfile::tempdir().unwrap(), _alone: alone };
        cluster.clean().await;
        cluster.server.create_namespace(&cluster.namespace).await;
        for number in 0..nodes {
            let node: Node =
                serde_json::from_value(json!({"metadata": {"name": format!("node-{number:03}")}})).unwrap();
            Api::all(cluster.server.client.clone()).create(&PostParams::default(), &node).await.unwrap();
        }
        Some(cluster)
    }

    pub(crate) fn emulator(&self) -> &Kubernetes {
        self.server.emulator()
    }

    /// Removes what an earlier test has left on a real server.
    async fn clean(&self) {
        if !self.server.is_real() {
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
        drop(self.server.api::<Event>(SYSTEM).delete_collection(&now, &ListParams::default()).await.unwrap());
        let nodes: Api<Node> = Api::all(self.server.client.clone());
        drop(nodes.delete_collection(&now, &ListParams::default()).await.unwrap());
        let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let managed = ListParams::default().labels(&format!("name={SYNCER}"));
        until("no Pod is left", async || {
            let pods = self.server.api::<Pod>(SYSTEM).list(&managed).await.unwrap().items;
            for pod in &pods {
                drop(self.server.api::<Pod>(SYSTEM).delete(pod.metadata.name.as_ref().unwrap(), &at_once).await);
            }
            let set = self.server.api::<DaemonSet>(SYSTEM).get_opt(SYNCER).await.unwrap();
            (pods.is_empty() && set.is_none()).then_some(())
        })
        .await;
    }

    /// Deletes one of `kube-system`; one that is not there is fine.
    pub(crate) async fn delete<K: Object>(&self, name: &str) {
        match self.server.api::<K>(SYSTEM).delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            other => drop(other.unwrap()),
        }
    }

    pub(crate) async fn get<K: Object>(&self, name: &str) -> Option<K> {
        self.server.api::<K>(SYSTEM).get_opt(name).await.unwrap()
    }

    /// Puts a pull secret with this document.
    pub(crate) async fn put_secret(&self, namespace: &str, name: &str, text: &str) {
        let api = self.server.api::<Secret>(namespace);
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

    /// Applies the identities and permissions of `deploy/global-pull-secret/`, for this namespace.
    pub(crate) async fn deploy(&self) {
        let parts = [
            include_str!("../../../../deploy/global-pull-secret/control-plane.yaml"),
            include_str!("../../../../deploy/global-pull-secret/hosted-cluster.yaml"),
        ];
        let parse = |part: &str| -> Vec<Value> {
            serde_saphyr::from_multiple(&part.replace("clusters-example", &self.namespace)).unwrap()
        };
        for object in parts.into_iter().flat_map(parse) {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            match object["kind"].as_str().unwrap() {
                "ServiceAccount" => drop(self.server.create::<ServiceAccount>(&namespace, object).await),
                "Role" => drop(self.server.create::<Role>(&namespace, object).await),
                "RoleBinding" => drop(self.server.create::<RoleBinding>(&namespace, object).await),
                "ClusterRole" => self.create_for_all::<ClusterRole>(object).await,
                "ClusterRoleBinding" => self.create_for_all::<ClusterRoleBinding>(object).await,
                "Deployment" | "ConfigMap" | "Service" | "NetworkPolicy" => {}
                other => panic!("{other}"),
            }
        }
    }

    /// Creates an object of the whole cluster, in place of one that an earlier test has left.
    async fn create_for_all<K>(&self, object: Value)
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        let (object, api): (K, Api<K>) =
            (serde_json::from_value(object).unwrap(), Api::all(self.server.client.clone()));
        let name = object.meta().name.clone().unwrap();
        drop(api.delete(&name, &DeleteParams::default()).await);
        drop(api.create(&PostParams::default(), &object).await.unwrap());
    }

    /// A kubeconfig file for the ServiceAccount `global-pull-secret` of a namespace.
    pub(crate) async fn kubeconfig_of(&self, namespace: &str) -> PathBuf {
        let kubeconfig = self.server.kubeconfig_of(namespace, GLOBAL).await;
        self.written(&format!("{namespace}.kubeconfig"), &kubeconfig)
    }

    /// A kubeconfig file of an administrator.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.written("admin.kubeconfig", &self.server.kubeconfig)
    }

    fn written(&self, name: &str, kubeconfig: &Kubeconfig) -> PathBuf {
        let path: &Path = self.folder.path();
        let path = path.join(name);
        daemon::file::replace(&path, serde_json::to_string(kubeconfig).unwrap().as_bytes()).unwrap();
        path
    }
}
