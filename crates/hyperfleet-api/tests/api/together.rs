//! Creations and reports that wait at the same time share a transaction, and answer as if each had its own.

use futures_util::future::join_all;
use hyperfleet_api::store::Lock;
use hyperfleet_api::tenancy::Reach;
use serde_json::{Value, json};

use crate::rig::{DONE, Kind, Rig, cluster, path_of, report, unique};

rules! {
    shared: a_taken_name_harms_no_other_creation a_refused_report_harms_no_other reports_of_one_resource_are_all_kept;
    own: a_locked_resource_holds_up_no_other the_length_of_a_list_is_kept;
}

async fn a_taken_name_harms_no_other_creation(rig: &Rig) {
    let taken = unique("taken");
    let names = (0..40).map(|number| if number % 10 == 0 { taken.clone() } else { unique("free") });
    let bodies: Vec<_> = names.map(|name| cluster(&name)).collect();
    let answers = join_all(bodies.iter().map(|body| rig.ask("POST /clusters", body.clone()))).await;
    let mut created = 0;
    for (body, answer) in bodies.iter().zip(answers) {
        if body["name"] == json!(taken) && answer.status == 409 {
            answer.refuses("409 CNF-001", "This Cluster already exists");
            continue;
        }
        created += usize::from(body["name"] == json!(taken));
        let stored = answer.is(201).body();
        assert_eq!(rig.get(&path_of(&stored)).await.is(200).body()["name"], body["name"]);
    }
    assert_eq!(created, 1, "one of the four has the name");
}

async fn a_refused_report_harms_no_other(rig: &Rig) {
    let made = join_all((0..20).map(|_| rig.cluster(json!({})))).await;
    let paths: Vec<_> = made.iter().map(path_of).collect();
    let reports = paths.iter().enumerate().map(|(number, path)| match number % 4 {
        0 => (path.clone(), report("dns", 1, "Applied=True"), 400),
        1 => (path.clone(), report("dns", 7, DONE), 204),
        2 => (format!("/clusters/{}", unique("absent")), report("dns", 1, DONE), 404),
        _ => (path.clone(), report("dns", 1, DONE), 201),
    });
    let reports: Vec<_> = reports.collect();
    let answers = join_all(reports.iter().map(|(path, report, _)| rig.report(path, report.clone()))).await;
    for ((path, _, expected), answer) in reports.iter().zip(answers) {
        assert_eq!(answer.status, *expected, "{path}");
        let stored = rig.get(&format!("{path}/statuses")).await;
        let total = if *expected == 404 { Value::Null } else { json!(i32::from(*expected == 201)) };
        assert_eq!(stored.body()["total"], total, "{path}");
    }
}

async fn reports_of_one_resource_are_all_kept(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    let adapters: Vec<_> = (0..30).map(|number| format!("adapter-{number:02}")).collect();
    for answer in join_all(adapters.iter().map(|adapter| rig.report(&path, report(adapter, 1, DONE)))).await {
        answer.is(201);
    }
    let stored = rig.get(&format!("{path}/statuses?size=100")).await.is(200).body();
    let names: Vec<_> = stored["items"].as_array().unwrap().iter().map(|one| one["adapter"].clone()).collect();
    assert_eq!(names, adapters.iter().map(|name| json!(name)).collect::<Vec<_>>());
    // Three conditions each became True, of which the newest are kept.
    let history = rig.get(&format!("{path}/statuses/history?size=100")).await.is(200).body();
    assert_eq!(history["total"], 50);
}

/// Another server has locked a resource; on SQLite it would have locked them all.
async fn a_locked_resource_holds_up_no_other(kind: Kind) {
    let rig = Rig::start(kind, "{}").await;
    let (locked, free) = (rig.cluster(json!({})).await, rig.cluster(json!({})).await);
    let store = rig.database.store();
    let mut write = store.write().await.unwrap();
    let id = locked["id"].as_str().unwrap();
    assert!(write.lock(id, Lock::Change, &Reach::Unlimited).await.unwrap().is_some());
    let (path, free_path) = (path_of(&locked), path_of(&free));
    let others = async {
        if kind == Kind::Postgresql {
            for number in 0..10 {
                rig.report(&free_path, report(&format!("adapter-{number}"), 1, DONE)).await.is(201);
            }
            assert_eq!(rig.get(&format!("{path}/statuses")).await.body()["total"], 0, "it waits");
        }
        write.roll_back().await.unwrap();
    };
    let (answer, ()) = tokio::join!(rig.report(&path, report("dns", 1, DONE)), others);
    answer.is(201);
    store.database().close().await;
}

async fn the_length_of_a_list_is_kept(kind: Kind) {
    let rig = Rig::start(kind, "{}").await;
    let made = join_all(
        (0..12).map(|_| rig.create("/channels", json!({ "kind": "Channel", "name": unique("c"), "spec": {} }))),
    )
    .await;
    for (number, channel) in made.iter().enumerate() {
        let version = json!({ "kind": "Version", "name": unique("v"), "spec": {} });
        let version = rig.create(&format!("{}/versions", path_of(channel)), version).await;
        if number % 3 == 0 {
            rig.ask(&format!("DELETE {}", path_of(&version)), None).await.is(202);
            rig.ask(&format!("DELETE {}", path_of(channel)), None).await.is(202);
        }
    }
    let total = async |path: &str| rig.get(path).await.is(200).body()["total"].clone();
    for path in ["/channels", "/versions", "/resources?kind=Channel"] {
        assert_eq!(total(path).await, 8, "{path}");
        let separator = if path.contains('?') { '&' } else { '?' };
        assert_eq!(total(&format!("{path}{separator}search=generation%3E0")).await, 8, "counted: {path}");
        assert_eq!(total(&format!("{path}{separator}page=100")).await, 8, "beyond the end: {path}");
        let walk = format!("{path}{separator}search=id%3E%270%27&order=id&size=3");
        assert_eq!(total(&walk).await, 8, "a walk: {path}");
    }
    assert_eq!(total(&format!("{}/versions", path_of(&made[1]))).await, 1);
}
