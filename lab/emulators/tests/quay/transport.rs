//! Requests that a web page may have sent, and paths that there are not.

use rstest::rstest;
use serde_json::Value;
use testkit::http::exchange_over;
use testkit::quay::{Server, bearer};
use tokio::net::TcpStream;

#[rstest]
#[case::origin("host: localhost\r\norigin: https://example.com\r\n", 403)]
#[case::rebound("host: quay.example.com\r\n", 403)]
#[case::no_host("", 403)]
#[case::form("host: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n", 415)]
#[tokio::test]
async fn requests_of_web_pages_are_refused(#[case] headers: &str, #[case] status: u16) {
    let server = Server::plain().await;
    let stream = TcpStream::connect(server.quay.address()).await.unwrap();
    let headers = format!("{headers}{}", bearer(server.quay.token()));
    let reply = exchange_over(stream, "PUT", "/api/v1/organization/hyperfleet/robots/a1", "", &headers).await.unwrap();
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!((server.quay.robots(), server.quay.calls()), (Vec::new(), Vec::new()));
}

#[rstest]
#[case("GET", "something")]
#[case("PATCH", "robots/a1")]
#[case("GET", "robots/a1/something")]
#[tokio::test]
async fn other_paths_are_not_found(#[case] method: &str, #[case] path: &str) {
    let server = Server::plain().await;
    server.call(method, path, Value::Null).await.expect(404);
    assert_eq!(server.quay.calls(), []);
}

#[tokio::test]
async fn tokens_are_asked_for_with_get_as_quay_has_it() {
    let server = Server::plain().await;
    let form = "host: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    let stream = TcpStream::connect(server.quay.address()).await.unwrap();
    let reply = exchange_over(stream, "POST", "/v2/auth", "grant_type=password", form).await.unwrap();
    assert_eq!((reply.status, server.quay.calls()), (405, Vec::new()));
}
