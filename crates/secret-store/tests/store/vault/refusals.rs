//! Answers of the server and of what stands before it: kind, detail and remedy of each.

use std::time::Duration;

use daemon::retry::Transient as _;
use http::Response;
use rstest::rstest;
use secrecy::ExposeSecret as _;
use secret_store::{ErrorKind, LiveVersion, Operation, SecretStore as _, Version};
use serde_json::{Value, json};

use super::requests::{fake_store, info};
use crate::rig::{OPERATIONS, attempt, number, secret_id};
use testkit::fake::{Fake, json as document, page};

/// An answer, and what the caller learns from it.
struct Row {
    status: u16,
    message: &'static str,
    kind: ErrorKind,
    hint: &'static str,
}

const fn row(status: u16, message: &'static str, kind: ErrorKind, hint: &'static str) -> Row {
    Row { status, message, kind, hint }
}

/// Messages are OpenBao's own, but for those of the statuses that only HashiCorp's server has.
const TABLE: [Row; 23] = [
    row(307, "", ErrorKind::Unavailable, "the active server"),
    row(400, "custom_metadata validation failed", ErrorKind::Invalid, ""),
    row(400, "check-and-set parameter required for this call", ErrorKind::Invalid, ""),
    row(
        400,
        "Upgrading from non-versioned to versioned data. This backend will be unavailable for a brief period and will resume service shortly.",
        ErrorKind::Unavailable,
        "",
    ),
    row(401, "", ErrorKind::Unauthenticated, ""),
    row(
        404,
        "no handler for route \"secret/x\". route entry not found.",
        ErrorKind::Invalid,
        "bao secrets enable -path=secret",
    ),
    row(404, "unsupported path", ErrorKind::Invalid, ""),
    row(405, "unsupported operation", ErrorKind::Invalid, ""),
    row(408, "", ErrorKind::TimedOut, ""),
    row(412, "required index state not present", ErrorKind::Unavailable, ""),
    row(413, "request body too large", ErrorKind::Invalid, ""),
    row(429, "request path \"x\": rate limit quota exceeded", ErrorKind::QuotaExceeded, "rate-limit quota"),
    row(472, "", ErrorKind::Unavailable, "the active server"),
    row(473, "", ErrorKind::Unavailable, "the active server"),
    row(500, "1 error occurred:\n\t* internal error\n\n", ErrorKind::Internal, ""),
    row(500, "local node not active but active cluster node not found", ErrorKind::Unavailable, ""),
    row(501, "", ErrorKind::Unavailable, ""),
    row(502, "", ErrorKind::Unavailable, ""),
    row(503, "Vault is sealed", ErrorKind::Unavailable, "unseal"),
    row(503, "", ErrorKind::Unavailable, ""),
    row(504, "", ErrorKind::TimedOut, ""),
    row(599, "", ErrorKind::Unavailable, ""),
    row(418, "", ErrorKind::Invalid, ""),
];

#[tokio::test]
async fn every_answer_has_its_meaning() {
    for Row { status, message, kind, hint } in TABLE {
        let errors: &[&str] = if message.is_empty() { &[] } else { &[message] };
        // A 404 without a message is an absent secret, which is no failure.
        let fake = Fake::answering(document(status, &json!({ "errors": errors }))).await;
        let store = fake_store(fake.address);
        for operation in OPERATIONS {
            let error = attempt(&store, operation).await.unwrap_err();
            assert_eq!((error.operation, error.kind), (operation, kind), "{status} {message}: {error}");
            assert_eq!(
                error.is_transient(),
                matches!(
                    kind,
                    ErrorKind::QuotaExceeded | ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal
                )
            );
            let detail = if message.is_empty() {
                format!("HTTP status {status}")
            } else {
                message.split_whitespace().collect::<Vec<_>>().join(" ")
            };
            assert_eq!(error.detail, Some(detail));
            let given = error.hint().unwrap_or_default();
            assert!(given.contains(hint) && given.is_empty() == hint.is_empty(), "{status} {message}: {given}");
        }
    }
}

/// Nothing of such a page is repeated, and its 404 says nothing about secrets.
#[rstest]
#[case(301, ErrorKind::Invalid)]
#[case(400, ErrorKind::Invalid)]
#[case(404, ErrorKind::Invalid)]
#[case(405, ErrorKind::Invalid)]
#[case(407, ErrorKind::Invalid)]
#[case(429, ErrorKind::QuotaExceeded)]
#[case(500, ErrorKind::Internal)]
#[case(502, ErrorKind::Unavailable)]
#[case(503, ErrorKind::Unavailable)]
#[case(504, ErrorKind::TimedOut)]
#[tokio::test]
async fn a_page_in_the_servers_place_is_identified_by_its_status(#[case] status: u16, #[case] kind: ErrorKind) {
    let fake =
        Fake::answering(page(status, "no handler for route; sealed; check-and-set parameter did not match")).await;
    let store = fake_store(fake.address);
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.kind, error.detail), (kind, Some(format!("HTTP status {status}"))), "{operation:?}");
    }
}

#[tokio::test]
async fn a_page_of_success_is_no_answer() {
    for answer in [page(200, "Please log in"), document(200, &json!({"data": [7]})), document(200, &json!({}))] {
        let fake = Fake::answering(answer).await;
        let store = fake_store(fake.address);
        for operation in OPERATIONS {
            // A secret without a creation is of another engine.
            let error = attempt(&store, operation).await.unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Internal | ErrorKind::Invalid), "{operation:?}: {error}");
        }
    }
}

#[tokio::test]
async fn a_refusal_of_a_token_that_is_known_is_one_of_permission() {
    let known = |request: &testkit::fake::Received| {
        let is_lookup = request.target == "/v1/auth/token/lookup-self";
        if is_lookup { document(200, &json!({"data": {}})) } else { denied() }
    };
    let fake = Fake::start(known).await;
    assert_eq!(
        attempt(&fake_store(fake.address), Operation::Find).await.unwrap_err().kind,
        ErrorKind::PermissionDenied
    );
    let fake = Fake::answering(denied()).await;
    let error = attempt(&fake_store(fake.address), Operation::Find).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unauthenticated);
    assert!(error.to_string().contains("does not accept the token in"), "{error}");
}

fn denied() -> Response<String> {
    document(403, &json!({"errors": ["1 error occurred:\n\t* permission denied\n\n"]}))
}

#[rstest]
#[case("7", Some(7))]
#[case("soon", None)]
#[case("18446744073709551615", Some(24 * 60 * 60))]
#[tokio::test]
async fn the_delay_that_a_header_asks_for_is_reported(#[case] header: &str, #[case] seconds: Option<u64>) {
    let mut answer = document(429, &json!({"errors": []}));
    answer.headers_mut().insert("retry-after", header.parse().unwrap());
    let fake = Fake::answering(answer).await;
    let error = attempt(&fake_store(fake.address), Operation::Find).await.unwrap_err();
    assert_eq!(error.retry_after(), seconds.map(Duration::from_secs));
}

#[rstest]
#[case::nothing("")]
#[case::half_a_head("HTTP/1.1 200 OK\r\ncontent-le")]
#[case::half_a_body("HTTP/1.1 404 Not Found\r\ncontent-length: 1000\r\n\r\n{\"errors\": []")]
#[case::another_protocol("SSH-2.0-OpenSSH_9.9\r\n")]
#[tokio::test]
async fn an_answer_that_breaks_off_is_an_unavailable_server(#[case] bytes: &'static str) {
    let fake = Fake::speaking(bytes).await;
    let store = fake_store(fake.address);
    for operation in OPERATIONS {
        let error = attempt(&store, operation).await.unwrap_err();
        assert_eq!((error.kind, error.is_transient()), (ErrorKind::Unavailable, true), "{error}");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_read_to_it() {
    let endless = "x".repeat(17 * 1024 * 1024);
    let fake = Fake::answering(page(200, &endless)).await;
    let error = attempt(&fake_store(fake.address), Operation::Find).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(error.to_string().contains("longer than"), "{error}");
}

/// People may add versions too, with entries of their own.
#[rstest]
#[case(json!({"pull-secret": "{}", "record": {"a": "1", "b": 2}}), "{}", 1)]
#[case(json!({"pull-secret-base64": "//4="}), "\u{fffd}", 0)]
#[case(json!({"pull-secret-base64": "!"}), "{\"pull-secret-base64\":\"!\"}", 0)]
#[case(json!({"auths": {}, "record": "x"}), "{\"auths\":{},\"record\":\"x\"}", 0)]
#[tokio::test]
async fn a_version_of_any_form_is_live(#[case] data: Value, #[case] content: &str, #[case] record: usize) {
    let fake = Fake::answering(document(200, &json!({"data": {"data": data, "metadata": {"destroyed": false}}}))).await;
    let read = fake_store(fake.address).read_version(&secret_id(), number(1)).await.unwrap();
    let Version::Live(LiveVersion { content: found, record: texts }) = read else { panic!("{read:?}") };
    let found = String::from_utf8_lossy(found.expose_secret());
    assert_eq!((found.trim_end_matches('\u{fffd}'), texts.len()), (content.trim_end_matches('\u{fffd}'), record));
}

/// With `delete_version_after` a version is live until then.
#[tokio::test]
async fn a_deletion_that_lies_ahead_is_none_yet() {
    let mut info = info();
    for (version, time) in [("1", "2026-01-01T00:00:00Z"), ("2", "2126-01-01T00:00:00Z")] {
        info["data"]["versions"][version] = json!({"deletion_time": time, "destroyed": false});
    }
    let fake = Fake::answering(document(200, &info)).await;
    let versions = fake_store(fake.address).list_versions(&secret_id()).await.unwrap();
    let shown: Vec<_> = versions.iter().map(|version| format!("{}:{:?}", version.number, version.state)).collect();
    assert_eq!(shown, ["2:Live", "1:Disabled"]);
}
