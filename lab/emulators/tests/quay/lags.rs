//! Lists that lag behind creations and deletions.

use std::time::Duration;

use emulators::quay::Settings;
use serde_json::{Value, json};
use testkit::quay::Server;

#[tokio::test]
async fn a_list_shows_later_what_a_read_shows_at_once() {
    let lag = Duration::from_mins(1);
    let server = Server::start(Settings { list_lag: lag, ..Settings::default() }).await;
    let listed = async || {
        let list = server.call("GET", "robots?token=false", json!(null)).await.expect(200);
        list["robots"].as_array().map(Vec::len)
    };
    server.robot("a1").await;
    assert_eq!(listed().await, Some(0));
    server.call("GET", "robots/a1", json!(null)).await.expect(200);
    server.quay.advance_clock(lag);
    assert_eq!(listed().await, Some(1));
    server.call("DELETE", "robots/a1", Value::Null).await.expect(204);
    server.call("GET", "robots/a1", json!(null)).await.expect(400);
    assert_eq!(listed().await, Some(1));
    server.quay.advance_clock(lag);
    assert_eq!(listed().await, Some(0));
}
