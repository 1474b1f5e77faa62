//! The identity at the server: tokens in files, signed tokens, secret ids; what happens when one ends.

use std::path::PathBuf;
use std::time::Duration;

use daemon::calls::CallLog;
use daemon::retry::Transient as _;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcgen::KeyPair;
use reqwest::Method;
use secret_store::{ErrorKind, Operation, SecretStore as _, StoreError, VaultLogin, VaultSettings, VaultStore};
use serde_json::{Value, json};

use super::requests::{fake_settings, info};
use super::server::{MOUNT, OpenBao};
use crate::rig::{attempt, secret_id};
use testkit::fake::{Fake, json as document};

/// An issuer of signed tokens that a mount of its own trusts, with the role `job`.
struct Issuer {
    key: KeyPair,
    mount: String,
}

impl Issuer {
    async fn trusted_by(server: &OpenBao) -> Self {
        let (key, mount) = (KeyPair::generate().unwrap(), format!("{}-jwt", server.unique));
        server.admin(Method::POST, &format!("sys/auth/{mount}"), &json!({"type": "jwt"})).await;
        let pem = key.public_key_pem();
        server.admin(Method::POST, &format!("auth/{mount}/config"), &json!({"jwt_validation_pubkeys": [pem]})).await;
        let policy = policy_of(server).await;
        let role = json!({
            "role_type": "jwt", "user_claim": "sub", "bound_audiences": ["openbao"], "token_policies": [policy],
            "token_ttl": "10m",
        });
        server.admin(Method::POST, &format!("auth/{mount}/role/job"), &role).await;
        Self { key, mount }
    }

    fn token(&self, audience: &str) -> String {
        let claims =
            json!({"sub": "system:serviceaccount:fleet:job", "aud": audience, "nbf": 1, "exp": 4_102_444_800_u64});
        let key = EncodingKey::from_ec_der(self.key.serialized_der());
        jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &key).unwrap()
    }

    fn login(&self, token_file: PathBuf) -> VaultLogin {
        VaultLogin::Jwt { mount: self.mount.clone(), role: "job".to_owned(), token_file }
    }

    /// Ends every token that it has led to.
    async fn revoke_all(&self, server: &OpenBao) {
        let path = format!("sys/leases/revoke-prefix/auth/{}/login", self.mount);
        server.admin(Method::PUT, &path, &json!({"sync": true})).await;
    }
}

async fn policy_of(server: &OpenBao) -> String {
    let policy = format!(
        "path \"{MOUNT}/+/{}/*\" {{ capabilities = [\"create\", \"read\", \"update\", \"delete\"] }}",
        server.unique
    );
    server.admin(Method::POST, &format!("sys/policies/acl/{}", server.unique), &json!({"policy": policy})).await;
    server.unique.clone()
}

/// Settings with a record of calls.
fn logged(settings: VaultSettings) -> (VaultStore, CallLog) {
    let log = CallLog::default();
    (VaultStore::connect(&VaultSettings { calls: Some(log.clone()), ..settings }).unwrap(), log)
}

fn logins(log: &CallLog) -> usize {
    log.calls().iter().filter(|call| call.operation == "login").count()
}

#[track_caller]
fn refused(result: Result<(), StoreError>, detail: &str, hint: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unauthenticated, false), "{error}");
    assert!(error.to_string().contains(detail), "{error}");
    assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_token_is_exchanged_once_and_again_when_its_token_ends() {
    let Some(server) = OpenBao::shared().await else { return };
    let issuer = Issuer::trusted_by(&server).await;
    let file = server.file("jwt", &issuer.token("openbao"));
    let (store, log) = logged(server.settings_with(issuer.login(file)));
    for operation in [Operation::Create, Operation::AddVersion, Operation::ReadVersion] {
        attempt(&store, operation).await.unwrap();
    }
    assert_eq!(logins(&log), 1);
    issuer.revoke_all(&server).await;
    let (read, found) = tokio::join!(attempt(&store, Operation::ReadVersion), attempt(&store, Operation::Find));
    read.unwrap();
    found.unwrap();
    assert_eq!(logins(&log), 2, "{:?}", log.calls());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_is_refused_says_what_to_check() {
    let Some(server) = OpenBao::shared().await else { return };
    let issuer = Issuer::trusted_by(&server).await;
    let attempted = async |login: VaultLogin| {
        attempt(&VaultStore::connect(&server.settings_with(login)).unwrap(), Operation::Find).await
    };
    let (good, wrong) =
        (server.file("good", &issuer.token("openbao")), server.file("wrong", &issuer.token("elsewhere")));
    attempted(issuer.login(good.clone())).await.unwrap();
    refused(attempted(issuer.login(wrong)).await, "audience", "the role job");
    let VaultLogin::Jwt { mount, .. } = issuer.login(good.clone()) else { unreachable!() };
    let role = "unknown".to_owned();
    refused(attempted(VaultLogin::Jwt { mount, role, token_file: good.clone() }).await, "role", "has the role unknown");
    let (mount, role) = ("nowhere".to_owned(), "job".to_owned());
    refused(
        attempted(VaultLogin::Jwt { mount, role, token_file: good }).await,
        "the login is refused: permission denied",
        "auth/nowhere",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_role_logs_in_with_its_secret_id() {
    let Some(server) = OpenBao::shared().await else { return };
    let mount = format!("{}-approle", server.unique);
    server.admin(Method::POST, &format!("sys/auth/{mount}"), &json!({"type": "approle"})).await;
    let policy = policy_of(&server).await;
    let role = format!("auth/{mount}/role/job");
    server.admin(Method::POST, &role, &json!({"token_policies": [policy], "token_ttl": "10m"})).await;
    let role_id = server.admin(Method::GET, &format!("{role}/role-id"), &Value::Null).await["data"]["role_id"].clone();
    let made = server.admin(Method::POST, &format!("{role}/secret-id"), &json!({})).await;
    let secret_id_file = server.file("secret-id", made["data"]["secret_id"].as_str().unwrap());
    let role_id = role_id.as_str().unwrap().to_owned();
    let login = VaultLogin::AppRole { mount: mount.clone(), role_id: role_id.clone(), secret_id_file };
    let (store, log) = logged(server.settings_with(login));
    attempt(&store, Operation::Create).await.unwrap();
    attempt(&store, Operation::AddVersion).await.unwrap();
    assert_eq!(logins(&log), 1);
    let secret_id_file = server.file("other", "5f0c9a1e-0000-0000-0000-000000000000");
    let wrong = VaultLogin::AppRole { mount, role_id: role_id.clone(), secret_id_file };
    let store = VaultStore::connect(&server.settings_with(wrong)).unwrap();
    refused(attempt(&store, Operation::Find).await, "invalid role or secret ID", &role_id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_in_a_file_is_the_one_that_it_holds_now() {
    let Some(server) = OpenBao::shared().await else { return };
    let all = format!("path \"{MOUNT}/+/{}/*\" {{ capabilities = [\"create\", \"read\", \"update\"] }}", server.unique);
    let file = server.token_with("token", &all).await;
    let store = VaultStore::connect(&server.settings_with(VaultLogin::TokenFile(file.clone()))).unwrap();
    attempt(&store, Operation::Create).await.unwrap();
    server.revoke(&file).await;
    refused(attempt(&store, Operation::Find).await, "does not accept the token in", "renew the token in");
    assert_eq!(server.token_with("token", &all).await, file);
    attempt(&store, Operation::Find).await.unwrap();
    std::fs::remove_file(&file).unwrap();
    refused(attempt(&store, Operation::Find).await, "cannot be read", "renew the token in");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_fails_the_setup() {
    let settings = fake_settings("127.0.0.1:1".parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (absent, empty) = (folder.path().join("absent"), folder.path().join("empty"));
    daemon::file::replace(&empty, b" \n").unwrap();
    for (file, problem) in [(&absent, "cannot be read"), (&empty, "is empty")] {
        let mount = "m".to_owned();
        for login in [
            VaultLogin::TokenFile(file.clone()),
            VaultLogin::Jwt { mount: mount.clone(), role: "r".to_owned(), token_file: file.clone() },
            VaultLogin::AppRole { mount, role_id: "r".to_owned(), secret_id_file: file.clone() },
        ] {
            let error = VaultStore::connect(&VaultSettings { login, ..settings.clone() }).unwrap_err();
            assert_eq!((error.operation, error.kind), (Operation::Connect, ErrorKind::Unauthenticated));
            let text = error.to_string();
            assert!(text.contains(problem) && text.contains(file.to_str().unwrap()), "{text}");
        }
    }
}

/// A token is replaced after two thirds of its time; one that can still be used outlives a login that fails.
#[tokio::test]
async fn a_token_is_replaced_before_it_expires() {
    let folder = tempfile::tempdir().unwrap();
    let (jwt, refusing) = (folder.path().join("jwt"), folder.path().join("refusing"));
    daemon::file::replace(&jwt, b"signed").unwrap();
    let is_refusing = refusing.clone();
    let fake = Fake::start(move |request| match request.target.as_str() {
        "/v1/auth/k/login" if is_refusing.exists() => document(503, &json!({"errors": ["Vault is sealed"]})),
        "/v1/auth/k/login" => document(200, &json!({"auth": {"client_token": "t0ken", "lease_duration": 600}})),
        _ => document(200, &info()),
    })
    .await;
    let login = VaultLogin::Jwt { mount: "k".to_owned(), role: "job".to_owned(), token_file: jwt };
    let (store, log) = logged(VaultSettings { login, ..fake_settings(fake.address) });
    let after = async |seconds| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
        store.find(&secret_id()).await.map(drop).map_err(|error| error.kind)
    };
    assert_eq!((after(0).await, logins(&log)), (Ok(()), 1));
    assert_eq!((after(300).await, logins(&log)), (Ok(()), 1));
    assert_eq!((after(101).await, logins(&log)), (Ok(()), 2));
    daemon::file::replace(&refusing, b"x").unwrap();
    assert_eq!((after(401).await, logins(&log)), (Ok(()), 3));
    assert_eq!((after(200).await, logins(&log)), (Err(ErrorKind::Unavailable), 4));
    std::fs::remove_file(&refusing).unwrap();
    assert_eq!((after(0).await, logins(&log)), (Ok(()), 5));
}
