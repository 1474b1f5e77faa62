//! An emulated vault, as its administrator sees it.

use std::sync::Arc;
use std::time::Duration;

use daemon::file::replace;
use emulators::key_vault::{Call, Identity, KeyVault, Operation, Settings as Emulator};
use reqwest::{Certificate, Client, Method};
use secret_store::{AzureIdentity, AzureSettings, AzureStore, SecretId};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Longer than anything takes, on a machine that does much else.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Real time in which a second of the vault passes: an addition waits for the next one.
const SECOND: Duration = Duration::from_millis(10);

/// Lifetime of tokens, in the vault's time: longer than any test.
const TOKEN_LIFETIME: Duration = Duration::from_hours(1000);

/// The time until a version shows, where it does not show at once.
const LAG: Duration = Duration::from_mins(5);

/// A vault whose time passes fast; it ends when it is dropped.
pub(crate) struct FastVault {
    pub(crate) server: Arc<KeyVault>,
    pub(crate) folder: TempDir,
    identity: Identity,
    tenant: String,
    http: Client,
    clock: JoinHandle<()>,
}

// === impl FastVault ===

impl FastVault {
    pub(crate) async fn new() -> Self {
        Self::start(Emulator::default()).await
    }

    pub(crate) async fn start(emulator: Emulator) -> Self {
        Self::ticking(emulator, async |server| {
            loop {
                sleep(SECOND).await;
                server.advance_clock(Duration::from_secs(1));
            }
        })
        .await
    }

    /// A vault whose versions show only after [`LAG`], and whose time passes only after a version was written.
    pub(crate) async fn lagging() -> Self {
        let emulator = Emulator { version_lag: LAG, ..Emulator::default() };
        Self::ticking(emulator, lag).await
    }

    /// Adds a version that was written before all that follow, and does not show before the next of them.
    pub(crate) async fn put_unseen(&mut self, secret: &SecretId, body: Value) {
        self.clock.abort();
        drop((&mut self.clock).await);
        self.put(secret, body).await;
        self.server.advance_clock(Duration::from_secs(2));
        self.clock = tokio::spawn(lag(Arc::clone(&self.server)));
    }

    /// Lets all versions show.
    pub(crate) fn show(&self) {
        self.server.advance_clock(LAG);
    }

    async fn ticking<F>(emulator: Emulator, clock: impl FnOnce(Arc<KeyVault>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let emulator = Emulator { token_lifetime: TOKEN_LIFETIME, ..emulator };
        let (identity, tenant) = (emulator.identities[0].clone(), emulator.tenant.clone());
        let server = Arc::new(KeyVault::start(emulator).await.unwrap());
        let folder = tempfile::tempdir().unwrap();
        replace(&folder.path().join("ca.pem"), server.authority().as_bytes()).unwrap();
        let authority = Certificate::from_pem(server.authority().as_bytes()).unwrap();
        let http = Client::builder().tls_certs_only([authority]).build().unwrap();
        let clock = tokio::spawn(clock(Arc::clone(&server)));
        let vault = Self { server, folder, identity, tenant, http, clock };
        vault.renew_token();
        vault
    }

    pub(crate) fn settings(&self) -> AzureSettings {
        AzureSettings {
            vault: self.server.url().parse().unwrap(),
            identity: AzureIdentity::Workload {
                authority: self.server.url().parse().unwrap(),
                tenant: self.tenant.clone(),
                client_id: self.identity.client_id.clone(),
                token_file: self.folder.path().join("token"),
            },
            ca_file: Some(self.folder.path().join("ca.pem")),
            purge: true,
            call_timeout: TIMEOUT,
            calls: None,
        }
    }

    pub(crate) fn store(&self) -> AzureStore {
        AzureStore::connect(&self.settings()).unwrap()
    }

    /// Writes the workload's token anew.
    pub(crate) fn renew_token(&self) {
        let subject = self.identity.subject.as_deref().unwrap();
        replace(&self.folder.path().join("token"), self.server.assertion(subject).as_bytes()).unwrap();
    }

    /// Makes the next calls of an operation fail; see [`emulators::key_vault::Fault`].
    pub(crate) fn inject(&self, fault: &str) {
        self.server.inject(fault.parse().unwrap());
    }

    /// Carries out a request of an administrator, and returns status and document.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let url = self.server.url();
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", &self.identity.client_id),
            ("client_secret", self.identity.secret.as_deref().unwrap()),
            ("scope", "https://vault.azure.net/.default"),
        ];
        let form: Vec<_> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let token = self.http.post(format!("{url}/{}/oauth2/v2.0/token", self.tenant)).body(form.join("&"));
        let token: Value = serde_json::from_str(&token.send().await.unwrap().text().await.unwrap()).unwrap();
        let request = self.http.request(method, format!("{url}{path}"));
        let request = request.bearer_auth(token["access_token"].as_str().unwrap());
        let request = body.into_iter().fold(request, |request, body| request.body(body.to_string()));
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        Answer { status, document: serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default() }
    }

    async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let Answer { status, document } = self.ask(method, path, body).await;
        assert!((200..300).contains(&status), "{path}: {status} {document}");
        document
    }

    /// The versions, oldest first, with the name of each.
    pub(crate) async fn versions(&self, secret: &SecretId) -> Vec<Value> {
        let mut versions = Vec::new();
        let mut next = Some(format!("/secrets/{secret}/versions?api-version=7.6"));
        while let Some(path) = next {
            let page = self.admin(Method::GET, &path, None).await;
            versions.extend(page["value"].as_array().unwrap().clone());
            next = page["nextLink"].as_str().map(|link| link.strip_prefix(&self.server.url()).unwrap().to_owned());
        }
        versions.sort_by_key(|version| version["attributes"]["created"].as_i64());
        versions
    }

    /// The content that a reader gets.
    pub(crate) async fn current(&self, secret: &SecretId) -> Option<String> {
        let Answer { status, document } =
            self.ask(Method::GET, &format!("/secrets/{secret}?api-version=7.6"), None).await;
        (status == 200).then(|| document["value"].as_str().unwrap().to_owned())
    }

    /// Disables all versions with this number, as an administrator does.
    pub(crate) async fn disable(&self, secret: &SecretId, version: u64) {
        let number = version.to_string();
        for found in self.versions(secret).await {
            if found["tags"]["hyperfleet-version"] == number {
                let id = found["id"].as_str().unwrap().rsplit_once('/').unwrap().1.to_owned();
                let body = json!({"attributes": {"enabled": false}});
                self.admin(Method::PATCH, &format!("/secrets/{secret}/{id}?api-version=7.6"), Some(body)).await;
            }
        }
    }

    /// Adds a version as people do.
    pub(crate) async fn put(&self, secret: &SecretId, body: Value) {
        self.admin(Method::PUT, &format!("/secrets/{secret}?api-version=7.6"), Some(body)).await;
    }
}

/// Lets each version show after it was written.
async fn lag(server: Arc<KeyVault>) {
    let written = || {
        let is_written = |call: &Call| call.operation == Operation::SetSecret && call.outcome.is_some();
        server.calls().into_iter().filter(is_written).count()
    };
    let mut seen = written();
    loop {
        sleep(SECOND).await;
        let count = written();
        if count > seen {
            seen = count;
            server.advance_clock(LAG);
        }
    }
}

struct Answer {
    status: u16,
    document: Value,
}

impl Drop for FastVault {
    fn drop(&mut self) {
        self.clock.abort();
    }
}
