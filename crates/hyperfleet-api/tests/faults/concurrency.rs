//! Two servers on one database with writers that conflict on the same resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::rig::{Answer, Client, Rig, TestDatabase, cluster, report, start};

const ADAPTERS: [&str; 4] = ["validation", "dns", "pullsecret", "hypershift"];

/// Two servers on one database.
pub(crate) struct Pair {
    database: TestDatabase,
    servers: [Rig; 2],
}

impl Pair {
    pub(crate) async fn on(database: TestDatabase, more: &[(&'static str, String)]) -> Self {
        let mut variables = database.variables();
        variables.extend(more.iter().cloned());
        let servers = [start(&variables).await, start(&variables).await];
        Self { database, servers }
    }

    pub(crate) async fn all() -> Vec<Self> {
        join_all(TestDatabase::all().await.into_iter().map(|database| Self::on(database, &[]))).await
    }

    /// Returns a client of one of the servers; consecutive numbers use different ones.
    pub(crate) fn client(&self, number: usize) -> Client {
        self.servers[number % 2].client.clone()
    }

    pub(crate) async fn end(self) {
        join_all(self.servers.map(Rig::end)).await;
        self.database.end().await;
    }
}

/// Sends requests at the same time.
async fn send_together(pair: &Pair, asked: Vec<(Method, String, Option<Value>)>) -> Vec<Answer> {
    let barrier = Arc::new(Barrier::new(asked.len()));
    let tasks = asked.into_iter().enumerate().map(|(number, (method, path, body))| {
        let (client, barrier) = (pair.client(number), Arc::clone(&barrier));
        tokio::spawn(async move {
            barrier.wait().await;
            client.call(method, &path, body.as_ref()).await
        })
    });
    join_all(tasks).await.into_iter().map(Result::unwrap).collect()
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    statuses
}

pub(crate) async fn create(client: &Client, path: &str, body: &Value) -> String {
    let answer = client.post(path, body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.body["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_patch_is_lost() {
    const WRITERS: usize = 8;
    const PATCHES: usize = 10;
    for pair in Pair::all().await {
        let id = create(&pair.client(0), "/clusters", &cluster("one")).await;
        let writers = (0..WRITERS).map(|writer| {
            let (client, path) = (pair.client(writer), format!("/clusters/{id}"));
            tokio::spawn(async move {
                for step in 0..PATCHES {
                    loop {
                        let read = client.get(&path).await.body;
                        let generation = read["generation"].as_i64().unwrap();
                        let mut spec = read["spec"].clone();
                        spec[format!("w{writer}")] = json!(step + 1);
                        let body = json!({ "spec": spec });
                        let answer =
                            client.try_call(Method::PATCH, &path, Some(&body), Some(generation)).await.unwrap();
                        if answer.status == 200 {
                            assert_eq!(answer.body["generation"], generation + 1);
                            break;
                        }
                        assert_eq!(answer.status, 412, "{answer:?}");
                    }
                }
            })
        });
        join_all(writers).await.into_iter().for_each(Result::unwrap);
        let read = pair.client(1).get(&format!("/clusters/{id}")).await.body;
        assert_eq!(read["generation"], 1 + WRITERS * PATCHES);
        assert!((0..WRITERS).all(|writer| read["spec"][format!("w{writer}")] == PATCHES), "{read}");
        pair.end().await;
    }
}

/// Sends alternating reports through both servers; returns the last stored one.
async fn keep_reporting(clients: [Client; 2], path: String, adapter: String, number: usize) -> Value {
    let mut last = Value::Null;
    for step in 0..15 {
        let client = &clients[(number + step) % 2];
        let generation = client.get(&path).await.body["generation"].as_i64().unwrap();
        let status = if (step * 7 + number).is_multiple_of(3) { "False" } else { "True" };
        let mut body = report(&adapter, generation, status);
        body["data"] = json!({ "step": step });
        let answer = client.put(&format!("{path}/statuses"), &body).await;
        // No other reporter uses its name, and generations only grow.
        assert_eq!(answer.status, 201, "{answer:?}");
        last = answer.body;
    }
    last
}

/// Every adapter's last report is stored, and the conditions follow from the reports.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_report_is_lost() {
    for pair in Pair::all().await {
        let id = create(&pair.client(0), "/clusters", &cluster("one")).await;
        let path = format!("/clusters/{id}");
        let names: Vec<String> =
            ADAPTERS.iter().map(|name| (*name).to_owned()).chain((0..4).map(|n| format!("other-{n}"))).collect();
        let reporters = names.iter().cloned().enumerate().map(|(number, adapter)| {
            let (clients, path) = ([pair.client(0), pair.client(1)], path.clone());
            tokio::spawn(keep_reporting(clients, path, adapter, number))
        });
        let patcher = {
            let (client, path) = (pair.client(1), path.clone());
            tokio::spawn(async move {
                for step in 1..=5 {
                    assert_eq!(client.patch(&path, &json!({ "spec": { "n": step } })).await.status, 200);
                }
            })
        };
        let last: Vec<Value> = join_all(reporters).await.into_iter().map(Result::unwrap).collect();
        patcher.await.unwrap();
        let mut stored = pair.client(0).list(&format!("{path}/statuses")).await;
        stored.sort_by_key(|one| names.iter().position(|name| one["adapter"] == **name));
        assert_eq!(stored, last);
        let read = pair.client(1).get(&path).await.body;
        assert_eq!(read["generation"], 6);
        let done = |one: &Value| one["observed_generation"] == 6 && one["conditions"][0]["status"] == "True";
        let expected = if stored[..4].iter().all(done) { "True" } else { "False" };
        assert_eq!(read["status"]["conditions"][0]["status"], expected, "{read}");
        for (adapter, one) in ADAPTERS.iter().zip(&stored) {
            let kind = format!("{}{}Successful", adapter[..1].to_uppercase(), &adapter[1..]);
            let conditions = read["status"]["conditions"].as_array().unwrap();
            let condition = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
            assert_eq!(condition["status"], one["conditions"][0]["status"]);
            assert_eq!(condition["observed_generation"], one["observed_generation"]);
        }
        pair.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_used_once() {
    for pair in Pair::all().await {
        for round in 0..10 {
            let body = cluster(&format!("same-{round}"));
            let asked = (0..8).map(|_| (Method::POST, "/clusters".to_owned(), Some(body.clone()))).collect();
            assert_eq!(statuses(&send_together(&pair, asked).await), [201, 409, 409, 409, 409, 409, 409, 409]);
            let mut body = cluster(&format!("id-{round}"));
            body["id"] = json!(format!("id-{round}"));
            let asked = (0..6).map(|number| {
                body["name"] = json!(format!("id-{round}-{number}"));
                (Method::POST, "/clusters".to_owned(), Some(body.clone()))
            });
            assert_eq!(statuses(&send_together(&pair, asked.collect()).await), [201, 409, 409, 409, 409, 409]);
        }
        assert_eq!(pair.client(1).list("/clusters").await.len(), 20);
        pair.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_child_outlives_the_deletion_of_its_parent() {
    for pair in Pair::all().await {
        for round in 0..15 {
            let id = create(&pair.client(0), "/clusters", &cluster(&format!("parent-{round}"))).await;
            let child = |n: usize| json!({ "kind": "NodePool", "name": format!("pool-{n}"), "spec": {} });
            let pools = format!("/clusters/{id}/nodepools");
            let mut asked: Vec<_> = (0..5).map(|n| (Method::POST, pools.clone(), Some(child(n)))).collect();
            asked.insert(round % 6, (Method::DELETE, format!("/clusters/{id}"), None));
            let answers = send_together(&pair, asked).await;
            assert_eq!(answers[round % 6].status, 202);
            let created = answers.iter().filter(|answer| answer.status == 201).count();
            assert!(answers.iter().all(|answer| [201, 202, 409].contains(&answer.status)), "{answers:?}");
            let pools = pair.client(round).list(&pools).await;
            assert_eq!(pools.len(), created);
            assert!(pools.iter().all(|pool| pool["deleted_time"].is_string()), "{pools:?}");
        }
        for round in 0..15 {
            let body = json!({ "kind": "Channel", "name": format!("channel-{round}"), "spec": {} });
            let id = create(&pair.client(0), "/channels", &body).await;
            let child = json!({ "kind": "Version", "name": "one", "spec": {} });
            let asked = vec![
                (Method::POST, format!("/channels/{id}/versions"), Some(child)),
                (Method::DELETE, format!("/channels/{id}"), None),
            ];
            let answers = send_together(&pair, asked).await;
            let outcome = (answers[0].status, answers[1].status);
            assert!([(201, 409), (404, 202)].contains(&outcome), "{answers:?}");
        }
        pair.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_refers_to_a_removed_resource() {
    for pair in Pair::all().await {
        for round in 0..15 {
            let wif = json!({ "kind": "WifConfig", "name": format!("wif-{round}"), "spec": {} });
            let wif = create(&pair.client(0), "/wifconfigs", &wif).await;
            let plain = create(&pair.client(1), "/clusters", &cluster(&format!("plain-{round}"))).await;
            let references = json!({ "wif_config": [{ "id": wif }] });
            let referring = |n: usize| {
                let mut body = cluster(&format!("ref-{round}-{n}"));
                body["references"] = references.clone();
                body
            };
            let mut asked: Vec<_> =
                (0..3).map(|n| (Method::POST, "/clusters".to_owned(), Some(referring(n)))).collect();
            let patch = json!({ "references": references });
            asked.push((Method::PATCH, format!("/clusters/{plain}"), Some(patch)));
            asked.insert(round % 5, (Method::DELETE, format!("/wifconfigs/{wif}"), None));
            let mut answers = send_together(&pair, asked).await;
            let deleted = answers.remove(round % 5).status;
            let referring = format!("/clusters?ref_type=wif_config&ref_target_id={wif}");
            let referring = pair.client(round).list(&referring).await.len();
            let successes = answers.iter().filter(|answer| [200, 201].contains(&answer.status)).count();
            assert!(answers.iter().all(|answer| [200, 201, 400].contains(&answer.status)), "{answers:?}");
            assert_eq!(referring, successes);
            assert_eq!(deleted, if successes == 0 { 202 } else { 409 }, "{answers:?}");
        }
        pair.end().await;
    }
}

/// The last of the adapters that finalize removes the resource, in every interleaving.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_finalized_report_removes() {
    for pair in Pair::all().await {
        for round in 0..10 {
            let id = create(&pair.client(0), "/clusters", &cluster(&format!("terminating-{round}"))).await;
            let path = format!("/clusters/{id}");
            assert_eq!(pair.client(0).delete(&path).await.status, 202);
            let asked = ADAPTERS.map(|name| (Method::PUT, format!("{path}/statuses"), Some(report(name, 2, "True"))));
            let answers = send_together(&pair, asked.to_vec()).await;
            assert_eq!(statuses(&answers), [201; 4], "{answers:?}");
            assert_eq!(pair.client(1).get(&path).await.status, 404);
        }
        for round in 0..10 {
            let id = create(&pair.client(0), "/clusters", &cluster(&format!("raced-{round}"))).await;
            let path = format!("/clusters/{id}");
            let mut asked: Vec<_> = ADAPTERS
                .iter()
                .map(|name| (Method::PUT, format!("{path}/statuses"), Some(report(name, 2, "True"))))
                .collect();
            asked.insert(round % 5, (Method::DELETE, path.clone(), None));
            let answers = send_together(&pair, asked).await;
            let stored = answers.iter().filter(|answer| answer.status == 201).count();
            assert!(answers.iter().all(|answer| [201, 202, 204].contains(&answer.status)), "{answers:?}");
            assert_eq!(pair.client(1).get(&path).await.status, if stored == 4 { 404 } else { 200 });
        }
        pair.end().await;
    }
}

/// Locks that are taken in opposite orders cause no error for any caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opposite_references_do_not_block_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let text = "entities:\n\
        - {kind: Left, plural: lefts, references: [{ref_type: other, target_kind: Right}]}\n\
        - {kind: Right, plural: rights, references: [{ref_type: other, target_kind: Left}]}\n";
    daemon::file::replace(&file, text.as_bytes()).unwrap();
    let more = [("HYPERFLEET_CONFIG", file.display().to_string())];
    for database in TestDatabase::all().await {
        let pair = Pair::on(database, &more).await;
        let mut ids = BTreeMap::new();
        for (kind, plural) in [("Left", "lefts"), ("Right", "rights")] {
            let body = json!({ "kind": kind, "name": "one", "spec": {} });
            ids.insert(plural, create(&pair.client(0), &format!("/{plural}"), &body).await);
        }
        for round in 0..5 {
            let asked = (0..8).map(|number| {
                let (own, other) = if number % 2 == 0 { ("lefts", "rights") } else { ("rights", "lefts") };
                let body = json!({ "references": { "other": [{ "id": ids[other] }] } });
                (Method::PATCH, format!("/{own}/{}", ids[own]), Some(body))
            });
            let answers = send_together(&pair, asked.collect()).await;
            assert_eq!(statuses(&answers), [200; 8], "round {round}: {answers:?}");
            // A deletion reads the referring resources, in the opposite order.
            let asked = (0..8).map(|number| {
                let (own, other) = if number % 2 == 0 { ("lefts", "rights") } else { ("rights", "lefts") };
                let body = json!({ "references": { "other": [{ "id": ids[other] }] } });
                match number % 4 {
                    0 | 1 => (Method::PATCH, format!("/{own}/{}", ids[own]), Some(body)),
                    _ => (Method::DELETE, format!("/{own}/{}", ids[own]), None),
                }
            });
            let answers = send_together(&pair, asked.collect()).await;
            assert_eq!(statuses(&answers), [200, 200, 200, 200, 409, 409, 409, 409], "round {round}: {answers:?}");
        }
        pair.end().await;
    }
}
