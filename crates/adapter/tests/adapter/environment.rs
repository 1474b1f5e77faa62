//! Namespaces on a Kubernetes API server, emulated or real.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emulators::kubernetes::Settings;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Namespace, Secret, ServiceAccount};
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::config::Kubeconfig;
use kubernetes::Cluster;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::api_server::ApiServer;
pub(crate) use testkit::api_server::Kind;

/// The namespaces of one test, and an API server that has them.
pub(crate) struct Environment {
    /// The adapter's namespace.
    pub(crate) namespace: String,
    /// The namespace of the hosted control plane.
    pub(crate) management: String,
    pub(crate) server: ApiServer,
    /// That of adapters.
    kubeconfig: PathBuf,
    /// Maximum time of an adapter's call of the API server.
    call_timeout: Duration,
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
        let server = ApiServer::with(kind, settings).await?;
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = write(&folder, "administrator", &server.kubeconfig);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = |prefix: &str| format!("{prefix}-{}-{number}", std::process::id());
        let (namespace, management) = (namespace("adapter"), namespace("clusters"));
        for name in [&namespace, &management] {
            // The strictest level of Pod Security: Jobs have to satisfy it.
            let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
            let object = serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap();
            Api::<Namespace>::all(server.client.clone()).create(&PostParams::default(), &object).await.unwrap();
        }
        let account = json!({"metadata": {"name": "pullsecret-adapter-job"}});
        drop(server.create::<ServiceAccount>(&namespace, account).await);
        Some(Self { namespace, management, server, kubeconfig, call_timeout: Duration::from_secs(10), folder })
    }

    pub(crate) async fn cluster(&self) -> Cluster {
        let settings = kubernetes::Settings {
            kubeconfig: Some(self.kubeconfig.clone()),
            call_timeout: self.call_timeout,
            ..kubernetes::Settings::default()
        };
        Cluster::connect(&settings).await.unwrap()
    }

    /// Gives an adapter's call of the API server this time.
    pub(crate) fn with_call_timeout(self, call_timeout: Duration) -> Self {
        Self { call_timeout, ..self }
    }

    /// Gives adapters the rights of a `ServiceAccount` of their namespace; the test itself keeps its own.
    pub(crate) async fn with_rights_of(self, account: &str) -> Self {
        let kubeconfig = self.server.kubeconfig_of(&self.namespace, account).await;
        let kubeconfig = write(&self.folder, account, &kubeconfig);
        Self { kubeconfig, ..self }
    }

    /// Gives adapters a certificate of a client beside their token; PEM.
    pub(crate) fn with_certificate(self, certificate: &str, key: &str) -> Self {
        let mut kubeconfig = self.server.kubeconfig.clone();
        for user in kubeconfig.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut()) {
            user.client_certificate_data = Some(STANDARD.encode(certificate));
            user.client_key_data = Some(STANDARD.encode(key).into());
        }
        let kubeconfig = write(&self.folder, "certificate", &kubeconfig);
        Self { kubeconfig, ..self }
    }

    pub(crate) fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.server.client.clone(), &self.namespace)
    }

    /// Returns the Secrets of the adapter's namespace.
    pub(crate) fn inputs(&self) -> Api<Secret> {
        Api::namespaced(self.server.client.clone(), &self.namespace)
    }

    /// Returns the Secrets of the hosted control plane's namespace.
    pub(crate) fn outputs(&self) -> Api<Secret> {
        Api::namespaced(self.server.client.clone(), &self.management)
    }

    /// Returns the Events about a Job, as lines of their type, reason and message.
    pub(crate) async fn events_of(&self, job: &str) -> Vec<String> {
        let api: Api<Event> = Api::namespaced(self.server.client.clone(), &self.namespace);
        let about_job = ListParams::default()
            .fields(&format!("involvedObject.kind=Job,involvedObject.name={job},source=pullsecret-adapter"));
        let events = api.list(&about_job).await.unwrap().items;
        let line = |event: Event| [event.type_, event.reason, event.message].map(Option::unwrap).join(" ");
        events.into_iter().map(line).collect()
    }

    pub(crate) async fn job(&self, name: &str) -> Option<Value> {
        self.jobs().get_opt(name).await.unwrap().map(|job| serde_json::to_value(job).unwrap())
    }

    /// Deletes the namespaces on a real server; the emulator is dropped as a whole.
    pub(crate) async fn end(self) {
        if self.server.is_real() {
            for name in [&self.namespace, &self.management] {
                self.server.delete_namespace(name).await;
            }
        }
    }
}

fn write(folder: &TempDir, name: &str, kubeconfig: &Kubeconfig) -> PathBuf {
    let path = folder.path().join(name);
    daemon::file::replace(&path, serde_json::to_string(kubeconfig).unwrap().as_bytes()).unwrap();
    path
}
