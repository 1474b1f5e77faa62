//! A successor publishes what its predecessor has not, and little more.

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::environment::{Environment as _, ProcessEnvironment};
use message_broker::Deliveries;
use sentinel::leader::Election;
use sentinel::position::PositionStore;

use crate::changes::QUIET;
use crate::rig::{FlakyBroker, broker, next, received, reconcile, start_with};
use testkit::hyperfleet::HyperFleetApi;

/// At most so many events are in flight.
const CONCURRENCY: usize = 4;

fn settings() -> String {
    format!("{QUIET}, publish: {{concurrency: {CONCURRENCY}}}")
}

fn id(number: usize) -> String {
    format!("cls-{number}")
}

/// Counts the events of each cluster until these clusters have one. Events of different clusters may overtake each other.
async fn until(events: &mut Deliveries, clusters: &[String], counts: &mut BTreeMap<String, usize>) {
    while let Some(missing) = clusters.iter().find(|id| !counts.contains_key(*id)) {
        let event = tokio::time::timeout(Duration::from_mins(1), next(events)).await;
        assert!(event.is_ok(), "the event of {missing} is lost: {counts:?}");
        *counts.entry(event.unwrap().subject.unwrap()).or_default() += 1;
    }
}

/// Kills a Sentinel among its publications, and checks what its successor publishes.
async fn a_successor_publishes_the_rest(store: impl Fn() -> PositionStore) {
    let api = HyperFleetApi::start().await;
    let (to, mut events) = broker().await;
    let flaky = FlakyBroker::new(to.clone());
    let first = start_with(&api, &settings(), flaky.clone(), Election::Alone, Some(store())).await.complete().await;
    let mut counts = BTreeMap::new();
    for number in 0..60 {
        api.create(&id(number)).await;
    }
    until(&mut events, &[id(40)], &mut counts).await;
    flaky.set_down(true);
    for number in 60..70 {
        api.create(&id(number)).await;
    }
    flaky.refused_one().await;
    first.kill().await;
    for number in 70..75 {
        api.create(&id(number)).await;
    }
    let second = start_with(&api, &settings(), to, Election::Alone, Some(store())).await.complete().await;
    until(&mut events, &(0..75).map(id).collect::<Vec<_>>(), &mut counts).await;
    // The successor knows the whole fleet.
    api.patch(&id(3), serde_json::json!({"a": 1})).await;
    let mut late = 0;
    while received(&mut events, 1).await != [reconcile(&id(3), 2)] {
        late += 1;
    }
    let duplicates = counts.values().sum::<usize>() - counts.len() + late;
    // Those in flight, and those that were confirmed and not recorded yet.
    assert!(duplicates <= 2 * CONCURRENCY, "{duplicates} duplicates: {counts:?}");
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_is_handed_over_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    a_successor_publishes_the_rest(|| PositionStore::File(folder.path().join("position"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_is_handed_over_in_postgresql() {
    let Ok(Some(url)) = ProcessEnvironment.text("REAL_POSTGRESQL_URL") else {
        let is_ci = ProcessEnvironment.text("CI").is_ok_and(|ci| ci.as_deref() == Some("true"));
        assert!(!is_ci, "REAL_POSTGRESQL_URL is not set");
        eprintln!("skipped: REAL_POSTGRESQL_URL is not set; hack/real-parts/with.sh postgresql -- cargo test");
        return;
    };
    let name = format!("successor-{}", std::process::id());
    a_successor_publishes_the_rest(|| PositionStore::row(url.clone().into(), name.clone())).await;
}

/// A position of another database, or one that is too old, is of no use: then everything that is not reconciled is published.
#[tokio::test(flavor = "multi_thread")]
async fn a_position_that_cannot_be_used_loses_nothing() {
    for text in ["00000000-7", "no position", ""] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("position");
        daemon::file::replace(&path, text.as_bytes()).unwrap();
        let api = HyperFleetApi::start().await;
        let (to, mut events) = broker().await;
        for number in 0..20 {
            api.create(&id(number)).await;
        }
        let store = PositionStore::File(path);
        let sentinel = start_with(&api, &settings(), to, Election::Alone, Some(store)).await;
        let mut published = received(&mut events, 20).await;
        published.sort();
        published.dedup();
        assert_eq!(published.len(), 20, "{text}");
        sentinel.stop().await;
    }
}
