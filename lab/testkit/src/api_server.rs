//! An API server, the emulator's with RBAC or a real one, and its objects as another client handles them.

use std::path::PathBuf;
use std::time::Duration;

use emulators::kubernetes::{Authorization, Kubernetes, Settings};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kubernetes::Object;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::environment::{missing, variable};

/// Maximum time until an expected event, on a busy machine.
pub const TIMEOUT: Duration = Duration::from_mins(2);

/// The kind of API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Emulator,
    Real,
}

/// An API server, and an administrator's client for it.
pub struct ApiServer {
    pub kubeconfig: Kubeconfig,
    pub client: Client,
    emulator: Option<Kubernetes>,
}

impl ApiServer {
    /// `None`, with a line that gives the reason, where there is no such server; in CI that is a failure.
    pub async fn start(kind: Kind) -> Option<Self> {
        Self::with(kind, Settings::default()).await
    }

    /// The same, with other settings for the emulator; it has RBAC in any case, as a real one does.
    pub async fn with(kind: Kind, settings: Settings) -> Option<Self> {
        let (emulator, kubeconfig) = match kind {
            Kind::Emulator => {
                let settings = Settings { authorization: Authorization::Rbac, ..settings };
                let emulator = Kubernetes::start(settings).await.unwrap();
                let mut kubeconfig = Kubeconfig::from_yaml(&emulator.kubeconfig()).unwrap();
                // The token stands in the address as well, for kubectl; here the user's entry has to be enough.
                *address(&mut kubeconfig) = emulator.url();
                (Some(emulator), kubeconfig)
            }
            Kind::Real => (None, Kubeconfig::read_from(real_kubeconfig()?).unwrap()),
        };
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &KubeConfigOptions::default()).await.unwrap();
        Some(Self { kubeconfig, client: Client::try_from(config).unwrap(), emulator })
    }

    /// # Panics
    ///
    /// If the server is a real one.
    pub fn emulator(&self) -> &Kubernetes {
        self.emulator.as_ref().unwrap()
    }

    pub fn is_real(&self) -> bool {
        self.emulator.is_none()
    }

    /// The kubeconfig with a new token for a `ServiceAccount`.
    pub async fn kubeconfig_of(&self, namespace: &str, account: &str) -> Kubeconfig {
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
        let accounts = self.api::<ServiceAccount>(namespace);
        let token = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
        self.with_token(&token.status.unwrap().token)
    }

    /// A new token for a `ServiceAccount` and an audience.
    pub async fn token_for(&self, namespace: &str, account: &str, audience: &str) -> String {
        let spec = TokenRequestSpec { audiences: vec![audience.to_owned()], ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let accounts = self.api::<ServiceAccount>(namespace);
        let token = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
        token.status.unwrap().token
    }

    /// The kubeconfig with another bearer token.
    pub fn with_token(&self, token: &str) -> Kubeconfig {
        let mut kubeconfig = self.kubeconfig.clone();
        let user = json!({"name": kubeconfig.auth_infos[0].name, "user": {"token": token}});
        kubeconfig.auth_infos = vec![serde_json::from_value(user).unwrap()];
        kubeconfig
    }

    pub fn api<K: Object>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub async fn create<K: Object>(&self, namespace: &str, object: Value) -> K {
        let object: K = serde_json::from_value(object).unwrap();
        self.api(namespace).create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn create_namespace(&self, name: &str) {
        create_namespace(&self.client, name).await;
    }

    pub async fn delete_namespace(&self, name: &str) {
        delete_namespace(&self.client, name).await;
    }
}

/// The server's address in a kubeconfig with one cluster.
pub fn address(kubeconfig: &mut Kubeconfig) -> &mut String {
    kubeconfig.clusters[0].cluster.as_mut().unwrap().server.as_mut().unwrap()
}

pub(crate) async fn create_namespace(client: &Client, name: &str) {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
}

pub(crate) async fn delete_namespace(client: &Client, name: &str) {
    let api: Api<Namespace> = Api::all(client.clone());
    drop(api.delete(name, &DeleteParams::default()).await.unwrap());
}

/// The kubeconfig of the real API server.
pub(crate) fn real_kubeconfig() -> Option<PathBuf> {
    let kubeconfig = variable("REAL_KUBECONFIG").map(PathBuf::from);
    kubeconfig.or_else(|| missing("REAL_KUBECONFIG is not set: no real API server; `make real-parts` starts one"))
}

/// Polls until there is an answer; `event` names what is waited for.
///
/// # Panics
///
/// If there is none in time.
pub async fn until<T>(event: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            sleep(Duration::from_millis(25)).await;
        }
    };
    timeout(TIMEOUT, asking).await.unwrap_or_else(|_| panic!("it has not happened: {event}"))
}

/// Reads a text again until it contains all of these parts.
///
/// # Panics
///
/// If it does not in time.
pub async fn until_contains(parts: &[&str], mut read: impl AsyncFnMut() -> String) {
    let mut text = read().await;
    let reading = async {
        while !parts.iter().all(|part| text.contains(part)) {
            sleep(Duration::from_millis(25)).await;
            text = read().await;
        }
    };
    let is_in_time = timeout(TIMEOUT, reading).await.is_ok();
    assert!(is_in_time, "{parts:#?} in {text}");
}
