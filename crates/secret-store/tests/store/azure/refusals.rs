//! Refusals of the vault and of the service for tokens, and what is between.

use std::time::Duration;

use daemon::retry::Transient as _;
use emulators::key_vault::{Identity, Permission as Granted, Settings as Emulator};
use rstest::rstest;
use secret_store::{AzureIdentity, AzureSettings, AzureStore, ErrorKind, Operation, SecretStore as _, StoreError};
use serde_json::json;

use super::fake_vault::{FakeVault, refusal, versions};
use super::key_vault::FastVault;
use super::writers::with_a_version;
use crate::rig::{attempt, secret_id};
use testkit::fake::{Fake, Received, json as document, page};

#[rstest]
#[case(429, "Throttled", "", ErrorKind::QuotaExceeded, true)]
#[case(401, "Unauthorized", "", ErrorKind::Unauthenticated, false)]
#[case(403, "Forbidden", "ForbiddenByRbac", ErrorKind::PermissionDenied, false)]
#[case(403, "Forbidden", "AccessDenied", ErrorKind::PermissionDenied, false)]
#[case(403, "Forbidden", "ForbiddenByFirewall", ErrorKind::PermissionDenied, false)]
#[case(400, "BadParameter", "", ErrorKind::Invalid, false)]
#[case(409, "Conflict", "ObjectIsBeingDeleted", ErrorKind::PendingDeletion, false)]
#[case(409, "Conflict", "ObjectIsDeletedButRecoverable", ErrorKind::PendingDeletion, false)]
#[case(409, "Conflict", "ObjectIsBeingRecovered", ErrorKind::Unavailable, true)]
#[case(409, "Conflict", "", ErrorKind::Unavailable, true)]
#[case(500, "InternalServerError", "", ErrorKind::Internal, true)]
#[case(503, "ServiceUnavailable", "", ErrorKind::Unavailable, true)]
#[case(504, "GatewayTimeout", "", ErrorKind::TimedOut, true)]
#[tokio::test]
async fn a_refusal_has_a_kind(
    #[case] status: u16,
    #[case] code: &'static str,
    #[case] inner: &'static str,
    #[case] kind: ErrorKind,
    #[case] is_transient: bool,
) {
    let vault = FakeVault::answering(refusal(status, code, inner, "as a test wants")).await;
    let error = attempt(&vault.store(), Operation::Find).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (kind, is_transient), "{error}");
    let detail = error.detail.unwrap();
    assert!(detail.contains(if inner.is_empty() { code } else { inner }), "{detail}");
    assert_eq!(error.operation, Operation::Find);
}

/// A proxy answers without knowing the secrets.
#[rstest]
#[case(404, ErrorKind::Invalid)]
#[case(403, ErrorKind::PermissionDenied)]
#[case(409, ErrorKind::Invalid)]
#[case(302, ErrorKind::Invalid)]
#[case(502, ErrorKind::Unavailable)]
#[case(200, ErrorKind::Internal)]
#[tokio::test]
async fn a_page_of_a_proxy_is_no_answer(#[case] status: u16, #[case] kind: ErrorKind) {
    let vault = FakeVault::answering(page(status, "Not the vault")).await;
    let error = attempt(&vault.store(), Operation::Find).await.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    assert!(!error.to_string().contains("Not the vault"), "{error}");
}

#[rstest]
#[case("7", Some(7))]
#[case("9999999", Some(24 * 60 * 60))]
#[case("tomorrow", None)]
#[tokio::test]
async fn the_delay_that_a_header_asks_for_is_reported(#[case] header: &str, #[case] seconds: Option<u64>) {
    let mut answer = refusal(429, "Throttled", "", "too many");
    answer.headers_mut().insert("retry-after", header.parse().unwrap());
    let vault = FakeVault::answering(answer).await;
    let error = attempt(&vault.store(), Operation::Find).await.unwrap_err();
    assert_eq!(error.retry_after(), seconds.map(Duration::from_secs));
}

#[rstest]
#[case(Operation::Find, "readMetadata/action")]
#[case(Operation::AddVersion, "readMetadata/action")]
#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_missing_is_named(#[case] operation: Operation, #[case] action: &str) {
    let identity = Identity { permissions: [Granted::Get].into(), ..Identity::admin() };
    let vault = FastVault::start(Emulator { identities: vec![identity], ..Emulator::default() }).await;
    let error = attempt(&vault.store(), operation).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().contains(action) && error.hint().unwrap().contains(action), "{error:?}");
}

/// The vault refuses a token before it expires by this machine's clock, and the workload's token is another one by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_refused_is_replaced() {
    let vault = FastVault::new().await;
    let store = with_a_version(&vault).await;
    vault.server.advance_clock(Duration::from_hours(2000));
    let error = attempt(&store, Operation::Find).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthenticated, "the workload's token has expired too: {error}");
    assert!(error.detail.unwrap().contains("AADSTS700024"));
    vault.renew_token();
    assert!(store.find(&secret_id()).await.unwrap().is_some());
}

fn with_identity(settings: &AzureSettings, change: impl FnOnce(&mut String, &mut String)) -> AzureStore {
    let mut settings = settings.clone();
    if let AzureIdentity::Workload { tenant, client_id, .. } = &mut settings.identity {
        change(tenant, client_id);
    }
    AzureStore::connect(&settings).unwrap()
}

#[track_caller]
fn is_unauthenticated(error: &StoreError, detail: &str) {
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unauthenticated, false), "{error}");
    assert!(error.detail.as_ref().unwrap().contains(detail), "{error}");
    assert!(error.hint().unwrap().contains("federated credential"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_that_gets_no_token_is_not_authenticated() {
    let vault = FastVault::new().await;
    let unknown = with_identity(&vault.settings(), |_tenant, client_id| *client_id = "unknown".to_owned());
    is_unauthenticated(&attempt(&unknown, Operation::Find).await.unwrap_err(), "AADSTS700016");
    let elsewhere = with_identity(&vault.settings(), |tenant, _client_id| *tenant = "a/b".to_owned());
    is_unauthenticated(&attempt(&elsewhere, Operation::Find).await.unwrap_err(), "there is no token");
    std::fs::remove_file(vault.folder.path().join("token")).unwrap();
    is_unauthenticated(&attempt(&vault.store(), Operation::Find).await.unwrap_err(), "cannot be read");
}

#[rstest]
#[case("requestToken:unavailable", ErrorKind::Unavailable)]
#[case("requestToken:throttled", ErrorKind::QuotaExceeded)]
#[case("requestToken:cut", ErrorKind::Unavailable)]
#[tokio::test(flavor = "multi_thread")]
async fn a_service_for_tokens_that_is_down_is_no_refusal(#[case] fault: &str, #[case] kind: ErrorKind) {
    let vault = FastVault::new().await;
    vault.inject(fault);
    let store = vault.store();
    let error = attempt(&store, Operation::Find).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (kind, true), "{error}");
    attempt(&store, Operation::Find).await.unwrap();
}

/// A link in an answer leads a token nowhere else.
#[tokio::test]
async fn no_token_follows_a_link_to_another_host() {
    let elsewhere = FakeVault::answering(document(200, &versions())).await;
    let link = format!("{}/secrets/pull-secret/versions?api-version=7.6", elsewhere.url());
    let mut first = versions();
    first["nextLink"] = json!(link);
    let vault = FakeVault::answering(document(200, &first)).await;
    for operation in [Operation::Find, Operation::ListVersions] {
        let error = attempt(&vault.store(), operation).await.unwrap_err();
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Invalid, false), "{error}");
        assert!(error.detail.unwrap().contains("neither the vault nor the service for tokens"));
    }
    let error = vault.store().list(&[], Some(&link)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
    assert_eq!(elsewhere.fake.received().len(), 0);
}

#[tokio::test]
async fn what_is_no_vault_gets_no_token() {
    let vault = FakeVault::answering(document(200, &versions())).await;
    let plain = AzureSettings { vault: "http://127.0.0.1:1".parse().unwrap(), ..vault.settings() };
    let error = AzureStore::connect(&plain).unwrap_err();
    assert_eq!((error.operation, error.kind), (Operation::Connect, ErrorKind::Invalid));
    // Another server at the vault's address has another certificate.
    let other = FakeVault::answering(document(200, &versions())).await;
    let taken = AzureSettings { vault: other.url().parse().unwrap(), ..vault.settings() };
    let error = attempt(&AzureStore::connect(&taken).unwrap(), Operation::Find).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
    assert!(error.hint().unwrap().contains("certificate"), "{error:?}");
    assert_eq!(other.fake.received().len(), 0);
}

#[rstest]
#[case::nothing("")]
#[case::half_a_head("HTTP/1.1 200 OK\r\ncontent-le")]
#[case::half_a_document("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{\"id\": \"")]
#[case::another_protocol("SSH-2.0-OpenSSH_9.9\r\n")]
#[tokio::test]
async fn an_answer_that_breaks_off_may_be_a_success(#[case] bytes: &'static str) {
    let vault = FakeVault::before(Fake::speaking(bytes).await).await;
    let error = attempt(&vault.store(), Operation::AddVersion).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Unavailable | ErrorKind::Internal) && error.is_transient(), "{error}");
}

#[tokio::test]
async fn a_vault_that_does_not_answer_takes_no_longer_than_the_time_of_a_call() {
    let vault = FastVault::new().await;
    vault.inject("getSecretVersions:hang*0");
    let hurried = AzureSettings { call_timeout: Duration::from_secs(2), ..vault.settings() };
    let error = attempt(&AzureStore::connect(&hurried).unwrap(), Operation::Find).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::TimedOut, true), "{error}");
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let mut answer = document(200, &versions());
    answer.body_mut().push_str(&" ".repeat(3 * 1024 * 1024));
    let vault = FakeVault::start(move |_: &Received| answer.clone()).await;
    let error = attempt(&vault.store(), Operation::Find).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal, "{error}");
    assert!(error.detail.unwrap().contains("longer than 2097152 bytes"));
}
