//! The place of the secrets: mounts that are none, of another version, or in a namespace; and whom the client trusts.

use daemon::retry::Transient as _;
use reqwest::Method;
use secret_store::{ErrorKind, Operation, SecretStore as _, VaultSettings, VaultStore};
use serde_json::json;

use super::server::{OpenBao, missing, variable};
use crate::rig::{OPERATIONS, attempt, secret_id};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mount_that_is_none_is_named_with_the_command_that_makes_it() {
    let Some(server) = OpenBao::shared().await else { return };
    let mount = format!("{}-kv", server.unique);
    let settings = VaultSettings { mount: mount.parse().unwrap(), ..server.settings() };
    let store = VaultStore::connect(&settings).unwrap();
    for operation in OPERATIONS.into_iter().filter(|operation| *operation != Operation::CheckPermissions) {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Invalid, false), "{error}");
        let hint = error.hint().unwrap();
        assert!(hint.contains(&format!("bao secrets enable -path={mount} -version=2 kv")), "{hint}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_to_an_engine_of_version_1() {
    let Some(server) = OpenBao::shared().await else { return };
    let mount = format!("{}-kv1", server.unique);
    server
        .admin(Method::POST, &format!("sys/mounts/{mount}"), &json!({"type": "kv", "options": {"version": "1"}}))
        .await;
    let store = VaultStore::connect(&VaultSettings { mount: mount.parse().unwrap(), ..server.settings() }).unwrap();
    let error = attempt(&store, Operation::Create).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::Invalid, false));
    assert!(error.to_string().contains("the mount is not the KV engine, version 2"), "{error}");
    assert!(error.hint().unwrap().contains("bao kv enable-versioning"));
    assert_eq!(store.find(&secret_id()).await.unwrap(), None);
    // What others have put there is not taken for a secret either.
    let path = format!("{mount}/metadata/{}/pull-secret", server.unique);
    server.admin(Method::POST, &path, &json!({"custom_metadata": "x"})).await;
    assert_eq!(attempt(&store, Operation::Find).await.unwrap_err().kind, ErrorKind::Invalid);
    server.admin(Method::DELETE, &format!("sys/mounts/{mount}"), &json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_has_secrets_of_its_own() {
    let Some(server) = OpenBao::shared().await else { return };
    let namespace = server.unique.clone();
    server.admin(Method::POST, &format!("sys/namespaces/{namespace}"), &json!({})).await;
    server.admin(Method::POST, &format!("{namespace}/sys/mounts/kv"), &json!({"type": "kv-v2"})).await;
    let (mount, folder) = ("kv".parse().unwrap(), "f".parse().unwrap());
    let settings = VaultSettings { namespace: namespace.parse().ok(), mount, folder, ..server.settings() };
    let store = VaultStore::connect(&settings).unwrap();
    assert_eq!(store.path(&secret_id()), format!("{namespace}/kv/f/pull-secret"));
    create(&store).await;
    for operation in [Operation::AddVersion, Operation::ReadVersion, Operation::List] {
        attempt(&store, operation).await.unwrap();
    }
    assert_eq!(store.list(&[], None).await.unwrap().secrets.len(), 1);
    let read = server.admin(Method::GET, &format!("{namespace}/kv/data/f/pull-secret"), &json!(null)).await;
    assert_eq!(read["data"]["data"]["pull-secret"], crate::rig::CONTENT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_reached_only_under_its_own_authority() {
    let Some(server) = OpenBao::shared().await else { return };
    let (Some(address), Some(authority)) = (variable("REAL_OPENBAO_TLS_ADDR"), variable("REAL_OPENBAO_CA")) else {
        return missing("REAL_OPENBAO_TLS_ADDR").unwrap_or_default();
    };
    let settings = VaultSettings { address: address.parse().unwrap(), ..server.settings() };
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem();
    let reached = async |ca_file| {
        let store = VaultStore::connect(&VaultSettings { ca_file, ..settings.clone() }).unwrap();
        store.find(&secret_id()).await
    };
    assert_eq!(reached(Some(authority.into())).await.unwrap(), None);
    for stranger in [Some(server.file("other.pem", &other)), None] {
        let error = reached(stranger).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("certificate") && error.hint().unwrap().contains("authorities"), "{error}");
    }
    for file in [server.file("none.pem", "not pem"), "/nowhere/ca.pem".into()] {
        let error =
            VaultStore::connect(&VaultSettings { ca_file: Some(file.clone()), ..settings.clone() }).unwrap_err();
        assert_eq!((error.operation, error.kind), (Operation::Connect, ErrorKind::Invalid));
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }
}

/// A rate limit of a mount answers without a delay to wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limit_is_transient() {
    let Some(server) = OpenBao::shared().await else { return };
    let mount = format!("{}-kv", server.unique);
    server.admin(Method::POST, &format!("sys/mounts/{mount}"), &json!({"type": "kv-v2"})).await;
    let store = VaultStore::connect(&VaultSettings { mount: mount.parse().unwrap(), ..server.settings() }).unwrap();
    create(&store).await;
    let quota = format!("sys/quotas/rate-limit/{mount}");
    server.admin(Method::POST, &quota, &json!({"path": mount, "rate": 1, "interval": "1h"})).await;
    let error = loop {
        if let Err(error) = attempt(&store, Operation::AddVersion).await {
            break error;
        }
    };
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::QuotaExceeded, true));
    assert!(error.to_string().contains("rate limit quota exceeded") && error.hint().is_some(), "{error}");
    server.admin(Method::DELETE, &quota, &json!({})).await;
    attempt(&store, Operation::AddVersion).await.unwrap();
}

/// Creates the secret in an engine that has just been made, which may not be ready.
async fn create(store: &VaultStore) {
    while let Err(error) = attempt(store, Operation::Create).await {
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unavailable, true), "{error}");
    }
}
