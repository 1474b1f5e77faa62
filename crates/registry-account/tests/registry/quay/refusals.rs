//! The kind of each failure of each call.

use std::time::Duration;

use axum::http::Response;
use daemon::retry::Transient as _;
use registry_account::{ErrorKind, Operation, QuayRegistry, QuaySettings, QuayToken, Registry as _, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use super::requests::{good, no_robot, problem, robot, short};
use crate::rig::{DESCRIPTION, LOGIN, OPERATIONS, TOKEN, attempt, name, new_account, quay, settings};
use testkit::fake::{Fake, json as document, page};

#[rstest]
#[case(302, ErrorKind::Invalid, false)]
#[case(400, ErrorKind::Invalid, false)]
#[case(401, ErrorKind::Unauthenticated, false)]
#[case(403, ErrorKind::PermissionDenied, false)]
#[case(405, ErrorKind::Invalid, false)]
#[case(408, ErrorKind::TimedOut, true)]
#[case(422, ErrorKind::Invalid, false)]
#[case(429, ErrorKind::QuotaExceeded, true)]
#[case(500, ErrorKind::Internal, true)]
#[case(502, ErrorKind::Unavailable, true)]
#[case(503, ErrorKind::Unavailable, true)]
#[case(504, ErrorKind::TimedOut, true)]
#[tokio::test]
async fn each_status_has_its_kind(#[case] status: u16, #[case] kind: ErrorKind, #[case] is_transient: bool) {
    let echo = format!("{DESCRIPTION} {TOKEN}");
    let refusals = [
        page(status, &echo),
        document(status, &json!({"detail": echo, "error_message": echo, "error_type": "insufficient_scope"})),
        document(status, &json!({"message": echo})),
    ];
    for refusal in refusals {
        let fake = Fake::answering(refusal).await;
        let registry = quay(fake.address);
        for operation in OPERATIONS {
            let error = attempt(&registry, operation).await.unwrap_err();
            assert_eq!((error.operation, error.kind), (operation, kind), "{error}");
            assert_eq!(error.is_transient(), is_transient);
            assert_eq!(error.detail.as_deref(), Some(format!("HTTP status {status}").as_str()));
        }
        // Quay answers 500 to a question for the usage of an account that does not exist.
        let looked_up = usize::from(status == 500);
        assert_eq!(fake.received().len(), OPERATIONS.len() + looked_up, "no call is repeated");
    }
}

#[tokio::test]
async fn an_exhausted_rate_carries_the_wait() {
    let mut refusal = page(429, "");
    refusal.headers_mut().insert("retry-after", "17".parse().unwrap());
    let fake = Fake::answering(refusal).await;
    let registry = quay(fake.address);
    for operation in OPERATIONS {
        let error = attempt(&registry, operation).await.unwrap_err();
        assert_eq!(error.retry_after, Some(Duration::from_secs(17)), "{operation:?}");
    }
}

#[rstest]
#[case::no_json("<html>")]
#[case::empty("")]
#[case::another_form("[1]")]
#[case::cut(r#"{"name": "fleet+hf-one", "#)]
#[tokio::test]
async fn an_unreadable_answer_is_a_failure(#[case] body: &'static str) {
    let with = |status: u16| Response::builder().status(status).body(body.to_owned()).unwrap();
    for (operation, status) in [
        (Operation::Create, 201),
        (Operation::Find, 200),
        (Operation::Usage, 200),
        (Operation::List, 200),
        (Operation::Federate, 200),
    ] {
        let fake = Fake::answering(with(status)).await;
        let registry = quay(fake.address);
        let error = attempt(&registry, operation).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Internal, "{error}");
    }
}

/// A 200 or 204 where another status is expected is no success: Quay's API is stricter.
#[tokio::test]
async fn an_unexpected_success_is_a_failure() {
    let fake = Fake::answering(document(202, &robot())).await;
    let registry = quay(fake.address);
    for operation in OPERATIONS {
        assert_eq!(attempt(&registry, operation).await.unwrap_err().kind, ErrorKind::Internal);
    }
}

#[tokio::test]
async fn a_huge_answer_is_not_read_to_its_end() {
    let body = "x".repeat(33 * 1024 * 1024);
    let fake = Fake::answering(Response::builder().status(200).body(body).unwrap()).await;
    let registry = quay(fake.address);
    for operation in [Operation::Find, Operation::List] {
        let error = attempt(&registry, operation).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Internal);
        assert_eq!(error.detail.as_deref(), Some("the answer is longer than 33554432 bytes"));
    }
}

#[tokio::test]
async fn silence_is_a_time_out() {
    let fake = Fake::silent().await;
    let settings = QuaySettings { call_timeout: Duration::from_millis(50), ..settings(fake.address) };
    let registry = QuayRegistry::connect(settings).unwrap();
    for operation in OPERATIONS {
        assert_eq!(attempt(&registry, operation).await.unwrap_err().kind, ErrorKind::TimedOut);
    }
}

#[tokio::test]
async fn a_broken_connection_is_an_outage() {
    let fake = Fake::speaking("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{").await;
    let registry = quay(fake.address);
    for operation in OPERATIONS {
        assert_eq!(attempt(&registry, operation).await.unwrap_err().kind, ErrorKind::Unavailable);
    }
}

fn with(member: &str, value: Value) -> Value {
    let mut robot = robot();
    robot[member] = value;
    robot
}

/// Quay answers 201 to a body that it could not read.
#[rstest]
#[case::no_description(with("description", Value::Null), ErrorKind::Corrupt)]
#[case::empty_description(with("description", json!("")), ErrorKind::Corrupt)]
#[case::another_description(with("description", json!("another")), ErrorKind::Corrupt)]
#[case::no_metadata(with("unstructured_metadata", Value::Null), ErrorKind::Corrupt)]
#[case::empty_metadata(with("unstructured_metadata", json!({})), ErrorKind::Corrupt)]
#[case::another_credential(
    with("unstructured_metadata", json!({"hyperfleet.io/credential": "01932b5c-9f3e-7c2a-8e1d-ba9876543210"})),
    ErrorKind::Corrupt
)]
#[case::metadata_of_another_form(with("unstructured_metadata", json!([1])), ErrorKind::Corrupt)]
#[case::another_robot(with("name", json!("fleet+hf-two")), ErrorKind::Corrupt)]
#[case::no_password(with("token", Value::Null), ErrorKind::PermissionDenied)]
#[case::empty_password(with("token", json!("")), ErrorKind::PermissionDenied)]
#[tokio::test]
async fn an_account_that_was_kept_otherwise_is_not_returned(#[case] kept: Value, #[case] kind: ErrorKind) {
    let fake = Fake::answering(document(201, &kept)).await;
    let error = quay(fake.address).create(&new_account()).await.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
}

#[rstest]
#[case::ours(document(200, &robot()), None)]
#[case::of_another(
    document(200, &with("unstructured_metadata", json!({"hyperfleet.io/credential": "01932b5c-9f3e-7c2a-8e1d-ba9876543210"}))),
    Some(ErrorKind::NameTaken)
)]
#[case::of_a_stranger(document(200, &with("unstructured_metadata", json!({}))), Some(ErrorKind::NameTaken))]
#[case::kept_otherwise(document(200, &with("description", json!(""))), Some(ErrorKind::Corrupt))]
#[case::gone_again(no_robot(), Some(ErrorKind::NameTaken))]
#[case::another_name(document(200, &with("name", json!("fleet+hf-two"))), Some(ErrorKind::Internal))]
#[case::no_password(document(200, &with("token", Value::Null)), Some(ErrorKind::PermissionDenied))]
#[case::refused(page(403, ""), Some(ErrorKind::PermissionDenied))]
#[case::broken(page(503, ""), Some(ErrorKind::Unavailable))]
#[tokio::test]
async fn a_name_that_exists_is_ours_only_with_our_credential(
    #[case] found: Response<String>,
    #[case] kind: Option<ErrorKind>,
) {
    let fake = Fake::start(move |request| match request.method.as_str() {
        "PUT" => problem(&format!("Existing robot with name: {LOGIN}")),
        _ => found.clone(),
    })
    .await;
    let created = quay(fake.address).create(&new_account()).await;
    assert_eq!(created.err().map(|error| (error.operation, error.kind)), kind.map(|kind| (Operation::Create, kind)));
}

#[rstest]
#[case::member(short("User fleet+hf-one is already a member of team pullers"), None)]
#[case::unknown_robot(problem("Unknown user"), Some(ErrorKind::NotFound))]
#[case::unknown_team(document(404, &json!({"detail": "Not Found", "status": 404})), Some(ErrorKind::NotPrepared))]
#[case::other(short("User fleet+hf-one cannot be added"), Some(ErrorKind::Invalid))]
#[tokio::test]
async fn a_team_has_a_member_or_says_why_not(#[case] answer: Response<String>, #[case] kind: Option<ErrorKind>) {
    let fake = Fake::answering(answer).await;
    let error = quay(fake.address).permit(&name()).await.err();
    assert_eq!(error.as_ref().map(|error| error.kind), kind);
    if kind == Some(ErrorKind::NotPrepared) {
        let expected = "cannot permit pulls to account fleet+hf-one: the permissions that accounts share are not set up \
                        (the organization `fleet` has no team `pullers`)";
        assert_eq!(error.unwrap().to_string(), expected);
    }
}

#[tokio::test]
async fn an_unknown_robot_is_no_failure_of_a_deletion() {
    let fake = Fake::answering(no_robot()).await;
    let registry = quay(fake.address);
    assert!(!registry.delete(&name()).await.unwrap());
    assert_eq!(registry.find(&name()).await.unwrap(), None);
    assert_eq!(registry.disable(&name()).await.unwrap_err().kind, ErrorKind::NotFound);
    let fake = Fake::answering(short("Robot is being used by a mirror")).await;
    assert_eq!(quay(fake.address).delete(&name()).await.unwrap_err().kind, ErrorKind::Invalid);
    let fake = Fake::start(|request| if request.target.contains("/logs") { page(500, "") } else { no_robot() }).await;
    let since = "2026-11-22T10:00:00Z".parse().unwrap();
    assert_eq!(quay(fake.address).usage(&name(), since).await.unwrap(), Usage::none());
    // A page that is not Quay's says nothing about robots.
    let fake = Fake::answering(page(404, "Could not find robot with specified username")).await;
    assert_eq!(quay(fake.address).delete(&name()).await.unwrap_err().kind, ErrorKind::Invalid);
}

#[tokio::test]
async fn a_refused_identity_names_the_remedy() {
    let fake = Fake::answering(page(403, "")).await;
    let hint = quay(fake.address).find(&name()).await.unwrap_err().hint().unwrap();
    assert!(hint.contains("org:admin") && hint.contains("`fleet`"), "{hint}");
}

#[rstest]
#[case::missing(None)]
#[case::empty(Some(" \n"))]
#[case::no_header(Some("two\nlines"))]
#[tokio::test]
async fn an_unusable_token_file_is_named_and_nothing_is_sent(#[case] content: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    if let Some(content) = content {
        daemon::file::replace(&file, content.as_bytes()).unwrap();
    }
    let fake = Fake::start(good).await;
    let settings = QuaySettings { token: QuayToken::File(file.clone()), ..settings(fake.address) };
    let error = QuayRegistry::connect(settings).unwrap().find(&name()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthenticated);
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    assert_eq!(fake.received().len(), 0);
}
