//! Kubeconfigs that cannot be used, and servers that do not answer as they should.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use daemon::retry::Transient as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kubernetes::event::Severity;
use kubernetes::lease::{LeaseCandidate, LeaseClaim, Now};
use kubernetes::{Cluster, ErrorKind, KubernetesError, ObservedSecret, SecretKey, Settings, Verb};
use rstest::rstest;
use serde_json::json;
use tempfile::TempDir;

use crate::network::{Parrot, listen};
use crate::rig::{Kind, Rig, settings};
use crate::secrets::{CANARY, secret};

/// A folder with a kubeconfig in it.
fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    daemon::file::replace(&path, text.as_bytes()).unwrap();
    (folder, path)
}

/// A kubeconfig with one user and one cluster.
fn kubeconfig(address: &str, user: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "u", "user": serde_json::from_str::<serde_json::Value>(user).unwrap()}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string()
}

pub(crate) async fn connect(address: &str, call_timeout: Duration) -> Cluster {
    let (_folder, path) = file(&kubeconfig(address, "{}"));
    Cluster::connect(&Settings { call_timeout, ..settings(path) }).await.unwrap()
}

fn key() -> SecretKey {
    SecretKey { namespace: "n".to_owned(), name: "s".to_owned() }
}

fn observed() -> ObservedSecret {
    ObservedSecret {
        uid: "u".to_owned(),
        resource_version: "1".to_owned(),
        kind: String::new(),
        labels: BTreeMap::default(),
        annotations: BTreeMap::default(),
        is_immutable: false,
        is_terminating: false,
        owners: Vec::new(),
        managed_fields: Vec::new(),
        content: None,
    }
}

/// The failure of each call of this crate on a server where none succeeds.
async fn failures(cluster: &Cluster, mut after: impl FnMut(&KubernetesError)) {
    let (key, secret, observed) = (key(), secret(CANARY), observed());
    let claim = LeaseClaim {
        namespace: "n".to_owned(),
        name: "l".to_owned(),
        holder: "h".to_owned(),
        duration: Duration::from_secs(15),
    };
    let about = ObjectReference { name: Some("o".to_owned()), namespace: Some("n".to_owned()), ..Default::default() };
    after(&cluster.find_secret(&key).await.unwrap_err());
    after(&cluster.create_secret(&key, &secret, false).await.unwrap_err());
    after(&cluster.apply_secret(&key, &secret, &observed, false).await.unwrap_err());
    after(&cluster.delete_secret(&key, &observed, false).await.unwrap_err());
    after(&cluster.may(Verb::Get, &key).await.unwrap_err());
    after(&cluster.create_job_once("n", &Job::default()).await.unwrap_err());
    after(&cluster.find_job("n", "j").await.unwrap_err());
    after(&cluster.terminations("n", "j", "main").await.unwrap_err());
    let mut candidate = LeaseCandidate::new(cluster.clone(), claim);
    after(&candidate.try_acquire(Now::read()).await.unwrap_err());
    after(&candidate.release().await.unwrap_err());
    let events = cluster.events("c");
    after(&events.publish(&about, Severity::Normal, "a", "r", "n").await.unwrap_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_kubeconfig_is_reported() {
    let path = PathBuf::from("/nonexistent/kubeconfig");
    let error = Cluster::connect(&settings(path)).await.unwrap_err();
    assert_eq!((error.operation, error.kind, error.is_transient()), (Verb::Connect, ErrorKind::Unusable, false));
    assert!(error.to_string().contains("kubeconfig") && error.to_string().contains("cannot be read"), "{error}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_context_is_reported(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let (_folder, path) = file(&kubeconfig(&rig.address, &json!({"token": CANARY}).to_string()));
    let there = Settings { context: Some("c".to_owned()), ..settings(path.clone()) };
    let cluster = Cluster::connect(&there).await.unwrap();
    assert!(cluster.server().contains(&rig.address) && !format!("{cluster:?}").contains(CANARY));
    let missing = Settings { context: Some("nowhere".to_owned()), ..settings(path) };
    let error = Cluster::connect(&missing).await.unwrap_err().to_string();
    assert!(error.contains("no such context") && error.contains("kubeconfig") && !error.contains(CANARY), "{error}");
}

#[rstest]
#[case::none(None, "it has no current context: choose one with kubectl config use-context")]
#[case::some(Some("MY_CONTEXT"), "it has no current context: set MY_CONTEXT")]
#[tokio::test]
async fn a_missing_current_context_names_the_programs_setting(
    #[case] context_setting: Option<&'static str>,
    #[case] expected: &str,
) {
    let mut without: serde_json::Value = serde_json::from_str(&kubeconfig("127.0.0.1:1", "{}")).unwrap();
    without.as_object_mut().unwrap().remove("current-context");
    let (_folder, path) = file(&without.to_string());
    let error = Cluster::connect(&Settings { context_setting, ..settings(path) }).await.unwrap_err();
    assert_eq!(error.detail.as_deref(), Some(expected));
}

/// Audit logs have the user agent, objects have the field manager.
#[rstest]
#[case::nothing_said(Settings::default().program, "pull-secret")]
#[case::another_program("other-program", "other-program")]
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_identified(#[case] program: &'static str, #[case] expected: &str) {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    let (_folder, path) = file(&rig.emulator().kubeconfig());
    let cluster = Cluster::connect(&Settings { program, ..settings(path) }).await.unwrap();
    let key = SecretKey { namespace: rig.namespace.clone(), name: "made".to_owned() };
    cluster.create_secret(&key, &secret("a"), false).await.unwrap();
    let made: Secret = cluster.find(&key.namespace, &key.name).await.unwrap().unwrap();
    let managers = made.metadata.managed_fields.unwrap().into_iter().filter_map(|fields| fields.manager);
    assert_eq!(managers.collect::<Vec<_>>(), [expected]);
    let calls = rig.emulator().calls();
    let agent = &calls.iter().rfind(|call| call.resource == "secrets").unwrap().user_agent;
    assert_eq!(agent.split('/').next(), Some(expected));
}

#[rstest]
#[case::text("c4n4ry")]
#[case::no_yaml("{c4n4ry: [\n\t\u{0}")]
#[case::list("[c4n4ry]")]
#[case::user_is_text(r#"{"users": [{"name": "u", "user": "c4n4ry"}]}"#)]
#[case::users_are_text(r#"{"users": "c4n4ry"}"#)]
#[case::token_is_a_list(r#"{"users": [{"name": "u", "user": {"token": ["c4n4ry"]}}]}"#)]
#[case::token_is_cut("users: [{name: u, user: {token: \"c4n4ry")]
#[case::helper_is_text(r#"{"users": [{"name": "u", "user": {"exec": "c4n4ry"}}]}"#)]
#[case::tab("users:\n- name: u\n  user:\n\ttoken: c4n4ry\n")]
#[case::doubled("users:\n- name: u\n  user:\n    token: c4n4ry\n    token: c4n4ry\n")]
#[case::empty("")]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_kubeconfig_is_not_quoted(#[case] text: &str) {
    let (_folder, path) = file(text);
    let error = Cluster::connect(&settings(path)).await.unwrap_err();
    let printed = format!("{error} {error:?}");
    assert!(!printed.contains(CANARY), "{printed}");
    assert!(error.kind == ErrorKind::Unusable && printed.contains("kubeconfig"), "{printed}");
}

#[rstest]
#[case::key(r#"{"client-certificate-data": "YQ==", "client-key-data": "c4n4ry"}"#)]
#[case::key_in_clear(r#"{"client-certificate-data": "YQ==", "client-key-data": "-----BEGIN c4n4ry"}"#)]
#[case::token(r#"{"token": "c4n4ry\nc4n4ry"}"#)]
#[case::helper_fails(
    r#"{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
    "command": "sh", "args": ["-c", "echo c4n4ry; echo c4n4ry >&2; exit 1"]}}"#
)]
#[case::helper_babbles(
    r#"{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
    "command": "sh", "args": ["-c", "echo c4n4ry"]}}"#
)]
#[case::helper_errs(
    r#"{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
    "command": "sh", "args": ["-c", "echo '{\"status\": {\"token\": [\"c4n4ry\"]}}'"]}}"#
)]
#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_cannot_be_used_are_not_quoted(#[case] user: &str) {
    let parrot = Parrot::saying("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    let (_folder, path) = file(&kubeconfig(&parrot.address, user));
    let error = match Cluster::connect(&settings(path)).await {
        Ok(cluster) => cluster.find_secret(&key()).await.unwrap_err(),
        Err(error) => error,
    };
    let printed = format!("{error} {error:?}");
    assert!(!printed.contains(CANARY), "{printed}");
    assert_eq!(error.kind, ErrorKind::Unusable, "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_the_address_are_not_printed() {
    let cluster = connect(&format!("user:{CANARY}@127.0.0.1:1"), Duration::from_secs(5)).await;
    let error = cluster.find_secret(&key()).await.unwrap_err();
    let printed = format!("{} {cluster:?} {error} {error:?}", cluster.server());
    assert!(!printed.contains(CANARY), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_is_given_up_in_time() {
    let (_listener, address) = listen().await;
    let cluster = connect(&address, Duration::from_millis(200)).await;
    let error = cluster.find_secret(&key()).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::TimedOut, true), "{error}");
    let error = cluster.create_secret(&key(), &secret(CANARY), false).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_gets_stuck_is_given_up_in_time() {
    let rig = Rig::new(Kind::Emulator).await.unwrap();
    rig.emulator().inject("create/secrets:commit-then-hang".parse().unwrap());
    let (_folder, path) = file(&rig.emulator().kubeconfig());
    let hasty = Settings { call_timeout: Duration::from_secs(5), ..settings(path) };
    let hasty = Cluster::connect(&hasty).await.unwrap();
    let error = hasty.create_secret(&rig.key(), &secret("a"), false).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut, "{error}");
    rig.observed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_a_server_is_unavailable() {
    let (listener, address) = listen().await;
    drop(listener);
    failures(&connect(&address, Duration::from_secs(10)).await, |error| {
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unavailable, true), "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
    })
    .await;
}

/// No retries but the caller's.
#[rstest]
#[case::in_order(
    "503 Service Unavailable\r\nretry-after: 1",
    r#"{"kind": "Status", "apiVersion": "v1",
    "status": "Failure", "message": "shutting down", "reason": "ServiceUnavailable", "code": 503}"#,
    ErrorKind::Unavailable
)]
#[case::by_a_proxy("503 Service Unavailable", "<html>no backend</html>", ErrorKind::Unavailable)]
#[case::retry_after(
    "429 Too Many Requests\r\nretry-after: 1",
    r#"{"kind": "Status", "apiVersion": "v1", "code": 429,
    "status": "Failure", "message": "too many", "reason": "TooManyRequests", "details": {"retryAfterSeconds": 7}}"#,
    ErrorKind::TooManyRequests
)]
#[case::retry_after_in_text("429 Too Many Requests\r\nretry-after: 1", "Too many requests", ErrorKind::TooManyRequests)]
#[case::gateway("504 Gateway Timeout", "", ErrorKind::TimedOut)]
#[case::nonsense("200 OK", "<html>welcome</html>", ErrorKind::Internal)]
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_server_is_asked_once_a_call(#[case] status: &str, #[case] body: &str, #[case] kind: ErrorKind) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    let parrot = Parrot::saying(String::leak(head + body)).await;
    let cluster = connect(&parrot.address, Duration::from_secs(10)).await;
    failures(&cluster, |error| {
        assert_eq!((error.kind, error.is_transient()), (kind, true), "{error:?}");
        assert_eq!(parrot.asked(), 1, "{error}");
        assert_eq!(error.retry_after.map(|wait| wait.as_secs()), body.contains("retryAfter").then_some(7));
        assert!(!format!("{error:?}").contains("html"), "{error:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_connection_ends_is_not_made_again() {
    let parrot = Parrot::saying("").await;
    let cluster = connect(&parrot.address, Duration::from_secs(10)).await;
    failures(&cluster, |error| {
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unavailable, true), "{error:?}");
        assert_eq!(parrot.asked(), 1, "{error}");
    })
    .await;
}
