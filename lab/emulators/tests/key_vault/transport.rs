//! TLS with an authority of its own, and requests that a web page may have sent.

use emulators::key_vault::Settings;
use rstest::rstest;
use serde_json::json;
use testkit::api_server::TIMEOUT;
use testkit::http::{exchange, exchange_over, secured};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use testkit::key_vault::{Server, versioned};

#[tokio::test]
async fn only_its_own_authority_vouches_for_a_server() {
    let (server, other) = (Server::plain().await, Server::plain().await);
    let connect = async |authority| secured(TcpStream::connect(server.vault.address()).await.unwrap(), authority).await;
    let error = connect(other.vault.authority()).await.unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
    connect(server.vault.authority()).await.unwrap();
    assert_eq!(server.vault.url(), format!("https://{}", server.vault.address()));
}

#[tokio::test]
async fn plain_http_is_not_answered() {
    let server = Server::plain().await;
    assert!(exchange(server.vault.address(), "GET", &versioned("/secrets"), "", "").await.is_none());
}

/// Neither a client that sends nothing nor one that sends no TLS keeps another from being served.
#[tokio::test]
async fn each_handshake_is_on_its_own() {
    let server = Server::plain().await;
    let connect = || TcpStream::connect(server.vault.address());
    let (_silent, late, mut wrong) = (connect().await.unwrap(), connect().await.unwrap(), connect().await.unwrap());
    wrong.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    // Until the server has ended the connection.
    drop(wrong.read_to_end(&mut Vec::new()).await);
    let late = secured(late, server.vault.authority()).await.unwrap();
    let headers = format!("host: localhost\r\nauthorization: Bearer {}\r\n", server.token);
    let path = versioned("/secrets");
    let served = timeout(TIMEOUT, exchange_over(late, "GET", &path, "", &headers)).await;
    served.unwrap().unwrap().expect(200);
}

#[rstest]
#[case::origin("host: localhost\r\norigin: https://example.com\r\n", 403, "requests of web pages")]
#[case::rebound("host: vault.example.com\r\n", 403, "only localhost and loopback addresses")]
#[case::no_host("", 403, "only localhost and loopback addresses")]
#[case::form("host: localhost\r\ncontent-type: application/x-www-form-urlencoded\r\n", 415, "send a content type")]
#[case::text("host: localhost\r\ncontent-type: text/plain\r\n", 415, "send a content type")]
#[tokio::test]
async fn requests_of_web_pages_are_refused(#[case] headers: &str, #[case] status: u16, #[case] text: &str) {
    let server = Server::plain().await;
    let headers = format!("{headers}authorization: Bearer {}\r\n", server.token);
    let reply = server.send("PUT", &versioned("/secrets/s"), r#"{"value": "a"}"#, &headers).await.unwrap();
    assert_eq!(reply.status, status, "{reply:?}");
    assert!(reply.body.as_str().unwrap().contains(text), "{reply:?}");
    assert_eq!(server.vault.calls().len(), 1, "the token only");
}

/// The token endpoint takes forms as every client sends them, but not of a web page.
#[tokio::test]
async fn forms_of_web_pages_get_no_token() {
    let server = Server::plain().await;
    let path = format!("/{}/oauth2/v2.0/token", server.settings.tenant);
    let headers = "host: localhost\r\norigin: null\r\ncontent-type: application/x-www-form-urlencoded\r\n";
    let reply = server.send("POST", &path, &server.form(&[]), headers).await.unwrap();
    assert_eq!(reply.status, 403, "{reply:?}");
}

/// Links name the server as the caller did, so that a client that reached it by name stays there.
#[tokio::test]
async fn ids_have_the_host_of_the_caller() {
    let server = Server::with_secret(Settings::default()).await;
    let host = format!("vault.localhost:{}", server.vault.address().port());
    let headers = format!("host: {host}\r\nauthorization: Bearer {}\r\n", server.token);
    let listed = server.send("GET", &versioned("/secrets"), "", &headers).await.unwrap().expect(200);
    assert_eq!(listed["value"][0]["id"], json!(format!("https://{host}/secrets/s")));
}
