//! Harbor's own refusals.

use axum::http::Response;
use registry_account::{AccountError, ErrorKind, Operation, Registry as _};
use rstest::rstest;
use serde_json::{Value, json};

use super::requests::{created, description, good, robot};
use crate::rig::{CREDENTIAL, DESCRIPTION, HARBOR_LOGIN, OPERATIONS, call, harbor, name, new_account};
use testkit::fake::{Fake, Received, json as document, page};

/// Harbor's form of refusals.
fn problem(status: u16) -> Response<String> {
    document(status, &json!({"errors": [{"code": "CODE", "message": DESCRIPTION}]}))
}

fn with(member: &str, value: Value) -> Value {
    let mut robot = robot();
    robot[member] = value;
    robot
}

fn other_credential() -> Value {
    json!(format!("{DESCRIPTION} [hyperfleet credential 01932b5c-9f3e-7c2a-8e1d-ba9876543210]"))
}

/// Answers as Harbor does, but to one method with something else.
fn except(
    method: &'static str,
    answer: Response<String>,
) -> impl Fn(&Received) -> Response<String> + Clone + Send + Sync {
    move |request| if request.method == method { answer.clone() } else { good(request) }
}

#[rstest]
#[case::as_sent(document(200, &robot()), None)]
#[case::no_description(document(200, &with("description", json!(""))), Some(ErrorKind::Corrupt))]
#[case::no_id(document(200, &with("description", json!(DESCRIPTION))), Some(ErrorKind::Corrupt))]
#[case::another_id(document(200, &with("description", other_credential())), Some(ErrorKind::Corrupt))]
#[case::another_description(
    document(200, &with("description", json!(format!("another [hyperfleet credential {CREDENTIAL}]")))),
    Some(ErrorKind::Corrupt)
)]
#[case::another_prefix(document(200, &with("name", json!("bot-fleet+hf-one"))), Some(ErrorKind::NotPrepared))]
#[case::another_project(document(200, &with("name", json!("robot$fleet2+hf-one"))), Some(ErrorKind::NotPrepared))]
#[case::gone_again(problem(404), Some(ErrorKind::Corrupt))]
#[case::broken(problem(503), Some(ErrorKind::Unavailable))]
#[case::unreadable(page(200, "<html>"), Some(ErrorKind::Internal))]
#[tokio::test]
async fn an_account_that_was_kept_otherwise_is_not_returned(
    #[case] kept: Response<String>,
    #[case] kind: Option<ErrorKind>,
) {
    let fake = Fake::start(except("GET", kept)).await;
    let error = harbor(fake.address).create(&new_account()).await.err();
    assert_eq!(error.map(|error| (error.operation, error.kind)), kind.map(|kind| (Operation::Create, kind)));
}

#[rstest]
#[case::null(Value::Null)]
#[case::empty(json!(""))]
#[tokio::test]
async fn an_account_without_a_password_is_not_returned(#[case] secret: Value) {
    let mut answer = created();
    answer["secret"] = secret;
    let fake = Fake::start(except("POST", document(201, &answer))).await;
    assert_eq!(harbor(fake.address).create(&new_account()).await.unwrap_err().kind, ErrorKind::Internal);
}

/// Answers to a creation that the name is taken, and finds robots; `refreshed` is the answer to the order of a password.
async fn taken(found: Value, refreshed: Response<String>) -> (Result<(), AccountError>, usize) {
    let fake = Fake::start(move |request| match request.method.as_str() {
        "POST" => problem(409),
        "PATCH" => refreshed.clone(),
        "GET" if request.target.contains("/robots?") => document(200, &found),
        _ => good(request),
    })
    .await;
    let created = harbor(fake.address).create(&new_account()).await.map(drop);
    let ordered: Vec<Received> = fake.received().into_iter().filter(|request| request.method == "PATCH").collect();
    assert!(ordered.iter().all(|request| request.target == "/api/v2.0/robots/3" && request.body == json!({})));
    (created, ordered.len())
}

/// The robot of someone else keeps its password.
#[rstest]
#[case::own(json!([robot()]), None, 1)]
#[case::ours_behind_others(json!([with("name", json!("robot$fleet+hf-one2")), robot()]), None, 1)]
#[case::of_another(json!([with("description", other_credential())]), Some(ErrorKind::NameTaken), 0)]
#[case::of_a_stranger(json!([with("description", json!("of a person"))]), Some(ErrorKind::NameTaken), 0)]
#[case::gone_again(json!([]), Some(ErrorKind::NameTaken), 0)]
#[case::null(json!(null), Some(ErrorKind::NameTaken), 0)]
#[case::another_prefix(json!([with("name", json!("bot-fleet+hf-one"))]), Some(ErrorKind::NotPrepared), 0)]
#[case::kept_otherwise(
    json!([with("description", json!(format!("another [hyperfleet credential {CREDENTIAL}]")))]),
    Some(ErrorKind::Corrupt),
    1
)]
#[tokio::test]
async fn a_name_that_exists_is_ours_only_with_our_credential(
    #[case] found: Value,
    #[case] kind: Option<ErrorKind>,
    #[case] ordered: usize,
) {
    let (result, found) = taken(found, document(200, &json!({"secret": "An0therSecret"}))).await;
    assert_eq!((result.err().map(|error| error.kind), found), (kind, ordered));
}

#[rstest]
#[case::denied(problem(403), ErrorKind::PasswordLost)]
#[case::gone_again(problem(404), ErrorKind::NameTaken)]
#[case::none(document(200, &json!({"secret": ""})), ErrorKind::Internal)]
#[case::unreadable(page(200, "<html>"), ErrorKind::Internal)]
#[case::broken(problem(500), ErrorKind::Internal)]
#[tokio::test]
async fn another_password_is_given_or_the_reason_is_stated(#[case] answer: Response<String>, #[case] kind: ErrorKind) {
    let error = taken(json!([robot()]), answer).await.0.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    if kind == ErrorKind::PasswordLost {
        let expected = format!(
            "cannot create account {HARBOR_LOGIN}: the password was lost before it arrived (the identity may not give a robot \
             another one)"
        );
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().unwrap().contains("use another random name"));
    }
}

#[rstest]
#[case::permitted(json!([robot()]), None, 0)]
#[case::permitted_and_disabled(json!([with("disable", json!(true))]), None, 0)]
#[case::not_permitted(json!([with("permissions", json!([]))]), None, 1)]
#[case::null(json!([with("permissions", Value::Null)]), None, 1)]
#[case::absent(json!([]), Some(ErrorKind::NotFound), 0)]
#[tokio::test]
async fn a_permission_is_given_again(#[case] found: Value, #[case] kind: Option<ErrorKind>, #[case] changes: usize) {
    let fake = Fake::start(
        move |request| {
            if request.target.contains("/robots?") { document(200, &found) } else { good(request) }
        },
    )
    .await;
    let error = harbor(fake.address).permit(&name()).await.err();
    assert_eq!(error.map(|error| error.kind), kind);
    let received = fake.received();
    assert_eq!(received.iter().filter(|request| request.method == "PUT").count(), changes);
    assert!(received.iter().filter(|request| request.method == "PUT").all(|request| request.body["disable"] == false));
}

#[tokio::test]
async fn a_disabled_robot_is_not_changed() {
    let fake = Fake::start(move |request| {
        if request.target.contains("/robots?") {
            document(200, &json!([with("disable", json!(true))]))
        } else {
            good(request)
        }
    })
    .await;
    harbor(fake.address).disable(&name()).await.unwrap();
    assert!(fake.received().iter().all(|request| request.method == "GET"));
}

/// A robot may be deleted between two requests.
#[rstest]
#[case("DELETE", Operation::Delete, None)]
#[case("PUT", Operation::Disable, Some(ErrorKind::NotFound))]
#[tokio::test]
async fn a_robot_that_is_gone_again_is_not_found(
    #[case] method: &'static str,
    #[case] operation: Operation,
    #[case] kind: Option<ErrorKind>,
) {
    let fake = Fake::start(except(method, problem(404))).await;
    let registry = harbor(fake.address);
    assert_eq!(call(&registry, operation).await.err().map(|error| error.kind), kind);
    if operation == Operation::Delete {
        assert!(!registry.delete(&name()).await.unwrap());
    }
}

#[tokio::test]
async fn a_missing_project_and_a_missing_log_are_named() {
    let fake = Fake::answering(problem(404)).await;
    let registry = harbor(fake.address);
    for operation in OPERATIONS {
        let error = call(&registry, operation).await.unwrap_err();
        let expected = match operation {
            Operation::Create => (ErrorKind::Invalid, "HTTP status 404"),
            Operation::Usage => (ErrorKind::Unsupported, "the project has no audit log at `auditlog-exts`"),
            _ => (ErrorKind::NotPrepared, "there is no project `fleet`"),
        };
        assert_eq!((error.kind, error.detail.as_deref()), (expected.0, Some(expected.1)));
        assert!(error.hint().is_some());
    }
}

/// A project that was made again has another number.
#[tokio::test]
async fn a_project_is_asked_for_again_after_a_refusal() {
    let fake =
        Fake::start(|request| if request.target.contains("/robots?") { problem(403) } else { good(request) }).await;
    let registry = harbor(fake.address);
    for _each in 0..2 {
        let error = registry.find(&name()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::PermissionDenied);
        assert!(error.hint().unwrap().contains("administrator of the project `fleet`"));
    }
    let projects = fake.received().into_iter().filter(|request| request.target.contains("/projects/"));
    assert_eq!(projects.count(), 2);
    assert_eq!(description().len(), DESCRIPTION.len() + 61);
}

#[tokio::test]
async fn a_page_that_is_no_number_is_invalid() {
    let fake = Fake::start(good).await;
    assert_eq!(harbor(fake.address).list(Some("x")).await.unwrap_err().kind, ErrorKind::Invalid);
}
