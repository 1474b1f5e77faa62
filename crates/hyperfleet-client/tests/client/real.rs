//! The client against the server that it is written for.

use std::collections::BTreeMap;

use hyperfleet_client::{
    Client, Generation, Health, ListQuery, NewResource, Patch, Reported, Status, Watch, WatchQuery,
};
use serde_json::{Value, json};
use testkit::hyperfleet::{self, HyperFleetApi, report};
use tokio_util::sync::CancellationToken;

use crate::server::budget;

fn cluster(id: &str, shard: &str) -> NewResource {
    let labels = [("shard".to_owned(), shard.to_owned())].into();
    NewResource { labels, ..hyperfleet::cluster(id) }
}

fn spec(value: &Value) -> Patch {
    Patch { spec: value.as_object().cloned(), ..Patch::default() }
}

async fn events(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut events = Vec::new();
    while events.len() < count {
        let event = watch.next().await.unwrap();
        // How often a quiet stream says that it is there depends on the machine.
        if let Some(object) = event.object {
            events.push(format!("{:?} {} {}", event.kind, object.id, object.generation));
        }
    }
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_created_reported_changed_and_deleted() {
    let real = HyperFleetApi::start().await;
    let (client, budget) = (real.client(), budget());
    let calls = client.within(&budget);
    assert_eq!(calls.create("clusters", &cluster("cls-1", "a")).await.unwrap().generation, Generation::FIRST);
    let taken = calls.create("clusters", &cluster("cls-1", "a")).await.unwrap_err();
    assert_eq!(taken.code(), Some("HYPERFLEET-CNF-001"));
    let stored = calls.report("clusters", "cls-1", &report("dns", Generation::from(1), Status::True)).await.unwrap();
    assert!(matches!(stored, Reported::Stored(Some(_))), "{stored:?}");
    let early = calls.report("clusters", "cls-1", &report("dns", Generation::from(2), Status::True)).await.unwrap();
    assert_eq!(early, Reported::Discarded);
    assert_eq!(
        calls.report("clusters", "cls-2", &report("dns", Generation::from(1), Status::True)).await.unwrap(),
        Reported::Gone
    );
    assert_eq!(calls.statuses("clusters", "cls-1").await.unwrap().len(), 1);
    let seen = calls.get("clusters", "cls-1").await.unwrap().unwrap();
    assert_eq!(seen.condition("DnsSuccessful").unwrap().status, Status::True);
    assert_eq!(seen.condition("Reconciled").unwrap().status, Status::False);
    let changed = calls.patch("clusters", "cls-1", &spec(&json!({"a": 1})), Some(Generation::FIRST)).await.unwrap();
    assert_eq!(changed.generation, Generation::from(2));
    let late = calls.patch("clusters", "cls-1", &spec(&json!({"a": 2})), Some(Generation::FIRST)).await.unwrap_err();
    assert_eq!(late.code(), Some("HYPERFLEET-CNF-002"));
    assert!(calls.delete("clusters", "cls-1").await.unwrap().unwrap().is_deleting());
    assert!(calls.history("clusters", "cls-1").await.unwrap().iter().any(|one| one.adapter == "dns"));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_read_to_their_end() {
    let real = HyperFleetApi::start().await;
    let (client, budget) = (real.client(), budget());
    let calls = client.within(&budget);
    for number in 0..230 {
        let shard = if number % 2 == 0 { "a" } else { "b" };
        calls.create("clusters", &cluster(&format!("cls-{number:03}"), shard)).await.unwrap();
    }
    assert_eq!(calls.list_all("clusters", ListQuery::default()).collect().await.unwrap().len(), 230);
    let search = ListQuery { search: Some("labels.shard = 'a'".to_owned()), ..ListQuery::default() };
    assert_eq!(calls.list_all("clusters", search).collect().await.unwrap().len(), 115);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_change_stream_goes_on_where_it_was_after_a_restart() {
    let real = HyperFleetApi::start().await;
    let (client, budget) = (real.client(), budget());
    let calls = client.within(&budget);
    calls.create("clusters", &cluster("cls-1", "a")).await.unwrap();
    calls.create("clusters", &cluster("cls-2", "b")).await.unwrap();
    let query = WatchQuery { search: Some("labels.shard = 'a'".to_owned()), ..WatchQuery::default() };
    let mut watch = client.watch("clusters", query, CancellationToken::new());
    assert_eq!(events(&mut watch, 1).await, ["Added cls-1 1"]);
    calls.patch("clusters", "cls-1", &spec(&json!({"a": 1})), None).await.unwrap();
    assert_eq!(events(&mut watch, 1).await, ["Modified cls-1 2"]);
    assert!(matches!(*watch.health().borrow(), Health::Streaming));
    let real = real.stop().await.await;
    let into_shard = Patch { labels: Some([("shard".to_owned(), "a".to_owned())].into()), ..Patch::default() };
    let out_of_shard = Patch { labels: Some(BTreeMap::new()), ..Patch::default() };
    calls.patch("clusters", "cls-2", &into_shard, None).await.unwrap();
    calls.patch("clusters", "cls-1", &out_of_shard, None).await.unwrap();
    assert_eq!(events(&mut watch, 2).await, ["Modified cls-2 2", "Deleted cls-1 3"]);
    drop(real);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_is_read_by_whom_it_is_for() {
    let real = HyperFleetApi::start().await;
    let document = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
    let (client, budget) = (real.client(), budget());
    let mut new = cluster("cls-1", "a");
    new.spec.insert("pullSecret".to_owned(), json!({ "data": document }));
    client.within(&budget).create("clusters", &new).await.unwrap();
    let refused = client.within(&budget).get_with_pull_secret("clusters", "cls-1").await.unwrap_err();
    assert_eq!(refused.status(), Some(403));
    let mut settings = hyperfleet_client::Settings::new(format!("http://{}", real.address).parse().unwrap());
    settings.token = Some(real.token());
    let reader = Client::new(settings).unwrap();
    let read = reader.within(&budget).get_with_pull_secret("clusters", "cls-1").await.unwrap().unwrap();
    let secret = read.pull_secret.unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(&secret), document);
}
