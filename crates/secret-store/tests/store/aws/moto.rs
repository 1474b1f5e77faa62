//! moto, as its administrator sees it; each test has a folder of its own in it.

use std::time::Duration;

use reqwest::Client;
use secret_store::{AwsIdentity, AwsKeys, AwsSettings, AwsStore, SecretId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::vault::server::variable;

/// Longer than anything takes, on a machine that does much else.
const TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) struct Moto {
    pub(crate) address: String,
    /// Names what a test makes.
    pub(crate) unique: String,
    http: Client,
}

/// Settings for a server on this machine.
pub(crate) fn settings(address: &str) -> AwsSettings {
    AwsSettings {
        region: "eu-central-1".parse().unwrap(),
        endpoint: Some(address.parse().unwrap()),
        folder: "pull-secrets".parse().unwrap(),
        identity: AwsIdentity::Keys(AwsKeys { id: KEY_ID.to_owned(), secret: SECRET_KEY.into() }),
        recovery_days: None,
        call_timeout: TIMEOUT,
        calls: None,
    }
}

pub(crate) const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
pub(crate) const SECRET_KEY: &str = "m4rker-of-a-key/K7MDENG/bPxRfiCYEXAMPLEKEY";

/// The id of a version.
pub(crate) fn id(version: u64) -> String {
    format!("hyperfleet-version-{version:020}")
}

// === impl Moto ===

impl Moto {
    /// `None` after a line that says why there is none.
    pub(crate) fn new() -> Option<Self> {
        let Some(address) = variable("REAL_MOTO_ADDR") else {
            let why = "REAL_MOTO_ADDR is not set; hack/real-parts/moto.sh up";
            assert!(variable("CI").is_none_or(|ci| ci != "true"), "{why}");
            eprintln!("skipped: {why}");
            return None;
        };
        Some(Self { address, unique: format!("test-{}", Uuid::now_v7().simple()), http: Client::new() })
    }

    pub(crate) fn settings(&self) -> AwsSettings {
        AwsSettings { folder: self.unique.parse().unwrap(), ..settings(&self.address) }
    }

    pub(crate) async fn store(&self) -> AwsStore {
        AwsStore::connect(&self.settings()).await.unwrap()
    }

    pub(crate) fn name(&self, secret: &SecretId) -> String {
        format!("{}/{secret}", self.unique)
    }

    /// Carries out a request of an administrator about a secret.
    pub(crate) async fn admin(&self, secret: &SecretId, operation: &str, more: Value) -> Value {
        let mut body = json!({"SecretId": self.name(secret)});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let scope = "Credential=a/20261125/eu-central-1/secretsmanager/aws4_request, SignedHeaders=host, Signature=a";
        let request = self.http.post(&self.address).header("x-amz-target", format!("secretsmanager.{operation}"));
        let request = request.header("authorization", format!("AWS4-HMAC-SHA256 {scope}")).body(body.to_string());
        let response = request.header("content-type", "application/x-amz-json-1.1").send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        assert!(status.is_success(), "{operation}: {status} {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// Makes the version before this one the one that readers get, as an administrator does.
    pub(crate) async fn lead_readers_back_from(&self, secret: &SecretId, version: u64) {
        let (from, to) = (id(version), id(version - 1));
        let more = json!({"VersionStage": "AWSCURRENT", "RemoveFromVersionId": from, "MoveToVersionId": to});
        self.admin(secret, "UpdateSecretVersionStage", more).await;
    }

    /// The content that a reader gets.
    pub(crate) async fn current(&self, secret: &SecretId) -> Option<String> {
        let read = self.admin(secret, "GetSecretValue", json!({"VersionStage": "AWSCURRENT"})).await;
        read["SecretString"].as_str().map(str::to_owned)
    }

    /// The labels of each version, by id.
    pub(crate) async fn labels(&self, secret: &SecretId) -> Value {
        self.admin(secret, "DescribeSecret", json!({})).await["VersionIdsToStages"].clone()
    }
}
