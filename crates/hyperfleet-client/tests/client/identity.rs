//! The identity: a token in a file that is rotated.

use std::path::Path;
use std::time::Duration;

use hyperfleet_client::{Client, Error, Settings, SetupError, TokenSettings};
use rstest::rstest;
use serde_json::json;

use crate::server::{Reply, Server, budget};

fn client(server: &Server, token: &Path) -> Client {
    let mut settings = server.settings();
    settings.token = Some(TokenSettings { path: token.to_path_buf(), cache_ttl: Duration::from_hours(1) });
    Client::new(settings).unwrap()
}

fn sent(server: &Server) -> Vec<String> {
    let value = |asked: crate::server::Asked| asked.headers["authorization"].to_str().unwrap().to_owned();
    server.asked().into_iter().map(value).collect()
}

#[tokio::test]
async fn a_refused_token_is_read_again_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let cluster = || Reply::new(200, json!({"id": "a"}));
    let server = Server::start([cluster(), Reply::problem(401, "AUT-003"), cluster(), cluster()]).await;
    let (client, budget) = (client(&server, &token), budget());
    for content in ["old\n", "new\n", "unread\n"] {
        daemon::file::replace(&token, content.as_bytes()).unwrap();
        client.within(&budget).get("clusters", "a").await.unwrap();
    }
    assert_eq!(sent(&server), ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]);
}

#[tokio::test]
async fn a_token_that_stays_refused_is_not_sent_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    daemon::file::replace(&token, b"hunter2").unwrap();
    let server = Server::start([Reply::problem(401, "AUT-002"), Reply::problem(401, "AUT-002")]).await;
    let client = client(&server, &token);
    let error = client.within(&budget()).get("clusters", "a").await.unwrap_err();
    assert_eq!(error.code(), Some("HYPERFLEET-AUT-002"));
    assert_eq!(server.lines().len(), 2);
    assert!(!format!("{error} {error:?} {client:?}").contains("hunter2"));
}

#[tokio::test]
async fn nothing_is_sent_without_the_token() {
    let server = Server::start([]).await;
    let client = client(&server, Path::new("/nowhere/token"));
    let error = client.within(&budget()).get("clusters", "a").await.unwrap_err();
    assert!(matches!(error, Error::Token { .. }));
    // The setting is named, not repeated: a token in the place of its path is a likely mistake.
    assert!(error.to_string().contains("the token file") && !error.to_string().contains("/nowhere/token"));
    assert_eq!(server.lines(), [""; 0]);
}

#[rstest]
#[case("https://api.fleet", None, true)]
#[case("http://localhost:8000", None, true)]
#[case("http://127.0.0.1:8000", None, true)]
#[case("http://[::1]:8000", None, true)]
#[case("http://api.fleet:8000", None, false)]
#[case("http://10.0.0.1", None, false)]
#[case("http://localhost.fleet", None, false)]
#[case("http://api.fleet:8000", Some("api.fleet"), true)]
#[case("http://other.fleet:8000", Some("api.fleet"), false)]
fn a_token_is_sent_in_clear_text_to_a_named_host_only(
    #[case] url: &str,
    #[case] plain_http_host: Option<&str>,
    #[case] is_allowed: bool,
) {
    let mut settings = Settings::new(url.parse().unwrap());
    settings.plain_http_host = plain_http_host.map(str::to_owned);
    assert!(Client::new(settings.clone()).is_ok(), "without a token there is nothing to protect");
    settings.token = Some(TokenSettings { path: "token".into(), cache_ttl: Duration::ZERO });
    match Client::new(settings) {
        Ok(_client) => assert!(is_allowed),
        Err(SetupError::ClearText { host }) => assert!(!is_allowed && url.contains(&host)),
        Err(other) => panic!("{other}"),
    }
}
