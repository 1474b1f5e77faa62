//! A namespace on an API server: the emulator's, or a real one's.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use emulators::kubernetes::{Authorization, Kubernetes, Settings};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::{ByteString, NamespaceResourceScope};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::watch;

use crate::api_server::{create_namespace, delete_namespace, real_kubeconfig};
use crate::rig::{Outcome, Rig, pull_secret};

/// The Kubernetes Secret's name.
pub const NAME: &str = "cls-123-pull-secret";

/// The kind of API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Emulator,
    /// The emulator with RBAC on.
    Guarded,
    Real,
}

pub struct Place {
    pub rig: Rig,
    pub namespace: String,
    pub client: Client,
    kubeconfig: PathBuf,
    emulator: Option<Kubernetes>,
}

/// A proxy to the API server that counts what is sent through it.
pub struct Line {
    pub kubeconfig: PathBuf,
    sent: watch::Receiver<usize>,
}

impl Line {
    pub async fn until_sent(&mut self, count: usize) {
        drop(self.sent.wait_for(|sent| *sent >= count).await.unwrap());
    }
}

impl Place {
    /// `None`, with a line that says why, where there is no such server; in CI that is a failure.
    pub async fn new(kind: Kind) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let rig = Rig::new().await;
        let (emulator, kubeconfig) = match kind {
            Kind::Emulator | Kind::Guarded => {
                let is_guarded = matches!(kind, Kind::Guarded);
                let authorization = if is_guarded { Authorization::Rbac } else { Authorization::Off };
                let emulator = Kubernetes::start(Settings { authorization, ..Settings::default() }).await.unwrap();
                let path = rig.path("kubeconfig");
                daemon::file::replace(&path, emulator.kubeconfig().as_bytes()).unwrap();
                (Some(emulator), path)
            }
            Kind::Real => (None, real_kubeconfig()?),
        };
        let file = Kubeconfig::read_from(&kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        let namespace = format!("job-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let place = Self { rig, namespace, client: Client::try_from(config).unwrap(), kubeconfig, emulator };
        place.create_namespace(&place.namespace).await;
        Some(place)
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub fn emulator(&self) -> &Kubernetes {
        self.emulator.as_ref().unwrap()
    }

    /// The Job, generation 1, handed everything that the phase needs.
    pub fn job(&self, name: &str) -> Command {
        let mut job = self.rig.job(&if name.is_empty() { String::new() } else { pull_secret(name) });
        job.env("CLUSTER_NAME", "production-cluster")
            .env("MANAGEMENT_NAMESPACE", &self.namespace)
            .env("MANAGEMENT_KUBECONFIG", &self.kubeconfig)
            .env("GENERATION", "1");
        job
    }

    pub async fn run(&self, name: &str, arguments: &[&str]) -> Outcome {
        let mut job = self.job(name);
        // A dry run leaves no result unless it is asked for; the rig asks by its path.
        self.rig.run(job.args(arguments)).await
    }

    pub async fn stored(&self, name: &str) -> Outcome {
        let outcome = self.run(name, &[]).await;
        assert_eq!(outcome.code, Some(0), "{outcome:#?}");
        outcome
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType: Default>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn secrets(&self) -> Api<Secret> {
        self.api()
    }

    pub async fn secret(&self) -> Option<Secret> {
        self.secrets().get_opt(NAME).await.unwrap()
    }

    pub fn content(secret: &Secret) -> String {
        let ByteString(bytes) = &secret.data.as_ref().unwrap()[".dockerconfigjson"];
        String::from_utf8(bytes.clone()).unwrap()
    }

    /// A body for [`Self::put`] that holds a pull secret.
    pub fn docker(name: &str) -> Value {
        json!({"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": pull_secret(name)}})
    }

    /// Creates an unmanaged Secret with these labels.
    pub async fn put(&self, labels: Value, mut body: Value) -> Secret {
        body["metadata"] = json!({"name": NAME, "labels": labels});
        let secret: Secret = serde_json::from_value(body).unwrap();
        self.secrets().create(&PostParams::default(), &secret).await.unwrap()
    }

    /// A [`Line`] of its own.
    pub async fn line(&self) -> Line {
        let mut kubeconfig: Value =
            serde_saphyr::from_str(&std::fs::read_to_string(&self.kubeconfig).unwrap()).unwrap();
        let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();
        let (scheme, target) = server.split_once("://").map(|(scheme, target)| (scheme, target.to_owned())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        kubeconfig["clusters"][0]["cluster"]["server"] = json!(format!("{scheme}://{address}"));
        let (count, sent) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, count) = (target.clone(), count.clone());
                tokio::spawn(async move { Box::pin(carry(client, &target, &count)).await });
            }
        });
        let path = self.rig.path("line-kubeconfig");
        daemon::file::replace(&path, kubeconfig.to_string().as_bytes()).unwrap();
        Line { kubeconfig: path, sent }
    }

    /// A kubeconfig for a ServiceAccount that has the Role of `examples/cluster-access.yaml` here and no other.
    pub async fn kubeconfig_of_the_job(&self) -> PathBuf {
        let (access, jobs) =
            (include_str!("../../../examples/cluster-access.yaml"), include_str!("../../../deploy/jobs.yaml"));
        let first = |text: &str, kind: &str| {
            let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
            documents.into_iter().find(|document| document["kind"] == kind).unwrap()
        };
        let (mut role, mut binding) = (first(access, "Role"), first(access, "RoleBinding"));
        let (mut cluster_role, mut cluster_binding) = (first(jobs, "ClusterRole"), first(jobs, "ClusterRoleBinding"));
        // One of its own for each test.
        cluster_role["metadata"]["name"] = json!(self.namespace);
        cluster_binding["metadata"]["name"] = json!(self.namespace);
        cluster_binding["roleRef"]["name"] = json!(self.namespace);
        cluster_binding["subjects"][0]["namespace"] = json!(self.namespace);
        let cluster_role: ClusterRole = serde_json::from_value(cluster_role).unwrap();
        let cluster_binding: ClusterRoleBinding = serde_json::from_value(cluster_binding).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &cluster_role).await.unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &cluster_binding).await.unwrap();
        role["metadata"]["namespace"] = json!(self.namespace);
        binding["metadata"]["namespace"] = json!(self.namespace);
        binding["subjects"][0]["namespace"] = json!(self.namespace);
        let parameters = PostParams::default();
        let account = json!({"metadata": {"name": "pullsecret-adapter-job"}});
        let accounts = self.api::<ServiceAccount>();
        accounts.create(&parameters, &serde_json::from_value(account).unwrap()).await.unwrap();
        self.api::<Role>().create(&parameters, &serde_json::from_value(role).unwrap()).await.unwrap();
        self.api::<RoleBinding>().create(&parameters, &serde_json::from_value(binding).unwrap()).await.unwrap();
        let request = serde_json::from_value(json!({"spec": {"audiences": [], "expirationSeconds": 3600}})).unwrap();
        let token = accounts.create_token_request("pullsecret-adapter-job", &parameters, &request).await.unwrap();
        let mut kubeconfig: Value =
            serde_saphyr::from_str(&std::fs::read_to_string(&self.kubeconfig).unwrap()).unwrap();
        kubeconfig["users"][0]["user"] = json!({"token": token.status.unwrap().token});
        let path = self.rig.path("job-kubeconfig");
        daemon::file::replace(&path, kubeconfig.to_string().as_bytes()).unwrap();
        path
    }

    pub async fn create_namespace(&self, name: &str) {
        create_namespace(&self.client, name).await;
    }

    pub async fn delete_namespace(&self) {
        delete_namespace(&self.client, &self.namespace).await;
    }
}

/// Carries what a client sends, counted, and what it is answered.
async fn carry(client: TcpStream, target: &str, count: &watch::Sender<usize>) -> std::io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = TcpStream::connect(target).await?.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let mut buffer = [0; 16 * 1024];
    loop {
        let length = from_client.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        to_server.write_all(&buffer[..length]).await?;
        count.send_modify(|count| *count += 1);
    }
}
