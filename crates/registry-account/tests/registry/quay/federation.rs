//! The issuers that a robot accepts.

use std::collections::BTreeSet;

use axum::http::Response;
use registry_account::ErrorKind;
use serde_json::json;

use super::requests::no_robot;
use crate::rig::{issuers, name, quay};
use testkit::fake::{Fake, json as document};

#[tokio::test]
async fn issuers_are_read_and_cleared() {
    let fake = Fake::start(|request| match request.method.as_str() {
        "GET" => document(200, &json!(issuers())),
        _ => Response::builder().status(204).body(String::new()).unwrap(),
    })
    .await;
    let registry = quay(fake.address);
    assert_eq!(registry.issuers(&name()).await.unwrap(), issuers());
    registry.clear_issuers(&name()).await.unwrap();
    let sent = fake.received().into_iter().map(|request| format!("{} {}", request.method, request.target));
    let path = "/api/v1/organization/fleet/robots/hf-one/federation";
    assert_eq!(sent.collect::<Vec<_>>(), [format!("GET {path}"), format!("DELETE {path}")]);
}

#[tokio::test]
async fn issuers_that_were_kept_otherwise_are_an_error() {
    let fake =
        Fake::answering(document(200, &json!([{"issuer": "https://issuer.example", "subject": "another"}]))).await;
    let error = quay(fake.address).set_issuers(&name(), &issuers()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt);
}

#[tokio::test]
async fn an_unknown_robot_has_no_issuers() {
    let fake = Fake::answering(no_robot()).await;
    let registry = quay(fake.address);
    assert_eq!(registry.issuers(&name()).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(registry.set_issuers(&name(), &BTreeSet::new()).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(registry.clear_issuers(&name()).await.unwrap_err().kind, ErrorKind::NotFound);
}
