//! Jobs with a mirror: OpenBao first, AWS, for which moto stands in, second; and a mirror that is down while HyperShift waits.

use std::collections::BTreeMap;
use std::process::Output;

use pull_secret_job::settings::resolve_store;
use secrecy::ExposeSecret as _;
use secret_store::{
    AnyStore, AwsIdentity, AwsKeys, AwsSettings, LiveVersion, SecretId, SecretStore as _, StoreSettings, Version,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::cluster::{Kind, Place};
use testkit::environment::{missing, variable};
use testkit::program;
use testkit::rig::pull_secret;
use tokio::process::Command;

use crate::aws::{KEY_ID, SECRET_KEY};

/// An address at which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:1";

/// A folder of its own in both stores.
struct Stores {
    variables: BTreeMap<&'static str, String>,
    files: TempDir,
}

struct Run {
    code: Option<i32>,
    result: Value,
    text: String,
}

fn secret() -> SecretId {
    "hyperfleet-cls-123-pull-secret".parse().unwrap()
}

impl Stores {
    /// `None` after a line that says why there are none.
    fn new() -> Option<Self> {
        let Some(vault) = variable("REAL_OPENBAO_ADDR") else {
            return missing("REAL_OPENBAO_ADDR is not set: no OpenBao; `make real-parts` starts one");
        };
        let Some(aws) = variable("REAL_MOTO_ADDR") else {
            return missing("REAL_MOTO_ADDR is not set: no AWS; `make real-parts` starts a stand-in");
        };
        let files = tempfile::tempdir().unwrap();
        let unique = files.path().file_name().unwrap().to_string_lossy().trim_matches('.').to_owned();
        let folder = format!("mirror-{}-{unique}", std::process::id());
        let variables = [
            ("VAULT_ADDR", vault),
            ("VAULT_FOLDER", folder.clone()),
            ("VAULT_AUTH", "token".to_owned()),
            ("VAULT_TOKEN_FILE", variable("REAL_OPENBAO_TOKEN_FILE").unwrap()),
            ("AWS_REGION", "eu-central-1".to_owned()),
            ("AWS_FOLDER", folder),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", aws),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY_ID.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
            ("SECRET_STORE", "vault".to_owned()),
            ("SECRET_STORE_MIRROR", "aws".to_owned()),
        ];
        Some(Self { variables: variables.into(), files })
    }

    fn job(&self, arguments: &[&str]) -> Command {
        let mut job = program::pull_secret(&["run-job", "pull-secret", "--cluster-id", "cls-123"]);
        job.args(arguments).envs(&self.variables).env("RESULTS_PATH", self.files.path().join("result.json"));
        job
    }

    fn storing(&self, name: &str, generation: &str) -> Command {
        let mut job = self.job(&["--generation", generation]);
        job.env("PULL_SECRET_DATA", pull_secret(name));
        job
    }

    /// No run shows a credential.
    async fn run(&self, job: &mut Command) -> Run {
        let Output { status, stdout, stderr } = job.output().await.unwrap();
        let result = std::fs::read(self.files.path().join("result.json")).unwrap_or_default();
        let text = [stdout, stderr, result.clone()].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        testkit::leaks::check("mirror", &text);
        assert!(!text.contains(SECRET_KEY), "{text}");
        Run { code: status.code(), result: serde_json::from_slice(&result).unwrap_or_default(), text }
    }

    /// The newest content in a store, with its record; `None` if there is no secret, or it cannot be read.
    async fn held(&self, store: &'static str) -> Option<(String, BTreeMap<String, String>)> {
        let mut variables: BTreeMap<&str, &str> =
            self.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        variables.insert("SECRET_STORE", store);
        variables.remove("SECRET_STORE_MIRROR");
        if store == "aws" {
            variables.remove("VAULT_ADDR");
        }
        let mut settings = resolve_store(None, &variables).unwrap().unwrap();
        if let StoreSettings::Aws(AwsSettings { identity, .. }) = &mut settings {
            *identity = AwsIdentity::Keys(AwsKeys { id: KEY_ID.to_owned(), secret: SECRET_KEY.into() });
        }
        let client = AnyStore::connect(&settings, None).await.unwrap();
        client.find(&secret()).await.unwrap()?;
        let newest = client.newest_version(&secret()).await.unwrap()?;
        let Version::Live(LiveVersion { content, record }) =
            client.read_version(&secret(), newest.number).await.unwrap()
        else {
            return None;
        };
        Some((String::from_utf8(content.expose_secret().to_vec()).unwrap(), record))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_stores_hold_each_pull_secret_and_a_deletion_leaves_none() {
    let Some(stores) = Stores::new() else { return };
    for (name, generation) in [("a", "1"), ("b", "2")] {
        let run = stores.run(&mut stores.storing(name, generation)).await;
        assert_eq!((run.code, &run.result["reason"]), (Some(0), &json!("SecretStored")), "{}", run.text);
        let (first, mirror) = (stores.held("vault").await.unwrap(), stores.held("aws").await.unwrap());
        assert_eq!((first.0.as_str(), &first.0), (pull_secret(name).as_str(), &mirror.0));
        assert_eq!(first.1["hyperfleet-generation"], generation);
        assert_eq!(first.1["hyperfleet-generation"], mirror.1["hyperfleet-generation"]);
        let details = &run.result["details"];
        assert_eq!(details["vaultAddress"], stores.variables["VAULT_ADDR"].as_str());
        assert_eq!(
            (&details["mirror"]["awsRegion"], &details["mirror"]["generation"]),
            (&json!("eu-central-1"), &json!(generation))
        );
    }
    let again = stores.run(&mut stores.storing("b", "2")).await;
    assert_eq!(
        (&again.result["reason"], &again.result["details"]["mirror"]["versionsAdded"]),
        (&json!("SecretUnchanged"), &json!(0))
    );
    let superseded = stores.run(&mut stores.storing("a", "1")).await;
    assert_eq!((superseded.code, &superseded.result["reason"]), (Some(0), &json!("Superseded")), "{}", superseded.text);
    let deleted = stores.run(&mut stores.job(&["--delete"])).await;
    assert_eq!((deleted.code, &deleted.result["reason"]), (Some(0), &json!("SecretDeleted")), "{}", deleted.text);
    assert_eq!((stores.held("vault").await, stores.held("aws").await), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_that_is_down_is_filled_by_the_next_run() {
    let Some(stores) = Stores::new() else { return };
    let mut job = stores.storing("a", "1");
    let failed = stores.run(job.env("AWS_ENDPOINT_URL_SECRETS_MANAGER", NOWHERE)).await;
    assert_eq!((failed.code, &failed.result["reason"]), (Some(75), &json!("StoreUnavailable")), "{}", failed.text);
    let message = failed.result["message"].as_str().unwrap();
    assert!(
        message.starts_with("Failed to mirror the pull secret, which the first store holds: Failed to "),
        "{message}"
    );
    assert!(failed.text.contains(r#""phase":"aws-secrets-manager""#), "{}", failed.text);
    assert!(stores.held("vault").await.is_some() && stores.held("aws").await.is_none());
    let again = stores.run(&mut stores.storing("a", "1")).await;
    assert_eq!((again.code, &again.result["reason"]), (Some(0), &json!("SecretStored")), "{}", again.text);
    assert_eq!(stores.held("vault").await.unwrap().0, stores.held("aws").await.unwrap().0);
}

/// Nodes are not held up by the mirror's outage.
#[tokio::test(flavor = "multi_thread")]
async fn the_kubernetes_secret_is_applied_before_a_mirror_that_is_down() {
    let Some(place) = Place::new(Kind::Emulator).await else { return };
    let token = place.rig.path("token");
    daemon::file::replace(&token, b"a-token-of-this-test").unwrap();
    let mut job = place.job("a");
    job.env("SECRET_STORE_MIRROR", "vault")
        .env("VAULT_ADDR", NOWHERE)
        .env("VAULT_AUTH", "token")
        .env("VAULT_TOKEN_FILE", token);
    let failed = place.rig.run(&mut job).await;
    assert_eq!((failed.code, failed.reason()), (Some(75), "StoreUnavailable"), "{failed:#?}");
    let said = "Failed to mirror the pull secret, which the first store and the Kubernetes Secret hold: ";
    assert!(failed.message().starts_with(said), "{failed:#?}");
    assert_eq!(Place::content(&place.secret().await.unwrap()), pull_secret("a"));
    assert_eq!(failed.result["details"]["secretVersion"], 1);
}
