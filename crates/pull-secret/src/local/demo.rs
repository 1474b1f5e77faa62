//! The story of one cluster's pull secret, told by the real Job against the Secret Manager emulator.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use docker_config::{Digest, Limits};
use emulators::secret_manager::{SecretManager, Settings};
use fleet_model::names;
use rand::RngExt as _;
use secrecy::ExposeSecret as _;
use secret_store::google::{self, Endpoint};
use secret_store::{GoogleSecretManager, SecretId, SecretStore, Version, VersionState};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::Instant;

use crate::output::{print, table, tell};

const CLUSTER: &str = "cls-demo-1";
const PROJECT: &str = "demo-project-1";

/// The acts of the story: what it shows, and the generation and pull secret that the Job is given.
const ACTS: [(&str, u8, &str); 3] = [
    ("1. A new cluster: the secret is created and its first version added", 1, FIRST),
    ("2. The same again: nothing is written", 1, FIRST),
    ("3. The credential of quay.io is rotated: a new version, the old one destroyed", 2, ROTATED),
];

/// `demo-user` with an invented password, twice.
const FIRST: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="},"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;
/// The same with another password for quay.io.
const ROTATED: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTI="},"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;

struct Demo {
    emulator: SecretManager,
    folder: TempDir,
    digest_key: [u8; 32],
}

/// Runs all acts, then shows what is in the store.
pub(super) async fn run() -> anyhow::Result<ExitCode> {
    let demo = Demo::start().await?;
    for (title, generation, pull_secret) in ACTS {
        tell(format_args!("\n{title}"));
        let took = demo.run_job(generation, pull_secret).await?;
        tell(format_args!("   done in {} ms", took.as_millis()));
    }
    tell("\nWhat is in the store now (digests are keyed: they tell contents apart without telling them):\n");
    let table = demo.versions().await?;
    demo.emulator.shutdown().await;
    print(table)
}

// === impl Demo ===

impl Demo {
    async fn start() -> anyhow::Result<Self> {
        let emulator = SecretManager::start(Settings::default()).await?;
        tell(format_args!(
            "Secret Manager emulator on http://{}: in memory, for development and tests only",
            emulator.address()
        ));
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let digest_key: [u8; 32] = rand::rng().random();
        let demo = Self { emulator, folder, digest_key };
        daemon::file::replace(&demo.path("digest-key"), &digest_key)?;
        Ok(demo)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The Job as Kubernetes would run it: a process of its own, told everything by its environment.
    async fn run_job(&self, generation: u8, pull_secret: &str) -> anyhow::Result<Duration> {
        let file = self.path("pull-secret.json");
        daemon::file::replace(&file, pull_secret.as_bytes())?;
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let start = Instant::now();
        let status = job(&program)
            .env("CLUSTER_ID", CLUSTER)
            .env("CLUSTER_NAME", "demo")
            .env("GCP_PROJECT_ID", PROJECT)
            .env("GENERATION", generation.to_string())
            .env("PULL_SECRET_FILE", &file)
            .env("DIGEST_KEY_FILE", self.path("digest-key"))
            .env("RETAIN_VERSIONS", "1")
            .env("RESULTS_PATH", self.path("result.json"))
            .env("SECRET_MANAGER_EMULATOR_HOST", self.emulator.address().to_string())
            .status()
            .await
            .context("cannot start the Job")?;
        ensure!(status.success(), "the Job has failed: {status}");
        Ok(start.elapsed())
    }

    async fn versions(&self) -> anyhow::Result<String> {
        let store = GoogleSecretManager::connect(&google::Settings {
            project: PROJECT.parse()?,
            location: None,
            endpoint: Endpoint::Emulator(self.emulator.address().to_string()),
            call_timeout: Duration::from_secs(5),
        })
        .await?;
        let secret: SecretId = names::secret_name(&CLUSTER.parse()?).parse()?;
        let mut rows = Vec::new();
        for version in store.list_versions(&secret).await? {
            let state = match version.state {
                VersionState::Live => "enabled",
                VersionState::Disabled => "disabled",
                VersionState::Destroyed => "destroyed",
            };
            let content = store.read_version(&secret, version.number).await?;
            rows.push([version.number.to_string(), state.to_owned(), self.digest(&content)]);
        }
        Ok(format!("{}\n{}", store.path(&secret), table(["VERSION", "STATE", "DIGEST"], rows)))
    }

    fn digest(&self, version: &Version) -> String {
        let Version::Live(content) = version else { return "-".to_owned() };
        let bytes = content.expose_secret();
        let document = docker_config::parse(bytes, &Limits::default());
        let digest = document.map_or_else(|_problems| Digest::of_bytes(bytes), |document| document.digest());
        digest.keyed(&self.digest_key).to_string()
    }
}

/// Nothing of this process's environment reaches the Job: what it is given is all that is shown.
fn job(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["run-job", "pull-secret"]).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    command
}
