//! The story of one cluster's pull secret, told by the real Job against the emulators.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use ::kubernetes::{self as cluster, SecretKey};
use anyhow::{Context as _, ensure};
use docker_config::{Digest, Limits};
use emulators::kubernetes::{self, Kubernetes};
use emulators::secret_manager::{self, SecretManager};
use fleet_model::names;
use rand::RngExt as _;
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::google::{self, Endpoint};
use secret_store::{GoogleSecretManager, SecretId, SecretStore, Version, VersionState};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::Instant;

use crate::output::{print, table, tell};

const CLUSTER: &str = "cls-demo-1";
const PROJECT: &str = "demo-project-1";
/// What placement would have created for the cluster.
const NAMESPACE: &str = "clusters-cls-demo-1";

/// The acts of the story: what it shows, and the generation and pull secret that the Job is given.
const ACTS: [(&str, u8, &str); 3] = [
    ("1. A new cluster: stored in Secret Manager, read back, handed over to HyperShift", 1, FIRST),
    ("2. The same again: nothing is written", 1, FIRST),
    ("3. The credential of quay.io is rotated: a new version, the old one destroyed, handed over", 2, ROTATED),
];

/// `demo-user` with an invented password, twice.
const FIRST: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="},"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;
/// The same with another password for quay.io.
const ROTATED: &str = r#"{"auths":{"quay.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTI="},"registry.redhat.io":{"auth":"ZGVtby11c2VyOmludmVudGVkLTE="}}}"#;

struct Demo {
    secret_manager: SecretManager,
    api_server: Kubernetes,
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
    tell("\nWhat is there now (digests are keyed: they tell contents apart without telling them):\n");
    let (versions, secret) = (demo.versions().await?, demo.kubernetes_secret().await?);
    let Demo { secret_manager, api_server, .. } = demo;
    secret_manager.shutdown().await;
    api_server.shutdown().await;
    print(format_args!("{versions}\n{secret}"))
}

// === impl Demo ===

impl Demo {
    async fn start() -> anyhow::Result<Self> {
        let secret_manager = SecretManager::start(secret_manager::Settings::default()).await?;
        let namespaces = vec![NAMESPACE.to_owned()];
        let api_server = Kubernetes::start(kubernetes::Settings { namespaces, ..Default::default() }).await?;
        tell(format_args!(
            "Secret Manager emulator on http://{}, Kubernetes emulator on {}:\nin memory, for development and tests only",
            secret_manager.address(),
            api_server.url()
        ));
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let digest_key: [u8; 32] = rand::rng().random();
        let demo = Self { secret_manager, api_server, folder, digest_key };
        daemon::file::replace(&demo.path("digest-key"), &digest_key)?;
        daemon::file::replace(&demo.path("kubeconfig"), demo.api_server.kubeconfig().as_bytes())?;
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
            .env("SECRET_MANAGER_EMULATOR_HOST", self.secret_manager.address().to_string())
            .env("MANAGEMENT_NAMESPACE", NAMESPACE)
            .env("MANAGEMENT_KUBECONFIG", self.path("kubeconfig"))
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
            endpoint: Endpoint::Emulator(self.secret_manager.address().to_string()),
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

    /// The Kubernetes Secret as `kubectl get secret -o yaml` would show it, its content as a digest.
    async fn kubernetes_secret(&self) -> anyhow::Result<String> {
        let settings = cluster::Settings {
            kubeconfig: Some(self.path("kubeconfig")),
            context: None,
            call_timeout: Duration::from_secs(5),
        };
        let key = SecretKey { namespace: NAMESPACE.to_owned(), name: names::handed_over_name(&CLUSTER.parse()?) };
        let cluster = cluster::Cluster::connect(&settings).await?;
        let secret = cluster.find_secret(&key).await?.context("the Kubernetes Secret is missing")?;
        let block = |values: &BTreeMap<String, String>| {
            let lines: Vec<_> = values.iter().map(|(name, value)| format!("    {name}: {value:?}\n")).collect();
            lines.concat()
        };
        let digest = secret.content.as_ref().map_or("-".to_owned(), |content| self.digest_of(content));
        Ok(format!(
            "apiVersion: v1\nkind: Secret\ntype: {}\nmetadata:\n  name: {}\n  namespace: {}\n  labels:\n{}  annotations:\n{}\
             data:\n  .dockerconfigjson: ({digest})\n",
            secret.kind,
            key.name,
            key.namespace,
            block(&secret.labels),
            block(&secret.annotations),
        ))
    }

    fn digest(&self, version: &Version) -> String {
        let Version::Live(content) = version else { return "-".to_owned() };
        self.digest_of(content)
    }

    fn digest_of(&self, content: &SecretSlice<u8>) -> String {
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
