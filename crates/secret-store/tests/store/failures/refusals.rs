//! Refusals of the store itself: codes, permissions, delays, messages.

use std::collections::BTreeSet;
use std::time::Duration;

use daemon::retry::Transient as _;
use emulators::secret_manager::{Quotas, Settings as Emulator};
use rstest::rstest;
use secret_store::{ErrorKind, Operation, Permission, Permissions, SecretStore as _, StoreError, Version};
use serde_json::{Value, json};

use crate::rig::{OPERATIONS, PATH, attempt, emulated, faulty, number, secret_id, store_at};
use testkit::fake::{Fake, json as document, page};

/// The error of a creation at a server that refuses with this document.
async fn refused_with(status: u16, error: Value) -> StoreError {
    let fake = Fake::answering(document(status, &json!({ "error": error }))).await;
    attempt(&store_at(fake.address).await, Operation::Create).await.unwrap_err()
}

#[rstest]
#[case("cancelled", ErrorKind::Internal, true)]
#[case("unknown", ErrorKind::Internal, true)]
#[case("invalid-argument", ErrorKind::Invalid, false)]
#[case("deadline-exceeded", ErrorKind::TimedOut, true)]
#[case("not-found", ErrorKind::NotFound, false)]
#[case("already-exists", ErrorKind::AlreadyExists, false)]
#[case("permission-denied", ErrorKind::PermissionDenied, false)]
#[case("resource-exhausted", ErrorKind::QuotaExceeded, true)]
#[case("failed-precondition", ErrorKind::Invalid, false)]
#[case("aborted", ErrorKind::Unavailable, true)]
#[case("out-of-range", ErrorKind::Invalid, false)]
#[case("unimplemented", ErrorKind::Invalid, false)]
#[case("internal", ErrorKind::Internal, true)]
#[case("unavailable", ErrorKind::Unavailable, true)]
#[case("data-loss", ErrorKind::Internal, true)]
#[case("unauthenticated", ErrorKind::Unauthenticated, false)]
#[tokio::test]
async fn every_code_has_its_meaning(#[case] code: &str, #[case] kind: ErrorKind, #[case] transient: bool) {
    let (_server, store) = emulated(faulty(&format!("createSecret:{code}"))).await;
    let error = attempt(&store, Operation::Create).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (kind, transient));
    assert_eq!((error.operation, error.resource.as_str()), (Operation::Create, PATH));
    let message = format!("Scripted fault: {}.", code.to_uppercase().replace('-', "_"));
    let detail = match kind {
        ErrorKind::PermissionDenied => format!("needs secretmanager.secrets.create; {message}"),
        _ => message,
    };
    assert_eq!((error.detail.as_deref(), error.retry_after), (Some(detail.as_str()), None));
    assert!(error.to_string().starts_with(&format!("cannot create {PATH}: ")), "{error}");
    assert!(error.to_string().ends_with(&format!(" ({detail})")), "{error}");
}

#[rstest]
#[case("permission-denied", Some("grant the Job's service account secretmanager.secrets.create"))]
#[case("unauthenticated", Some("Workload Identity"))]
#[case("resource-exhausted", Some("quota"))]
#[case("unavailable", None)]
#[case("invalid-argument", None)]
#[tokio::test]
async fn a_hint_is_given_where_there_is_one(#[case] code: &str, #[case] hint: Option<&str>) {
    let (_server, store) = emulated(faulty(&format!("createSecret:{code}"))).await;
    let given = attempt(&store, Operation::Create).await.unwrap_err().hint();
    match hint {
        Some(hint) => assert!(given.unwrap().contains(hint)),
        None => assert_eq!(given, None),
    }
}

#[rstest]
#[case(Operation::Find, Permission::Find, "look up")]
#[case(Operation::Create, Permission::Create, "create")]
#[case(Operation::Update, Permission::Update, "update")]
#[case(Operation::Delete, Permission::Delete, "delete")]
#[case(Operation::AddVersion, Permission::AddVersion, "add a version to")]
#[case(Operation::ReadVersion, Permission::ReadVersion, "read")]
#[case(Operation::ListVersions, Permission::ListVersions, "list the versions of")]
#[case(Operation::DestroyVersion, Permission::DestroyVersion, "destroy")]
#[tokio::test]
async fn a_denial_names_the_permission(
    #[case] operation: Operation,
    #[case] permission: Permission,
    #[case] verb: &str,
) {
    let (_server, any) = emulated(Emulator::default()).await;
    let permission = any.permission_name(permission);
    let denied_permissions = BTreeSet::from([permission.to_owned()]);
    let (_server, store) = emulated(Emulator { denied_permissions, ..Emulator::default() }).await;
    let error = attempt(&store, operation).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    let beginning = format!("cannot {verb} {}: permission denied (needs {permission}; ", error.resource);
    assert!(error.to_string().starts_with(&beginning), "{error}");
    assert!(error.resource.starts_with(PATH) && error.hint().unwrap().contains(permission));
}

#[tokio::test]
async fn a_denial_to_ask_for_permissions_names_none() {
    let (_server, store) = emulated(faulty("testIamPermissions:permission-denied")).await;
    let error = attempt(&store, Operation::CheckPermissions).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert!(!error.to_string().contains("needs"), "{error}");
    assert_eq!(error.hint().unwrap(), "check the roles of the Job's service account");
}

#[tokio::test]
async fn missing_permissions_are_distinguished_from_those_that_are_not_known() {
    let denied_permissions = BTreeSet::from(["secretmanager.versions.add".to_owned()]);
    let (_server, store) = emulated(Emulator { denied_permissions, ..Emulator::default() }).await;
    attempt(&store, Operation::Create).await.unwrap();
    let wanted = BTreeSet::from([Permission::Create, Permission::Find, Permission::AddVersion]);
    let (missing, unknown) = (BTreeSet::from([Permission::AddVersion]), BTreeSet::from([Permission::Create]));
    let held = store.permissions(&secret_id(), &wanted).await.unwrap();
    assert_eq!(held, Permissions { missing, unknown });
}

#[rstest]
#[case("SERVICE_DISABLED", ErrorKind::ApiDisabled, Some("run: gcloud services enable secretmanager.googleapis.com"))]
#[case("IAM_PERMISSION_DENIED", ErrorKind::PermissionDenied, None)]
#[tokio::test]
async fn a_disabled_api_is_distinguished_from_a_missing_permission(
    #[case] reason: &str,
    #[case] kind: ErrorKind,
    #[case] hint: Option<&str>,
) {
    let info =
        json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"});
    let help = json!({"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": "https://example.com"}]});
    let unknown = json!({"@type": "type.googleapis.com/google.rpc.NotYetKnown", "x": 1});
    let error = json!({"code": 403, "message": "No.", "status": "PERMISSION_DENIED", "details": [unknown, help, info]});
    let error = refused_with(403, error).await;
    assert_eq!((error.kind, error.is_transient()), (kind, false));
    assert!(hint.is_none_or(|hint| error.hint().as_deref() == Some(hint)), "{:?}", error.hint());
}

#[rstest]
#[case("permission-denied", Operation::Update, ErrorKind::PermissionDenied)]
#[case("aborted", Operation::Update, ErrorKind::Changed)]
#[case("failed-precondition", Operation::Update, ErrorKind::Changed)]
#[case("aborted", Operation::Delete, ErrorKind::Changed)]
#[case("failed-precondition", Operation::Delete, ErrorKind::Changed)]
#[case("failed-precondition", Operation::ReadVersion, ErrorKind::Invalid)]
#[case("failed-precondition", Operation::DestroyVersion, ErrorKind::Invalid)]
#[tokio::test]
async fn the_meaning_of_a_code_depends_on_the_operation(
    #[case] code: &str,
    #[case] operation: Operation,
    #[case] kind: ErrorKind,
) {
    let (_server, store) = emulated(faulty(&format!("*:{code}"))).await;
    assert_eq!(attempt(&store, operation).await.unwrap_err().kind, kind);
}

#[rstest]
#[case("1500ms", Duration::from_millis(1500))]
#[case("0s", Duration::ZERO)]
#[case("3600s", Duration::from_hours(1))]
#[tokio::test]
async fn the_delay_that_a_status_asks_for_is_reported(#[case] asked: &str, #[case] expected: Duration) {
    let (_server, store) = emulated(faulty(&format!("*:resource-exhausted(retry-after={asked})*0"))).await;
    for operation in OPERATIONS {
        assert_eq!(attempt(&store, operation).await.unwrap_err().retry_after(), Some(expected), "{operation:?}");
    }
}

#[rstest]
#[case("7", Some(7))]
#[case("0", Some(0))]
#[case("-1", None)]
#[case("1.5", None)]
#[case("soon", None)]
#[case("", None)]
#[case("18446744073709551615", Some(24 * 60 * 60))]
#[tokio::test]
async fn the_delay_that_a_header_asks_for_is_reported(#[case] header: &str, #[case] seconds: Option<u64>) {
    for mut answer in [page(503, "busy"), document(503, &json!({"error": {"status": "UNAVAILABLE"}}))] {
        answer.headers_mut().insert("retry-after", header.parse().unwrap());
        let fake = Fake::answering(answer).await;
        let error = attempt(&store_at(fake.address).await, Operation::Find).await.unwrap_err();
        assert_eq!((error.kind, error.retry_after()), (ErrorKind::Unavailable, seconds.map(Duration::from_secs)));
    }
}

#[tokio::test]
async fn an_exhausted_quota_is_transient() {
    let quotas = Quotas { writes_per_minute: Some(1), ..Quotas::default() };
    let (_server, store) = emulated(Emulator { quotas, ..Emulator::default() }).await;
    attempt(&store, Operation::Create).await.unwrap();
    let error = attempt(&store, Operation::AddVersion).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (ErrorKind::QuotaExceeded, true));
    assert!(error.to_string().contains("quota exceeded (Quota exceeded for quota metric 'Write"));
}

#[rstest]
#[case("One line.", "One line.")]
#[case("\u{1b}[31mRed\u{0}\u{7}alert", "[31mRed alert")]
#[case("  First\r\n\tsecond\u{2028}third\n\n", "First second third")]
#[tokio::test]
async fn the_stores_message_is_put_on_one_line(#[case] message: &str, #[case] expected: &str) {
    let error = refused_with(400, json!({"code": 400, "message": message, "status": "INVALID_ARGUMENT"})).await;
    assert_eq!(error.detail.as_deref(), Some(expected));
    assert_eq!(error.to_string().lines().count(), 1);
}

#[tokio::test]
async fn the_stores_message_is_cut() {
    let message = "\u{f6}".repeat(100_000);
    let error = refused_with(400, json!({"code": 400, "message": message, "status": "INVALID_ARGUMENT"})).await;
    assert_eq!(error.detail.unwrap(), format!("{}…", "\u{f6}".repeat(400)));
}

/// Front ends answer in the store's form, but without its codes.
#[rstest]
#[case(400, ErrorKind::Invalid, false)]
#[case(401, ErrorKind::Unauthenticated, false)]
#[case(403, ErrorKind::PermissionDenied, false)]
#[case(404, ErrorKind::Invalid, false)]
#[case(429, ErrorKind::QuotaExceeded, true)]
#[case(500, ErrorKind::Internal, true)]
#[case(503, ErrorKind::Unavailable, true)]
#[tokio::test]
async fn a_refusal_without_a_code_is_identified_by_its_status(
    #[case] status: u16,
    #[case] kind: ErrorKind,
    #[case] transient: bool,
) {
    for mut error in [json!({}), json!({"status": "NOT_YET_KNOWN"}), json!({"status": "UNKNOWN"})] {
        error["message"] = json!("No.");
        let error = refused_with(status, error).await;
        assert_eq!((error.kind, error.is_transient()), (kind, transient));
        assert!(error.detail.as_deref().is_some_and(|detail| detail.ends_with("No.")), "{error}");
    }
}

#[tokio::test]
async fn a_store_without_a_message_is_not_quoted() {
    let error = refused_with(503, json!({"code": 503, "status": "UNAVAILABLE"})).await;
    assert_eq!(error.to_string(), format!("cannot create {PATH}: the store is unavailable"));
}

/// The operation was carried out, but the answer is an error or missing: reading by number shows it.
#[rstest]
#[case("addVersion:commit-then-timeout", ErrorKind::TimedOut)]
#[case("addVersion:commit-then-cut", ErrorKind::Unavailable)]
#[tokio::test]
async fn a_version_may_have_been_added_nevertheless(#[case] script: &str, #[case] kind: ErrorKind) {
    let (_server, store) = emulated(faulty(script)).await;
    attempt(&store, Operation::Create).await.unwrap();
    let error = attempt(&store, Operation::AddVersion).await.unwrap_err();
    assert_eq!((error.kind, error.is_transient()), (kind, true));
    assert!(matches!(store.read_version(&secret_id(), number(1)).await.unwrap(), Version::Live(_)));
    assert!(matches!(store.read_version(&secret_id(), number(2)).await.unwrap(), Version::Absent));
}
