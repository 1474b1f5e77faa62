//! `pull-secret prune`, `sweep` and `doctor` at OpenBao, at AWS, for which moto stands in, and at Azure, for which an emulator does,
//! on what Jobs have stored there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use emulators::key_vault::{Identity, KeyVault, Settings};
use hyperfleet_client::{NewReport, Status};
use pull_secret_job::settings::resolve_store;
use rstest::rstest;
use secret_store::{
    AnyStore, AwsIdentity, AwsKeys, AwsSettings, SecretId, SecretStore as _, StoreSettings, VersionState,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::environment::{missing, variable};
use testkit::hyperfleet::{self, HyperFleetApi};
use testkit::program;
use testkit::rig::pull_secret;
use tokio::process::Command;

use crate::aws::{KEY_ID, SECRET_KEY};

pub(crate) const CLUSTER: &str = "cls-123";
pub(crate) const SECRET: &str = "hyperfleet-cls-123-pull-secret";

/// A folder of its own in a store, beside an API.
pub(crate) struct Fleet {
    pub(crate) store: &'static str,
    pub(crate) variables: BTreeMap<&'static str, String>,
    pub(crate) files: TempDir,
    pub(crate) api: HyperFleetApi,
    /// The emulator, at Azure.
    pub(crate) vault: Option<KeyVault>,
}

/// The exit code, the lines of the output, and what is said beside it.
pub(crate) struct Printed {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<Value>,
    pub(crate) notes: String,
}

/// Returns the variables of the place in a vault and of the identity there, whose files are in this folder.
pub(crate) fn at_key_vault(server: &KeyVault, folder: &Path) -> BTreeMap<&'static str, String> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        daemon::file::replace(&path, text.as_bytes()).unwrap();
        path.display().to_string()
    };
    let identity = Identity::admin();
    [
        ("AZURE_KEY_VAULT_URL", server.url()),
        ("AZURE_CA_FILE", write("ca.crt", server.authority())),
        ("AZURE_FEDERATED_TOKEN_FILE", write("assertion", &server.assertion(&identity.subject.unwrap()))),
        ("AZURE_TENANT_ID", Settings::default().tenant),
        ("AZURE_CLIENT_ID", identity.client_id),
        ("AZURE_AUTHORITY_HOST", server.url()),
        ("AZURE_PURGE", "true".to_owned()),
    ]
    .into()
}

impl Fleet {
    /// `None` after a line that says why there is none.
    pub(crate) async fn at(store: &'static str) -> Option<Self> {
        let files = tempfile::tempdir().unwrap();
        let unique = files.path().file_name().unwrap().to_string_lossy().trim_matches('.').to_owned();
        let folder = format!("commands-{}-{unique}", std::process::id());
        let mut vault = None;
        let variables = if store == "azure" {
            let server = KeyVault::start(Settings::default()).await.unwrap();
            let variables = at_key_vault(&server, files.path());
            vault = Some(server);
            variables
        } else if store == "vault" {
            let Some(address) = variable("REAL_OPENBAO_ADDR") else {
                return missing("REAL_OPENBAO_ADDR is not set: no OpenBao; `make real-parts` starts one");
            };
            [
                ("VAULT_ADDR", address),
                ("VAULT_FOLDER", folder),
                ("VAULT_AUTH", "token".to_owned()),
                ("VAULT_TOKEN_FILE", variable("REAL_OPENBAO_TOKEN_FILE").unwrap()),
            ]
            .into()
        } else {
            let Some(address) = variable("REAL_MOTO_ADDR") else {
                return missing("REAL_MOTO_ADDR is not set: no AWS; `make real-parts` starts a stand-in");
            };
            let text = |(name, value): (&'static str, &str)| (name, value.to_owned());
            let variables = [
                ("AWS_REGION", "eu-central-1"),
                ("AWS_FOLDER", &folder),
                ("AWS_ENDPOINT_URL_SECRETS_MANAGER", &address),
                ("AWS_EC2_METADATA_DISABLED", "true"),
                ("AWS_ACCESS_KEY_ID", KEY_ID),
                ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ];
            variables.map(text).into()
        };
        Some(Self { store, variables, files, api: HyperFleetApi::start().await, vault })
    }

    /// The store as this test sees it.
    pub(crate) async fn client(&self) -> AnyStore {
        let mut variables: BTreeMap<&str, &str> =
            self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        variables.insert("SECRET_STORE", self.store);
        let mut settings = resolve_store(None, &variables).unwrap().unwrap();
        if let StoreSettings::Aws(AwsSettings { identity, .. }) = &mut settings {
            *identity = AwsIdentity::Keys(AwsKeys { id: KEY_ID.to_owned(), secret: SECRET_KEY.into() });
        }
        AnyStore::connect(&settings, None).await.unwrap()
    }

    /// The numbers of the readable versions, newest first; none if the secret does not exist.
    async fn live(&self) -> Vec<u64> {
        let secret: SecretId = SECRET.parse().unwrap();
        let client = self.client().await;
        if client.find(&secret).await.unwrap().is_none() {
            return Vec::new();
        }
        let versions = client.list_versions(&secret).await.unwrap();
        let live = versions.iter().filter(|version| version.state == VersionState::Live);
        live.map(|version| version.number.get()).collect()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program::pull_secret(arguments);
        command.envs(&self.variables);
        command
    }

    /// Runs the cluster's Job; returns its reason.
    pub(crate) async fn job(&self, name: &str, generation: u64, retain: u64) -> String {
        let path = self.files.path().join("result.json");
        let mut job = self.command(&["run-job", "pull-secret", "--cluster-id", CLUSTER, "--secret-store", self.store]);
        job.env("PULL_SECRET_DATA", pull_secret(name)).env("RESULTS_PATH", &path);
        job.args(["--generation", &generation.to_string(), "--retain-versions", &retain.to_string()]);
        let output = job.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
        let result: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        result["reason"].as_str().unwrap().to_owned()
    }

    /// Runs a command on this store and this API.
    pub(crate) async fn run(&self, command: &str, arguments: &[&str]) -> Printed {
        let api = format!("http://{}", self.api.address);
        let mut command = self.command(&[command, "--secret-store", self.store, "--output", "json", "--api", &api]);
        let Output { status, stdout, stderr } = command.args(arguments).output().await.unwrap();
        let [text, notes] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        testkit::leaks::check(self.store, &format!("{text}{notes}"));
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Printed { code: status.code(), lines, notes }
    }

    /// Sweeps; returns the state of the secret that is not in use, and the number of deleted ones.
    async fn sweep(&self, arguments: &[&str]) -> (Option<String>, u64) {
        let Printed { code, mut lines, notes } = self.run("sweep", arguments).await;
        assert_eq!(code, Some(0), "{notes}");
        let summary = lines.pop().unwrap()["summary"].clone();
        assert!(lines.len() <= 1, "{lines:?}");
        let state = lines.first().map(|line| line["state"].as_str().unwrap().to_owned());
        (state, summary["deleted"].as_u64().unwrap())
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn superseded_versions_are_destroyed_and_the_next_job_goes_on(
    #[values("vault", "aws", "azure")] store: &'static str,
) {
    let Some(fleet) = Fleet::at(store).await else { return };
    fleet.api.create(CLUSTER).await;
    for (name, generation) in [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)] {
        assert_eq!(fleet.job(name, generation, 8).await, "SecretStored");
    }
    let Printed { code, lines, notes } = fleet.run("prune", &["--rate", "60000"]).await;
    assert_eq!((code, lines.len()), (Some(0), 2), "{notes}");
    assert_eq!((&lines[0]["action"], &lines[0]["versions"]), (&json!("wouldDestroy"), &json!([1, 2])));
    assert_eq!(fleet.live().await, [5, 4, 3, 2, 1], "nothing was changed");
    let really = ["--rate", "60000", "--yes", "--retain-versions", "3"];
    let Printed { code, lines, notes } = fleet.run("prune", &really).await;
    assert_eq!((code, &lines[0]["action"]), (Some(0), &json!("destroyed")), "{notes}");
    assert_eq!(fleet.live().await, [5, 4, 3]);
    let again = fleet.run("prune", &really).await;
    assert_eq!(again.lines[0]["summary"]["versions"], 0, "{}", again.notes);
    // The next runs find their record as they would have left it.
    assert_eq!(fleet.job("e", 5, 3).await, "SecretUnchanged");
    assert_eq!(fleet.job("f", 6, 3).await, "SecretStored");
    assert_eq!(fleet.live().await, [6, 5, 4]);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn only_what_a_cluster_has_left_is_deleted(#[values("vault", "aws", "azure")] store: &'static str) {
    let Some(fleet) = Fleet::at(store).await else { return };
    fleet.job("a", 1, 3).await;
    assert_eq!(fleet.sweep(&[]).await, (Some("unknown".to_owned()), 0));
    fleet.api.create(CLUSTER).await;
    assert_eq!(fleet.sweep(&["--unknown"]).await, (None, 0), "a living cluster's");
    let report = async |folder: &str| {
        let mut copy = match store {
            "vault" => {
                json!({"kind": "vaultSecret", "server": "https://another-address:8200", "namespace": "root", "mount": "secret"})
            }
            "aws" => json!({"kind": "awsSecret", "region": "eu-central-1"}),
            _ => json!({"kind": "azureSecret", "vault": folder}),
        };
        copy["folder"] = json!(folder);
        copy["name"] = json!(SECRET);
        let data = [("copies".to_owned(), json!([copy]))].into_iter().collect();
        let report = NewReport { data, ..hyperfleet::report("pullsecret", 1_u32, Status::True) };
        fleet.api.report(CLUSTER, &report).await;
    };
    let folders = ["VAULT_FOLDER", "AWS_FOLDER", "AZURE_KEY_VAULT_URL"];
    let folder = folders.iter().find_map(|name| fleet.variables.get(name)).unwrap();
    report(folder).await;
    assert_eq!(fleet.sweep(&["--not-listed"]).await, (None, 0), "the report lists it, by another address");
    report("elsewhere").await;
    assert_eq!(fleet.sweep(&[]).await, (Some("notListed".to_owned()), 0));
    assert_eq!(fleet.live().await, [1]);
    assert_eq!(fleet.sweep(&["--not-listed"]).await, (Some("notListed".to_owned()), 1));
    assert!(fleet.live().await.is_empty());
}

/// The states of the store's checks, by their names.
fn states(printed: &Printed) -> BTreeMap<&str, &str> {
    let of_store = printed.lines.iter().filter(|line| line["group"] == "secret_store");
    of_store.map(|line| (line["check"].as_str().unwrap(), line["state"].as_str().unwrap())).collect()
}

#[rstest]
#[case::vault("vault", "ok")]
#[case::aws("aws", "skipped")]
#[case::azure("azure", "skipped")]
#[tokio::test(flavor = "multi_thread")]
async fn the_store_is_examined(#[case] store: &'static str, #[case] permissions: &str) {
    let Some(fleet) = Fleet::at(store).await else { return };
    fleet.job("a", 1, 3).await;
    let examined = fleet.run("doctor", &[]).await;
    let expected = [
        ("reachable", "ok"),
        ("list secrets", "ok"),
        ("adapter's permissions", "skipped"),
        ("Jobs' permissions", permissions),
    ];
    assert_eq!(states(&examined), expected.into(), "{:?}", examined.lines);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_and_a_file_that_is_not_there_are_named() {
    let Some(mut fleet) = Fleet::at("vault").await else { return };
    fleet.variables.insert("VAULT_ADDR", "http://127.0.0.1:9".to_owned());
    let examined = fleet.run("doctor", &[]).await;
    assert_eq!(states(&examined)["reachable"], "failed", "{:?}", examined.lines);
    let fix = examined.lines.iter().find(|line| line["check"] == "reachable" && line["group"] == "secret_store");
    assert_eq!(fix.unwrap()["fix"], "curl --verbose http://127.0.0.1:9/v1/sys/health");
    fleet.variables.insert("VAULT_TOKEN_FILE", "/nowhere/token".to_owned());
    let examined = fleet.run("doctor", &[]).await;
    let file = examined.lines.iter().find(|line| line["check"] == "VAULT_TOKEN_FILE").unwrap();
    assert_eq!(file["state"], "failed", "{file}");
}

/// A token whose policy lacks one capability of Jobs.
#[tokio::test(flavor = "multi_thread")]
async fn a_capability_that_jobs_lack_is_named() {
    let Some(mut fleet) = Fleet::at("vault").await else { return };
    let folder = fleet.variables["VAULT_FOLDER"].clone();
    let rule = |area: &str, capabilities: &str| {
        format!("path \"secret/{area}/{folder}/*\" {{ capabilities = [{capabilities}] }}\n")
    };
    let policy = [
        rule("data", r#""create", "read", "update""#),
        rule("metadata", r#""create", "read", "update", "delete", "list""#),
        format!("path \"secret/detailed-metadata/{folder}\" {{ capabilities = [\"list\"] }}\n"),
        format!("path \"secret/detailed-metadata/{folder}/\" {{ capabilities = [\"list\"] }}\n"),
    ]
    .concat();
    let path = fleet.files.path().join("policy.hcl");
    daemon::file::replace(&path, policy.as_bytes()).unwrap();
    bao(&["policy", "write", &folder, path.to_str().unwrap()]).await;
    let token = bao(&["token", "create", "-field=token", &format!("-policy={folder}")]).await;
    let path = fleet.files.path().join("token");
    daemon::file::replace(&path, token.trim().as_bytes()).unwrap();
    fleet.variables.insert("VAULT_TOKEN_FILE", path.display().to_string());
    let examined = fleet.run("doctor", &[]).await;
    assert_eq!(states(&examined)["Jobs' permissions"], "warning", "{:?}", examined.lines);
    let line = examined.lines.iter().find(|line| line["check"] == "Jobs' permissions").unwrap();
    let message = "missing, which matters if this is the identity of Jobs: `update` on `destroy/…`";
    assert_eq!(line["message"], message);
}

/// Runs OpenBao's own command line; returns what it prints.
pub(crate) async fn bao(arguments: &[&str]) -> String {
    let output = Command::new(variable("REAL_OPENBAO_CLI").unwrap()).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[rstest]
#[case(&["--secret-store", "vault"], "VAULT_ADDR")]
#[case(&["--secret-store", "aws"], "AWS_REGION")]
#[case(&["--secret-store", "azure"], "AZURE_KEY_VAULT_URL")]
#[case(&["--secret-store", "oracle"], "secret-store")]
#[case(&["--secret-store", "vault", "--project", "p-1"], "--project: has no effect")]
#[case(&[], "--project: missing")]
#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_is_not_complete_or_contradicts_is_refused(
    #[case] arguments: &[&str],
    #[case] expected: &str,
    #[values("sweep", "prune")] command: &str,
) {
    let mut command = program::pull_secret(&[command, "--api", "http://127.0.0.1:9"]);
    if arguments.len() > 2 {
        command.envs([("VAULT_ADDR", "https://v:8200"), ("VAULT_ROLE", "r")]);
    }
    let output = command.args(arguments).output().await.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && text.contains(expected), "{text}");
}
