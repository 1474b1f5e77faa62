//! Namespaces on a Kubernetes API server, emulated or real.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use daemon::environment::{Environment as _, ProcessEnvironment};
use emulators::kubernetes::{Kubernetes, Settings};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kubernetes::Cluster;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The kind of API server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Emulator,
    Real,
}

/// The namespaces of one test, and a client for them.
pub(crate) struct Environment {
    /// The adapter's namespace.
    pub(crate) namespace: String,
    /// The namespace of the hosted control plane.
    pub(crate) management: String,
    pub(crate) client: Client,
    pub(crate) emulator: Option<Kubernetes>,
    kubeconfig: PathBuf,
    folder: TempDir,
}

impl Environment {
    /// Returns `None` and prints the reason if there is no such server; in CI that is a failure.
    pub(crate) async fn new(kind: Kind) -> Option<Self> {
        let settings = Settings { back_off: Duration::from_millis(100), ..Settings::default() };
        Self::with(kind, settings).await
    }

    pub(crate) async fn with(kind: Kind, settings: Settings) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        let (emulator, kubeconfig) = match kind {
            Kind::Emulator => {
                let emulator = Kubernetes::start(settings).await.unwrap();
                daemon::file::replace(&path, emulator.kubeconfig().as_bytes()).unwrap();
                (Some(emulator), path)
            }
            Kind::Real => (None, real_kubeconfig()?),
        };
        let file = Kubeconfig::read_from(&kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = |prefix: &str| format!("{prefix}-{}-{number}", std::process::id());
        let (namespace, management) = (namespace("adapter"), namespace("clusters"));
        let environment = Self { namespace, management, client, emulator, kubeconfig, folder };
        for name in [&environment.namespace, &environment.management] {
            let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            Api::<Namespace>::all(environment.client.clone()).create(&PostParams::default(), &object).await.unwrap();
        }
        let account: ServiceAccount =
            serde_json::from_value(json!({"metadata": {"name": "pullsecret-adapter-job"}})).unwrap();
        let accounts = Api::namespaced(environment.client.clone(), &environment.namespace);
        accounts.create(&PostParams::default(), &account).await.unwrap();
        Some(environment)
    }

    pub(crate) async fn cluster(&self) -> Cluster {
        let settings = kubernetes::Settings {
            kubeconfig: Some(self.kubeconfig.clone()),
            call_timeout: Duration::from_secs(10),
            ..kubernetes::Settings::default()
        };
        Cluster::connect(&settings).await.unwrap()
    }

    /// Writes a kubeconfig for a `ServiceAccount` of the adapter's namespace.
    pub(crate) async fn kubeconfig_of(&self, account: &str) -> PathBuf {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        let request = serde_json::from_value(json!({"spec": {}})).unwrap();
        let token: TokenRequest =
            accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
        let mut file = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        if let Some(emulator) = &self.emulator {
            // The URL in the kubeconfig contains a token as well, for kubectl.
            file.clusters[0].cluster.as_mut().unwrap().server = Some(emulator.url());
        }
        let user = json!({"name": file.auth_infos[0].name, "user": {"token": token.status.unwrap().token}});
        file.auth_infos = vec![serde_json::from_value(user).unwrap()];
        let path = self.folder.path().join(account);
        daemon::file::replace(&path, serde_json::to_string(&file).unwrap().as_bytes()).unwrap();
        path
    }

    /// Gives adapters another kubeconfig; the test itself keeps its own rights.
    pub(crate) fn with_kubeconfig(self, kubeconfig: PathBuf) -> Self {
        Self { kubeconfig, ..self }
    }

    /// Returns a client with the adapters' kubeconfig.
    pub(crate) async fn client_of_adapter(&self) -> Client {
        let file = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns the Secrets of the adapter's namespace.
    pub(crate) fn inputs(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Returns the Secrets of the hosted control plane's namespace.
    pub(crate) fn outputs(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.management)
    }

    pub(crate) async fn job(&self, name: &str) -> Option<Value> {
        self.jobs().get_opt(name).await.unwrap().map(|job| serde_json::to_value(job).unwrap())
    }

    /// Deletes the namespaces on a real server; the emulator is dropped as a whole.
    pub(crate) async fn end(self) {
        if self.emulator.is_none() {
            for name in [&self.namespace, &self.management] {
                let _gone = Api::<Namespace>::all(self.client.clone()).delete(name, &DeleteParams::default()).await;
            }
        }
    }
}

fn real_kubeconfig() -> Option<PathBuf> {
    let variable = |name| ProcessEnvironment.text(name).unwrap();
    if let Some(path) = variable("REAL_KUBECONFIG") {
        return Some(path.into());
    }
    let missing = "REAL_KUBECONFIG is not set: no real kube-apiserver; `make real-parts` gets and starts one";
    assert_ne!(variable("CI").as_deref(), Some("true"), "{missing}");
    eprintln!("not run: {missing}");
    None
}
