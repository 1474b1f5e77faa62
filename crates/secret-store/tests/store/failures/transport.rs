//! The way to the store: closed, cut, silent, or with something else at its end.

use std::time::Duration;

use daemon::retry::Transient as _;
use rstest::rstest;
use secret_store::{Endpoint, ErrorKind, GoogleSecretManager, Operation, Settings};
use serde_json::json;
use tokio::net::TcpSocket;

use crate::rig::{OPERATIONS, attempt, emulated, faulty, settings, store_at};
use testkit::fake::{Fake, json as document, page};

#[tokio::test]
async fn a_refused_connection_is_an_unavailable_store() {
    let unheard = TcpSocket::new_v4().unwrap();
    // Bound, so that no other process gets the port, but not listening.
    unheard.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let store = store_at(unheard.local_addr().unwrap()).await;
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.operation, error.kind, error.is_transient()), (operation, ErrorKind::Unavailable, true));
        assert!(error.detail.unwrap().contains("refused"), "{operation:?}");
    }
}

#[tokio::test]
async fn a_cut_connection_is_an_unavailable_store() {
    let (_server, store) = emulated(faulty("*:cut*0")).await;
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.operation, error.kind, error.is_transient()), (operation, ErrorKind::Unavailable, true));
    }
}

#[rstest]
#[case::nothing("")]
#[case::half_a_head("HTTP/1.1 200 OK\r\ncontent-le")]
#[case::half_a_body("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"name\": \"")]
#[case::half_a_chunk("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n100\r\n{\"name\"")]
#[case::half_an_error("HTTP/1.1 404 Not Found\r\ncontent-length: 1000\r\n\r\n{\"error\": {\"status\": \"NOT_FOUND\"")]
#[case::another_protocol("SSH-2.0-OpenSSH_9.9\r\n")]
#[tokio::test]
async fn an_answer_that_breaks_off_is_an_unavailable_store(#[case] bytes: &'static str) {
    let fake = Fake::speaking(bytes).await;
    let store = store_at(fake.address).await;
    for operation in [Operation::Find, Operation::ReadVersion] {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unavailable, true), "{error}");
    }
}

#[tokio::test]
async fn silence_is_waited_for_as_long_as_one_call_may_take() {
    let (server, _patient) = emulated(faulty("*:hang*0")).await;
    let settings = Settings { call_timeout: Duration::from_millis(50), ..settings(server.address()) };
    let store = GoogleSecretManager::connect(&settings).await.unwrap();
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.operation, error.kind, error.is_transient()), (operation, ErrorKind::TimedOut, true));
        assert!(error.to_string().ends_with(": no answer in time"), "{error}");
    }
}

#[rstest]
#[case("")]
#[case("127.0.0.1:port")]
#[case("two words:80")]
#[case("::1:80")]
#[tokio::test]
async fn an_address_that_is_none_is_refused_before_any_call(#[case] address: &str) {
    let somewhere = settings("127.0.0.1:1".parse().unwrap());
    let settings = Settings { endpoint: Endpoint::emulator(address.to_owned()), ..somewhere };
    let error = GoogleSecretManager::connect(&settings).await.unwrap_err();
    assert_eq!((error.operation, error.kind, error.is_transient()), (Operation::Connect, ErrorKind::Invalid, false));
    assert!(error.to_string().starts_with("cannot set up the client for projects/fleet-dev: "), "{error}");
}

/// Neither does the content go elsewhere, nor is the answer from there taken for the store's.
#[rstest]
#[case(301)]
#[case(302)]
#[case(303)]
#[case(307)]
#[case(308)]
#[tokio::test]
async fn a_redirection_is_not_followed(#[case] status: u16) {
    let elsewhere = Fake::answering(document(200, &json!({"name": "projects/1/secrets/s/versions/1"}))).await;
    let mut moved = page(status, "moved");
    let address = format!("http://localhost:{}/", elsewhere.address.port());
    moved.headers_mut().insert("location", address.parse().unwrap());
    let fake = Fake::answering(moved).await;
    let store = store_at(fake.address).await;
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.operation, error.kind), (operation, ErrorKind::Invalid));
        assert_eq!(error.detail, Some(format!("HTTP status {status}")));
    }
    assert!(elsewhere.received().is_empty());
}

/// Nothing of such a page is repeated, and its 404 says nothing about secrets.
#[rstest]
#[case(400, ErrorKind::Invalid, false)]
#[case(401, ErrorKind::Unauthenticated, false)]
#[case(403, ErrorKind::PermissionDenied, false)]
#[case(404, ErrorKind::Invalid, false)]
#[case(407, ErrorKind::Invalid, false)]
#[case(408, ErrorKind::TimedOut, true)]
#[case(409, ErrorKind::Invalid, false)]
#[case(429, ErrorKind::QuotaExceeded, true)]
#[case(500, ErrorKind::Internal, true)]
#[case(502, ErrorKind::Unavailable, true)]
#[case(503, ErrorKind::Unavailable, true)]
#[case(504, ErrorKind::TimedOut, true)]
#[tokio::test]
async fn a_page_in_the_stores_place_is_identified_by_its_status(
    #[case] status: u16,
    #[case] kind: ErrorKind,
    #[case] is_transient: bool,
) {
    let fake = Fake::answering(page(status, "Squid proxy: etag, DESTROYED state, DISABLED state")).await;
    let store = store_at(fake.address).await;
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.operation, error.kind, error.is_transient()), (operation, kind, is_transient));
        let detail = error.detail.unwrap();
        let message = if kind == ErrorKind::PermissionDenied { detail.rsplit("; ").next().unwrap() } else { &detail };
        assert_eq!(message, format!("HTTP status {status}"));
    }
}
