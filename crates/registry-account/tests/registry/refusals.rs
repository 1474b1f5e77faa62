//! The kind of each failure of each call, at every registry.

use std::time::Duration;

use axum::http::Response;
use daemon::retry::Transient as _;
use registry_account::{
    ErrorKind, HarborRegistry, HarborSettings, IdentitySecret, Operation, QuayRegistry, QuaySettings,
};
use rstest::rstest;
use serde_json::json;

use crate::rig::{DESCRIPTION, TOKEN, Tested, harbor_settings, settings};
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
        for registry in Tested::all(fake.address) {
            let before = fake.received().len();
            for operation in registry.operations() {
                let error = registry.attempt(operation).await.unwrap_err();
                assert_eq!((error.operation, error.kind), (operation, kind), "{error}");
                assert_eq!(error.is_transient(), is_transient);
                assert_eq!(error.detail.as_deref(), Some(format!("HTTP status {status}").as_str()));
            }
            // Quay answers 500 to a question for the usage of an account that does not exist.
            let looked_up = usize::from(status == 500 && matches!(registry, Tested::Quay(_)));
            let sent = fake.received().len() - before;
            assert_eq!(sent, registry.operations().len() + looked_up, "no call is repeated");
        }
    }
}

#[tokio::test]
async fn an_exhausted_rate_carries_the_wait() {
    let mut refusal = page(429, "");
    refusal.headers_mut().insert("retry-after", "17".parse().unwrap());
    let fake = Fake::answering(refusal).await;
    for registry in Tested::all(fake.address) {
        for operation in registry.operations() {
            let error = registry.attempt(operation).await.unwrap_err();
            assert_eq!(error.retry_after, Some(Duration::from_secs(17)), "{operation:?}");
        }
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
        for registry in Tested::all(fake.address).iter().filter(|registry| registry.operations().contains(&operation)) {
            let error = registry.attempt(operation).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Internal, "{error}");
        }
    }
}

/// A 202 where another status is expected is no success: the registries' APIs are stricter.
#[tokio::test]
async fn an_unexpected_success_is_a_failure() {
    for robot in [super::quay::robot(), super::harbor::robot()] {
        let fake = Fake::answering(document(202, &robot)).await;
        for registry in Tested::all(fake.address) {
            for operation in registry.operations() {
                assert_eq!(registry.attempt(operation).await.unwrap_err().kind, ErrorKind::Internal);
            }
        }
    }
}

#[tokio::test]
async fn a_huge_answer_is_not_read_to_its_end() {
    let body = "x".repeat(33 * 1024 * 1024);
    let fake = Fake::answering(Response::builder().status(200).body(body).unwrap()).await;
    for registry in Tested::all(fake.address) {
        for operation in registry.operations().into_iter().filter(|it| [Operation::Find, Operation::List].contains(it))
        {
            let error = registry.attempt(operation).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Internal);
            assert_eq!(error.detail.as_deref(), Some("the answer is longer than 33554432 bytes"));
        }
    }
}

#[tokio::test]
async fn silence_is_a_time_out() {
    let fake = Fake::silent().await;
    for registry in Tested::all_within(fake.address, Duration::from_millis(50)) {
        for operation in registry.operations() {
            assert_eq!(registry.attempt(operation).await.unwrap_err().kind, ErrorKind::TimedOut);
        }
    }
}

#[tokio::test]
async fn a_broken_connection_is_an_outage() {
    let fake = Fake::speaking("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{").await;
    for registry in Tested::all(fake.address) {
        for operation in registry.operations() {
            assert_eq!(registry.attempt(operation).await.unwrap_err().kind, ErrorKind::Unavailable);
        }
    }
}

#[rstest]
#[case::missing(None)]
#[case::empty(Some(" \n"))]
#[case::no_header(Some("two\nlines"))]
#[tokio::test]
async fn an_unusable_file_is_named_and_nothing_is_sent(#[case] content: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    if let Some(content) = content {
        daemon::file::replace(&file, content.as_bytes()).unwrap();
    }
    let fake = Fake::answering(page(500, "")).await;
    let quay = QuaySettings { token: IdentitySecret::File(file.clone()), ..settings(fake.address) };
    let harbor = HarborSettings { password: IdentitySecret::File(file.clone()), ..harbor_settings(fake.address) };
    for registry in
        [Tested::Quay(QuayRegistry::connect(quay).unwrap()), Tested::Harbor(HarborRegistry::connect(harbor).unwrap())]
    {
        let error = registry.attempt(Operation::Find).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unauthenticated);
        assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    }
    assert_eq!(fake.received().len(), 0);
}
