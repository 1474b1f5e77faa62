//! A probe of the server, which any answer satisfies, and the causes for which there is none.

use hyperfleet_client::{Client, ConnectionFault, Settings, TokenSettings};
use jiff::Timestamp;

use crate::server::{Reply, Server};

#[tokio::test]
async fn any_answer_has_the_clock_and_no_token_is_sent() {
    let date = "Wed, 21 Oct 2015 07:28:30 GMT";
    let server = Server::start([Reply::status(404).with("date", date)]).await;
    let token = Some(TokenSettings { path: "no-such-file".into(), cache_ttl: std::time::Duration::ZERO });
    let client = Client::new(Settings { token, ..server.settings() }).unwrap();
    let before = Timestamp::now();
    let probe = client.probe().await.unwrap();
    assert_eq!(probe.date, Some("2015-10-21T07:28:30Z".parse().unwrap()));
    assert!(before <= probe.sent && probe.sent <= probe.received && probe.received <= Timestamp::now());
    assert_eq!(probe.certificate_end, None);
    assert_eq!(server.lines(), ["HEAD /openapi"]);
    assert!(server.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
    assert!(client.identity().await.is_err());
}

#[tokio::test]
async fn the_cause_of_a_failed_connection_is_known() {
    let server = Server::start([]).await;
    let encrypted = server.client().address().replace("http://", "https://");
    for (address, expected) in
        [(encrypted.as_str(), ConnectionFault::NotTls), ("http://127.0.0.1:1", ConnectionFault::Refused)]
    {
        let client = Client::new(Settings::new(address.parse().unwrap())).unwrap();
        let error = client.probe().await.unwrap_err();
        assert_eq!(error.connection_fault(), Some(expected), "{error:?}");
    }
}
