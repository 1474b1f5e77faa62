//! Quay's own refusals.

use axum::http::Response;
use registry_account::{ErrorKind, Operation, Registry as _, Usage};
use rstest::rstest;
use serde_json::{Value, json};

use super::requests::{no_robot, problem, robot, short};
use crate::rig::{LOGIN, name, new_account, quay};
use testkit::fake::{Fake, json as document, page};

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
#[case::own(document(200, &robot()), None)]
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
        let expected = "cannot permit pulls to account fleet+hf-one: what accounts share is not set up \
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
