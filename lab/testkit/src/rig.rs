//! An emulator, a folder, and Jobs that are pointed at both.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use emulators::secret_manager::{SecretManager, Settings};
use rustix::process::Pid;
pub use rustix::process::Signal;
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{
    Endpoint, GoogleSecretManager, NewSecret, NewVersion, Replication, SecretId, SecretStore as _, Version,
    VersionNumber, VersionState,
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::program;

pub const PROJECT: &str = "my-project-1";
pub const CLUSTER: &str = "cls-123";
pub const SECRET: &str = "hyperfleet-cls-123-pull-secret";

/// The emulator's names of the methods that the quota of writes applies to.
pub const STORE_WRITES: [&str; 5] = ["createSecret", "updateSecret", "addVersion", "destroyVersion", "deleteSecret"];

/// Takes the calls out of a result: the number, the operation and the status of each entry. It must have a time for each call.
pub fn calls(result: &mut Value, member: &str) -> Vec<String> {
    let calls = result["details"].as_object_mut().unwrap().remove(member).unwrap();
    let calls: Vec<fleet_model::job::Calls> = serde_json::from_value(calls).unwrap();
    assert!(calls.iter().all(|call| call.times().count() == call.count as usize), "{calls:?}");
    calls.iter().map(|call| format!("{} {} {}", call.count, call.operation, call.status_code)).collect()
}

/// A pull secret for `user:word-<name>`, so that each name is other content.
pub fn pull_secret(name: &str) -> String {
    use base64::Engine as _;
    let auth = base64::engine::general_purpose::STANDARD.encode(format!("user:word-{name}"));
    format!(r#"{{"auths":{{"quay.io":{{"auth":"{auth}","email":"user@example.com"}}}}}}"#)
}

pub struct Rig {
    pub emulator: SecretManager,
    pub folder: TempDir,
    pub store: GoogleSecretManager,
}

/// The exit of a Job and all its output.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub result: Value,
}

impl Rig {
    pub async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub async fn with(settings: Settings) -> Self {
        let emulator = SecretManager::start(settings).await.unwrap();
        let store = GoogleSecretManager::connect(&secret_store::Settings {
            project: PROJECT.parse().unwrap(),
            location: None,
            endpoint: Endpoint::emulator(emulator.address().to_string()),
            call_timeout: Duration::from_secs(10),
            calls: None,
        })
        .await
        .unwrap();
        Self { emulator, folder: tempfile::tempdir().unwrap(), store }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command with an empty environment but for a complete one of the Job's.
    pub fn job(&self, pull_secret: &str) -> Command {
        let mut job = program::pull_secret(&["run-job", "pull-secret"]);
        job.current_dir(self.folder.path())
            .env("CLUSTER_ID", CLUSTER)
            .env("GCP_PROJECT_ID", PROJECT)
            .env("PULL_SECRET_DATA", pull_secret)
            .env("SECRET_MANAGER_EMULATOR_HOST", self.emulator.address().to_string())
            .env("RESULTS_PATH", self.path("result.json"));
        job
    }

    /// Runs a Job to its end.
    pub async fn run(&self, job: &mut Command) -> Outcome {
        self.finish(job.spawn().unwrap()).await
    }

    pub async fn finish(&self, job: Child) -> Outcome {
        let output = job.wait_with_output().await.unwrap();
        let result = std::fs::read_to_string(self.path("result.json")).unwrap_or_default();
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            result: serde_json::from_str(&result).unwrap_or_default(),
        }
    }

    /// Stores this content with a Job that must succeed.
    pub async fn stored(&self, name: &str) -> Outcome {
        let outcome = self.run(&mut self.job(&pull_secret(name))).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome
    }

    /// The versions in ascending order: the name of the content of a live one, or its state.
    pub async fn versions(&self) -> Vec<String> {
        let mut versions = Vec::new();
        for version in self.store.list_versions(&secret()).await.unwrap_or_default().iter().rev() {
            versions.push(match version.state {
                VersionState::Live => self.content(version.number).await,
                VersionState::Disabled => "disabled".to_owned(),
                VersionState::Destroyed => "destroyed".to_owned(),
            });
        }
        versions
    }

    async fn content(&self, number: VersionNumber) -> String {
        let Version::Live(live) = self.store.read_version(&secret(), number).await.unwrap() else {
            panic!("version {number} must be live")
        };
        let text = String::from_utf8(live.content.expose_secret().to_vec()).unwrap();
        let names = ["a", "b", "c", "d", "e"];
        names.iter().find(|name| pull_secret(name) == text).map_or(text.clone(), |name| (*name).to_owned())
    }

    pub async fn labels(&self) -> BTreeMap<String, String> {
        self.store.find(&secret()).await.unwrap().unwrap().metadata.labels
    }

    pub async fn annotations(&self) -> BTreeMap<String, String> {
        self.store.find(&secret()).await.unwrap().unwrap().metadata.annotations
    }

    /// Creates an unmanaged secret with these labels and one version.
    pub async fn unmanaged(&self, labels: &[(&str, &str)]) {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let new =
            NewSecret { labels, annotations: BTreeMap::new(), replication: Replication::Automatic { kms_key: None } };
        self.store.create(&secret(), &new).await.unwrap();
        let theirs = SecretSlice::from(b"theirs".to_vec());
        self.store.add_version(&secret(), &NewVersion::without_record(VersionNumber::FIRST, &theirs)).await.unwrap();
    }

    /// The methods called from the `from`th call on.
    pub fn methods_since(&self, from: usize) -> Vec<&'static str> {
        self.emulator.calls().iter().skip(from).map(|call| call.method.name()).collect()
    }

    /// Waits until that many calls have been answered.
    pub async fn answered(&self, count: usize) {
        while self.emulator.calls().iter().filter(|call| call.outcome.is_some()).count() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Disables a version, as an administrator might.
    pub async fn disable(&self, version: u64) {
        self.raw("POST", &format!("/v1/projects/{PROJECT}/secrets/{SECRET}/versions/{version}:disable")).await;
    }

    /// A request that the contract of a store does not have.
    pub async fn raw(&self, method: &str, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.emulator.address()).await.unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        stream.write_all(format!("{head}content-length: 2\r\n\r\n{{}}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    pub fn calls(&self) -> usize {
        self.emulator.calls().len()
    }
}

impl Outcome {
    /// The log's lines.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The log's operations, in order.
    pub fn operations(&self) -> Vec<String> {
        self.lines().iter().map(|line| line["operation"].as_str().unwrap_or("none").to_owned()).collect()
    }

    pub fn reason(&self) -> &str {
        self.result["reason"].as_str().unwrap_or("none")
    }

    pub fn message(&self) -> &str {
        self.result["message"].as_str().unwrap_or("none")
    }
}

pub fn signal(job: &Child, signal: Signal) {
    let id = i32::try_from(job.id().unwrap()).unwrap();
    rustix::process::kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
}

pub fn secret() -> SecretId {
    SECRET.parse().unwrap()
}

pub fn number(number: u64) -> VersionNumber {
    VersionNumber::new(number).unwrap()
}
