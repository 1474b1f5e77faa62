//! A real OpenBao, as its administrator sees it; each test has a folder of its own in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Client, Method};
use secret_store::{SecretId, VaultLogin, VaultSettings, VaultStore};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use uuid::Uuid;

/// Longer than anything takes, on a machine that does much else.
const TIMEOUT: Duration = Duration::from_mins(2);

/// The server is taken away from all tests at once: such a test has it for itself.
static IN_USE: RwLock<()> = RwLock::const_new(());

/// The mount that every instance has.
pub(crate) const MOUNT: &str = "secret";

pub(crate) struct OpenBao {
    pub(crate) address: String,
    pub(crate) token_file: PathBuf,
    /// Names what a test makes.
    pub(crate) unique: String,
    /// For files of a test.
    files: TempDir,
    token: String,
    http: Client,
    _held: Held,
}

#[expect(dead_code, reason = "held, not read")]
enum Held {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

// === impl OpenBao ===

impl OpenBao {
    /// Shared with other tests; `None` after a line that says why there is none.
    pub(crate) async fn shared() -> Option<Self> {
        let Some(address) = variable("REAL_OPENBAO_ADDR") else { return missing("REAL_OPENBAO_ADDR") };
        Some(Self::new(address, Held::Shared(IN_USE.read().await)))
    }

    /// For a test that takes it away.
    pub(crate) async fn alone() -> Option<Self> {
        let Some(address) = variable("REAL_OPENBAO_ADDR") else { return missing("REAL_OPENBAO_ADDR") };
        if variable("REAL_OPENBAO_SCRIPT").is_none() {
            return missing("REAL_OPENBAO_SCRIPT");
        }
        Some(Self::new(address, Held::Alone(IN_USE.write().await)))
    }

    fn new(address: String, held: Held) -> Self {
        let token_file = PathBuf::from(variable("REAL_OPENBAO_TOKEN_FILE").unwrap());
        let token = fs::read_to_string(&token_file).unwrap().trim().to_owned();
        let unique = format!("test-{}", Uuid::now_v7().simple());
        let files = tempfile::tempdir().unwrap();
        Self { address, token_file, unique, files, token, http: Client::new(), _held: held }
    }

    /// Settings with the root token.
    pub(crate) fn settings(&self) -> VaultSettings {
        self.settings_with(VaultLogin::TokenFile(self.token_file.clone()))
    }

    pub(crate) fn settings_with(&self, login: VaultLogin) -> VaultSettings {
        VaultSettings {
            address: self.address.parse().unwrap(),
            namespace: None,
            mount: MOUNT.parse().unwrap(),
            folder: self.unique.parse().unwrap(),
            login,
            ca_file: None,
            call_timeout: TIMEOUT,
            calls: None,
        }
    }

    pub(crate) fn store(&self) -> VaultStore {
        VaultStore::connect(&self.settings()).unwrap()
    }

    /// Writes a file, readable by this user only.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.files.path().join(name);
        daemon::file::replace(&path, content.as_bytes()).unwrap();
        path
    }

    /// Carries out a request of an administrator.
    #[track_caller]
    pub(crate) fn admin(&self, method: Method, path: &str, body: &Value) -> impl Future<Output = Value> {
        let url = format!("{}/v1/{path}", self.address);
        let request = self.http.request(method, url).header("x-vault-token", &self.token).body(body.to_string());
        let path = path.to_owned();
        async move {
            let response = request.send().await.unwrap();
            let status = response.status();
            let text = response.text().await.unwrap();
            assert!(status.is_success(), "{path}: {status} {text}");
            serde_json::from_str(&text).unwrap_or_default()
        }
    }

    /// Deletes versions as people do, so that they can be restored.
    pub(crate) async fn disable(&self, secret: &SecretId, version: u64) {
        let path = format!("{MOUNT}/delete/{}/{secret}", self.unique);
        self.admin(Method::POST, &path, &json!({"versions": [version]})).await;
    }

    /// Makes a token with a policy of this text, in a file; returns the file and the policy's name.
    pub(crate) async fn token_with(&self, name: &str, policy: &str) -> PathBuf {
        let policy_name = format!("{}-{name}", self.unique);
        let policies = format!("sys/policies/acl/{policy_name}");
        self.admin(Method::POST, &policies, &json!({"policy": policy})).await;
        let made = self.admin(Method::POST, "auth/token/create", &json!({"policies": [policy_name]})).await;
        self.file(name, made["auth"]["client_token"].as_str().unwrap())
    }

    pub(crate) async fn revoke(&self, token_file: &Path) {
        let token = fs::read_to_string(token_file).unwrap();
        self.admin(Method::POST, "auth/token/revoke", &json!({"token": token.trim()})).await;
    }

    /// Runs the script that starts and ends the server.
    pub(crate) async fn script(&self, action: &str) {
        let (script, name) = (variable("REAL_OPENBAO_SCRIPT").unwrap(), variable("REAL_OPENBAO_NAME").unwrap());
        let output = Command::new(script).args([action, &name]).output().await.unwrap();
        assert!(output.status.success(), "{action}: {output:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "what is real is named by the environment")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Prints that the server is missing; with `CI=true` that is a failure.
pub(crate) fn missing<T>(name: &str) -> Option<T> {
    let why = format!("{name} is not set; hack/real-parts/openbao.sh up");
    assert!(variable("CI").is_none_or(|ci| ci != "true"), "{why}");
    eprintln!("skipped: {why}");
    None
}
