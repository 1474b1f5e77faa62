//! Forced deletion: removal without waiting for adapters, with a reason.

use database::Parameters;
use hyperfleet_api::resource::Target;
use hyperfleet_api::store::{Lock, Store};
use hyperfleet_api::tenancy::Reach;
use serde_json::{Value, json};

use crate::rig::log::logged;
use crate::rig::{Kind, Rig, path_of, unique};

rules! {
    shared: only_soft_deleted_resources reasons with_all_descendants is_written_to_the_log;
    own: clears_references_to_it a_concurrent_change_of_a_referrer_is_kept;
}

async fn only_soft_deleted_resources(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let (path, id) = (path_of(&created), created["id"].as_str().unwrap());
    let line = format!("POST {path}/force-delete");
    let answer = rig.ask(&line, json!({ "reason": "stuck" })).await;
    answer.refuses("409 CNF-003", &format!("Cluster '{id}' is not in Finalizing state"));
    rig.ask(&format!("DELETE {path}"), None).await.is(202);
    assert_eq!(rig.ask(&line, json!({ "reason": "stuck" })).await.is(204).text(), "");
    rig.get(&path).await.problem("404 NTF-001");
    let answer = rig.ask(&line, json!({ "reason": "stuck" })).await;
    answer.refuses("404 NTF-001", &format!("Cluster with id='{id}' not found"));
}

async fn reasons(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    rig.ask(&format!("DELETE {path}"), None).await.is(202);
    let line = format!("POST {path}/force-delete");
    for (reason, constraint) in
        [(json!(""), "required"), (json!(null), "required"), (json!("ä".repeat(1025)), "max_length")]
    {
        rig.ask(&line, json!({ "reason": reason })).await.is(400).at("reason", constraint).problem("400 VAL-000");
    }
    rig.ask(&line, json!({})).await.problem("400 VAL-000");
    for body in ["", "[]", "{\"reason\": 1}", "{\"reason\": \"a\\u0000b\"}", "reason"] {
        rig.send(&line, &[], body).await.is(400);
    }
    rig.get(&path).await.is(200);
    rig.ask(&line, json!({ "reason": "ä".repeat(1024) })).await.is(204);
}

async fn with_all_descendants(rig: &Rig) {
    let parent = path_of(&rig.cluster(json!({})).await);
    let pool = json!({ "kind": "NodePool", "name": unique("np"), "spec": {} });
    let pool = path_of(&rig.create(&format!("{parent}/nodepools"), pool).await);
    rig.ask(&format!("DELETE {parent}"), None).await.is(202);
    rig.ask(&format!("POST {parent}/force-delete"), json!({ "reason": "stuck" })).await.is(204);
    for gone in [&parent, &pool, &format!("/nodepools/{}", pool.rsplit('/').next().unwrap())] {
        rig.get(gone).await.problem("404 NTF-001");
    }
}

async fn is_written_to_the_log(rig: &Rig) {
    let parent = path_of(&rig.cluster(json!({})).await);
    let pool = json!({ "kind": "NodePool", "name": unique("np"), "spec": {} });
    let pool = rig.create(&format!("{parent}/nodepools"), pool).await;
    rig.ask(&format!("DELETE {parent}"), None).await.is(202);
    let reason = format!("{}\r\n{{\"level\":\"fake\"}} \u{1b}[31mred", unique("stuck"));
    rig.ask(&format!("POST {parent}/force-delete"), json!({ "reason": reason })).await.is(204);
    let logged = logged();
    let lines: Vec<Value> = logged.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines
        .iter()
        .find(|line| line["reason"].as_str().is_some_and(|one| one.contains(reason.split('\r').next().unwrap())));
    let line = line.unwrap();
    assert_eq!((&line["reason"], &line["caller"]), (&json!(reason), &json!("system@hyperfleet.local")));
    assert!(line.to_string().contains(pool["id"].as_str().unwrap()), "{line}");
    assert!(lines.iter().all(|line| line["level"] != "fake"));
}

const DOORS: &str = r"
entities:
  - { kind: Key, plural: keys, required_adapters: [smith] }
  - { kind: Door, plural: doors, references: [{ ref_type: opens, target_kind: Key }] }
";

/// Stores a reference to a terminating resource, which the API refuses.
async fn refer(store: &Store, door: &Value, key: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut write = store.write().await.unwrap();
    let before = write.lock(&text(&door["id"]), Lock::Change, &Reach::Unlimited).await.unwrap().unwrap();
    let mut after = before.clone();
    let target = Target { id: text(&key["id"]), kind: text(&key["kind"]), href: text(&key["href"]) };
    after.resource.state.references.insert("opens".to_owned(), vec![target]);
    write.update(&before, after);
    write.commit().await.unwrap();
}

/// The deletion begins while another transaction has changed the referrer and not committed.
async fn a_concurrent_change_of_a_referrer_is_kept(kind: Kind) {
    let rig = Rig::start(kind, DOORS).await;
    let store = rig.database.store();
    let key = rig.create("/keys", json!({ "kind": "Key", "name": unique("x"), "spec": {} })).await;
    rig.ask(&format!("DELETE {}", path_of(&key)), None).await.is(202);
    let door = rig.create("/doors", json!({ "kind": "Door", "name": unique("x"), "spec": {} })).await;
    refer(&store, &door, &key).await;
    let mut write = store.write().await.unwrap();
    let before = write.lock(door["id"].as_str().unwrap(), Lock::Change, &Reach::Unlimited).await.unwrap().unwrap();
    let mut after = before.clone();
    after.resource.spec.insert("n".to_owned(), json!(3));
    write.update(&before, after);
    let line = format!("POST {}/force-delete", path_of(&key));
    let change = async {
        // SQLite has one writer: there the deletion has not begun.
        while kind == Kind::Postgresql && !waits(&store).await {
            tokio::task::yield_now().await;
        }
        write.commit().await.unwrap();
    };
    let ((), forced) = tokio::join!(change, rig.ask(&line, json!({ "reason": "x" })));
    forced.is(204);
    let after = rig.get(&path_of(&door)).await.is(200).body();
    assert_eq!((&after["spec"]["n"], after.get("references")), (&json!(3), None));
    store.database().close().await;
}

/// True if a transaction of this database waits for a lock.
async fn waits(store: &Store) -> bool {
    let sql = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let rows = store.database().fetch(sql.to_owned(), Parameters::default()).await.unwrap();
    rows[0].number(0).unwrap() > 0
}

async fn clears_references_to_it(kind: Kind) {
    let rig = Rig::start(kind, DOORS).await;
    let make = async |kind: &str, more: Value| {
        let body = json!({ "kind": kind, "name": unique("x"), "spec": {}, "references": more });
        rig.create(if kind == "Key" { "/keys" } else { "/doors" }, body).await
    };
    let (one, two) = (make("Key", json!(null)).await, make("Key", json!(null)).await);
    let door = make("Door", json!({ "opens": [{ "id": one["id"] }, { "id": two["id"] }] })).await;
    let force = async |key: &Value| {
        rig.ask(&format!("DELETE {}", path_of(key)), None).await.problem("409 CNF-003");
        // A reference protects only a target that is not being deleted.
        rig.ask(&format!("POST {}/force-delete", path_of(key)), json!({ "reason": "x" })).await.problem("409 CNF-003");
    };
    force(&one).await;
    let only = json!({ "references": { "opens": [{ "id": two["id"] }] } });
    rig.ask(&format!("PATCH {}", path_of(&door)), only).await.is(200);
    rig.ask(&format!("DELETE {}", path_of(&one)), None).await.is(202);
    let gone = json!({ "references": { "opens": [{ "id": one["id"] }] } });
    let detail = format!("reference type \"opens\" for Door: target Key {} is marked for deletion", one["id"]);
    rig.ask(&format!("PATCH {}", path_of(&door)), gone).await.refuses("400 VAL-000", &detail);
    rig.ask(&format!("POST {}/force-delete", path_of(&one)), json!({ "reason": "x" })).await.is(204);
    rig.get(&path_of(&one)).await.problem("404 NTF-001");
    assert_eq!(rig.get(&path_of(&door)).await.is(200).body()["references"]["opens"][0]["id"], two["id"]);
}
