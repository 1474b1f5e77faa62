//! Networks and databases that fail under load and recover.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::network::{Network, Weather};
use crate::rig::{Answer, Rig, TestDatabase, Watch, cluster, start, until};

/// A server whose database is behind a network that can fail.
async fn behind_network() -> Option<(TestDatabase, Network, Rig)> {
    let database = TestDatabase::postgres().await?;
    let TestDatabase::Postgres { url, .. } = &database else { return None };
    let (rest, name) = url.rsplit_once('/').unwrap();
    let (user, target) = rest.rsplit_once('@').unwrap();
    let network = Network::before(target.to_owned()).await;
    let mut variables = database.variables();
    variables.insert("DATABASE_URL", format!("{user}@{}/{name}", network.address));
    variables.insert("HYPERFLEET_DATABASE_POOL_ACQUIRE_TIMEOUT", "1s".to_owned());
    variables.insert("HYPERFLEET_DATABASE_POOL_MAX_CONNECTIONS", "4".to_owned());
    variables.insert("HYPERFLEET_SERVER_TIMEOUTS_WRITE", "2s".to_owned());
    variables.insert("HYPERFLEET_HEALTH_SHUTDOWN_TIMEOUT", "2s".to_owned());
    variables.insert("HYPERFLEET_HEALTH_DB_PING_TIMEOUT", "500ms".to_owned());
    let rig = start(&variables).await;
    Some((database, network, rig))
}

/// Checks that an answer does not contain the text of a database driver.
pub(crate) fn assert_hides_driver(answer: &Answer) {
    assert!([503, 504].contains(&answer.status), "{answer:?}");
    let code = answer.body["code"].as_str().unwrap();
    assert!(["HYPERFLEET-SVC-001", "HYPERFLEET-SVC-002"].contains(&code), "{answer:?}");
    let text = answer.body.to_string().to_lowercase();
    for word in ["sqlx", "connection refused", "os error", "postgres", "pool timed out", "broken pipe", "57p01"] {
        assert!(!text.contains(word), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_network_is_unavailable_and_heals() {
    let Some((database, network, rig)) = behind_network().await else { return };
    rig.client.create_in_time("before").await;
    for _ in 0..3 {
        network.set(Weather::Cut);
        let began = Instant::now();
        let asked = (0..20).map(|_| rig.client.get("/clusters"));
        for answer in futures_util::future::join_all(asked).await {
            assert_hides_driver(&answer);
        }
        assert!(began.elapsed() < Duration::from_secs(20), "answered in bounded time");
        assert_hides_driver(&rig.client.post("/clusters", &cluster("meanwhile")).await);
        until("unreadiness", async || rig.readiness().await == 503).await;
        network.set(Weather::Fine);
        until("recovery", async || rig.client.get("/clusters").await.status == 200).await;
        rig.ready().await;
        assert_eq!(rig.client.get_in_time("/clusters").await.body["items"].as_array().unwrap().len(), 1);
    }
    rig.end().await;
    database.end().await;
}

/// A connection that a firewall has dropped gives no error; unless the server detects it, it loses all of its connections
/// one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_drops_everything_is_survived() {
    let Some((database, network, rig)) = behind_network().await else { return };
    let stop = CancellationToken::new();
    let mut busy = JoinSet::new();
    // All connections are in use when it happens.
    for number in 0..16 {
        let (client, stop) = (rig.client.clone(), stop.clone());
        busy.spawn(async move {
            for step in 0.. {
                let answer = client.post("/clusters", &cluster(&format!("busy-{number}-{step}"))).await;
                if answer.status != 201 {
                    assert_hides_driver(&answer);
                    if stop.is_cancelled() {
                        break;
                    }
                }
            }
        });
    }
    until("load", async || rig.client.get("/clusters").await.body["total"].as_i64() > Some(50)).await;
    network.set(Weather::Swallowing);
    stop.cancel();
    while let Some(done) = busy.join_next().await {
        done.unwrap();
    }
    until("unreadiness", async || rig.readiness().await == 503).await;
    network.set(Weather::Fine);
    let recovered = until("recovery after a partition", async || rig.client.get("/clusters").await.status == 200);
    recovered.await;
    rig.ready().await;
    rig.end().await;
    database.end().await;
}

/// Stopping a server during an outage does not wait for the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_ends_in_time_while_the_network_drops_everything() {
    let Some((database, network, rig)) = behind_network().await else { return };
    network.set(Weather::Swallowing);
    let asked = (0..8).map(|_| rig.client.get("/clusters"));
    for answer in futures_util::future::join_all(asked).await {
        assert_hides_driver(&answer);
    }
    rig.stop.cancel();
    // The drain time-out is 2 s.
    timeout(Duration::from_secs(30), rig.running).await.expect("the server must end").unwrap().unwrap();
    database.end().await;
}

/// Waits for the end of a stream, before which there may be bookmarks.
async fn ends(watch: &mut Watch) {
    while let Some(event) = watch.next().await {
        assert_eq!(event["type"], "BOOKMARK", "the stream ends");
    }
}

/// A stream ends or continues; it never skips changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_in_an_outage_and_is_resumed_without_loss() {
    let Some((database, network, rig)) = behind_network().await else { return };
    rig.client.create_in_time("one").await;
    let mut watches = Vec::new();
    for search in ["", "&search=id!=%27x%27", ""] {
        let mut watch = rig.client.watch(&format!("/clusters?watch=true{search}")).await;
        assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
        let bookmark = watch.next().await.unwrap();
        assert_eq!(bookmark["type"], "BOOKMARK");
        watches.push((search, bookmark["resource_version"].as_str().unwrap().to_owned(), watch));
    }
    network.set(Weather::Cut);
    for (_, _, watch) in &mut watches {
        ends(watch).await;
    }
    network.set(Weather::Fine);
    rig.client.create_in_time("two").await;
    for (search, version, _ended) in watches {
        let mut watch = rig.client.watch(&format!("/clusters?watch=true&resource_version={version}{search}")).await;
        let event = watch.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["name"]), (&"ADDED".into(), &"two".into()));
    }
    rig.end().await;
    database.end().await;
}

/// A stream ends also where a read of the database gets neither an answer nor an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_while_the_network_drops_everything() {
    let Some((database, network, rig)) = behind_network().await else { return };
    let mut watch = rig.client.watch("/clusters?watch=true").await;
    assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
    network.set(Weather::Swallowing);
    ends(&mut watch).await;
    network.set(Weather::Fine);
    until("recovery", async || rig.client.get("/clusters").await.status == 200).await;
    rig.end().await;
    database.end().await;
}
