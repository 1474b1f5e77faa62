//! Change streams under concurrent writers on two servers: nothing twice, nothing missing, nothing out of order.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::concurrency::{Pair, create};
use crate::rig::{Client, Watch, cluster, report};

/// A stream of either server has each version of both servers once and in order, and adds up to the list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_has_every_change_once() {
    const WRITERS: usize = 8;
    for pair in Pair::all().await {
        let mut watches = Vec::new();
        for number in 0..4 {
            let mut watch = pair.client(number).watch("/clusters?watch=true").await;
            // The bookmark follows the present state, which is empty.
            assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
            watches.push(watch);
        }
        let writers = (0..WRITERS).map(|writer| {
            let client = pair.client(writer);
            tokio::spawn(async move {
                for step in 0..8 {
                    let id = create(&client, "/clusters", &cluster(&format!("c-{writer}-{step}"))).await;
                    let path = format!("/clusters/{id}");
                    client.put(&format!("{path}/statuses"), &report("dns", 1, "True")).await;
                    client.patch(&path, &json!({ "labels": { "step": step.to_string() } })).await;
                    if step % 2 == 0 {
                        client.delete(&path).await;
                        let body = json!({ "reason": "test" });
                        assert_eq!(client.post(&format!("{path}/force-delete"), &body).await.status, 204);
                    }
                }
            })
        });
        join_all(writers).await.into_iter().for_each(Result::unwrap);
        let last = create(&pair.client(0), "/clusters", &cluster("the-last")).await;
        let listed = pair.client(0).list("/clusters").await;
        for watch in watches {
            assert_eq!(added_up(watch, &last).await, listed);
        }
        pair.end().await;
    }
}

/// Returns the resources that the events add up to, the last of which is about that resource.
async fn added_up(mut watch: Watch, last: &str) -> Vec<Value> {
    let mut held = BTreeMap::new();
    for expected in 1_u64.. {
        let mut event = watch.next().await.expect("a stream that goes on");
        while event["type"] == "BOOKMARK" {
            event = watch.next().await.unwrap();
        }
        assert_eq!(position(&event), expected, "{event}");
        let id = event["object"]["id"].as_str().unwrap().to_owned();
        match event["type"].as_str().unwrap() {
            "DELETED" => assert!(held.remove(&id).is_some(), "{event}"),
            "ADDED" => assert!(held.insert(id.clone(), event["object"].clone()).is_none(), "{event}"),
            _ => assert!(held.insert(id.clone(), event["object"].clone()).is_some(), "{event}"),
        }
        if id == last {
            break;
        }
    }
    held.into_values().collect()
}

/// Returns the number of an event's version; 0 in the current state.
fn position(event: &Value) -> u64 {
    let version = event["resource_version"].as_str().unwrap();
    version.split_once('-').map_or(version, |(_epoch, number)| number).parse().unwrap()
}

/// Returns the resources of a reader of that search after the event of the last cluster.
async fn fold(client: Client, number: usize) -> BTreeMap<String, Value> {
    tokio::time::sleep(Duration::from_millis(60 * u64::try_from(number).unwrap())).await;
    let mut watch = client.watch(&format!("/clusters?watch=true{}", SEARCHED[number % 2])).await;
    let (mut held, mut version) = (BTreeMap::new(), 0);
    while !held.contains_key("the-last") {
        let event = watch.next().await.expect("a stream that goes on");
        let at = position(&event);
        let object = event["object"].clone();
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        assert!(at >= version, "{event}");
        version = at;
        match event["type"].as_str().unwrap() {
            "BOOKMARK" => {}
            "ADDED" => assert!(held.insert(id, object).is_none(), "{event}"),
            "MODIFIED" => assert!(held.insert(id, object).is_some(), "{event}"),
            "DELETED" => assert!(held.remove(&id).is_some(), "{event}"),
            _ => panic!("{event}"),
        }
    }
    held
}

fn labelled(name: &str, label: usize) -> Value {
    let mut body = cluster(name);
    body["labels"] = json!({ "l": label.to_string() });
    body["id"] = json!(name);
    body
}

/// Creates, deletes and changes clusters, so that they begin and cease to match.
async fn churn(client: Client, churner: usize) {
    for step in 0..60 {
        let name = format!("s-{}-{churner}", step / 2 * 14 % 100);
        let path = format!("/clusters/{name}");
        match step % 4 {
            0 => {
                client.delete(&path).await;
                let body = json!({ "reason": "test" });
                assert_eq!(client.post(&format!("{path}/force-delete"), &body).await.status, 204);
            }
            1 => drop(create(&client, "/clusters", &labelled(&name, step / 4 % 2)).await),
            _ => {
                let body = json!({ "labels": { "l": (step % 2).to_string() } });
                assert_eq!(client.patch(&path, &body).await.status, 200);
            }
        }
    }
}

const SEARCHED: [&str; 2] = ["", "&search=labels.l%3D%271%27"];

/// The events of a reader add up to the list, for any begin and any search.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_from_the_present_state_adds_up() {
    for pair in Pair::all().await {
        // More than one batch of the present state.
        let creators = (0..6).map(|creator| {
            let client = pair.client(creator);
            async move {
                for number in 0..100 {
                    create(&client, "/clusters", &labelled(&format!("s-{number}-{creator}"), number % 2)).await;
                }
            }
        });
        join_all(creators).await;
        let churning: Vec<_> = (0..4).map(|churner| tokio::spawn(churn(pair.client(churner), churner))).collect();
        let readers: Vec<_> = (0..8).map(|number| tokio::spawn(fold(pair.client(number), number))).collect();
        join_all(churning).await.into_iter().for_each(Result::unwrap);
        create(&pair.client(1), "/clusters", &labelled("the-last", 1)).await;
        for (number, reader) in readers.into_iter().enumerate() {
            let held = reader.await.unwrap();
            let search = SEARCHED[number % 2].replacen('&', "?", 1);
            let listed = pair.client(0).list(&format!("/clusters{search}")).await;
            assert_eq!(held.into_values().collect::<Vec<_>>(), listed, "reader {number}");
        }
        pair.end().await;
    }
}

/// Clients that disconnect during a write lose no change and leave no lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_disconnect_leave_no_lock() {
    for pair in Pair::all().await {
        let id = create(&pair.client(0), "/clusters", &cluster("one")).await;
        let path = format!("/clusters/{id}");
        for round in 0..5_u64 {
            let asked = (0..40_u64).map(|number| {
                let (client, path) = (pair.client(usize::try_from(number).unwrap()), path.clone());
                async move {
                    let body = json!({ "spec": { "n": round * 100 + number } });
                    let patch = client.patch(&path, &body);
                    drop(tokio::time::timeout(Duration::from_micros(200 * number), patch).await);
                }
            });
            join_all(asked).await;
        }
        // A remaining lock would block this request.
        let answer = pair.client(1).patch(&path, &json!({ "spec": { "n": -1 } })).await;
        assert_eq!((answer.status, &answer.body["spec"]["n"]), (200, &json!(-1)));
        let mut watch = pair.client(0).watch_from("/clusters", 1).await;
        // Each generation has its event: every commit is published, and nothing else.
        for generation in 2..=answer.body["generation"].as_i64().unwrap() {
            assert_eq!(watch.next().await.unwrap()["object"]["generation"], generation);
        }
        drop(watch);
        pair.end().await;
    }
}
