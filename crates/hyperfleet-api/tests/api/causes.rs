//! Causes: the clusters for which an adapter's work is not done, grouped by what blocks it.

use serde_json::{Value, json};

use crate::rig::tokens::{Issuer, granted};
use crate::rig::{DONE, FINALIZED, Kind, Rig, cluster, merged, path_of, report, time, unique};
use crate::tenancy::SETTINGS;

rules! {
    shared: clusters_of_one_cause_are_one_group invalid_requests;
    own: a_lister_may_read_them they_stop_at_the_tenant a_fleet_is_read_in_parts;
}

/// The causes of the clusters with this label, by the adapter `dns`.
async fn causes(rig: &Rig, label: &str) -> Value {
    let search = format!("labels.of = '{label}'");
    rig.list("/causes/clusters", &[("adapter", "dns"), ("search", &search)]).await.is(200).body()
}

fn of(label: &str) -> Value {
    json!({ "labels": { "of": label } })
}

/// A report of `dns` that it is not available, observed that many seconds ago.
fn blocked(seconds: i64, reason: &str, message: &str) -> Value {
    let mut body = merged(report("dns", 1, DONE), json!({ "observed_time": time(-seconds) }));
    body["conditions"][0] = json!({ "type": "Available", "status": "False", "reason": reason, "message": message });
    body
}

/// The causes as text, in order: count, status, reason, marks, number of examples.
fn lines(causes: &Value) -> Vec<String> {
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or("-").to_owned();
    let mark = |cause: &Value, name: &str| if cause[name] == true { format!(" {name}") } else { String::new() };
    let line = |cause: &Value| {
        let marks = mark(cause, "outdated") + &mark(cause, "terminating");
        format!("{} {} {}{marks}", cause["count"], text(cause, "status"), text(cause, "reason"))
    };
    causes["items"].as_array().unwrap().iter().map(line).collect()
}

async fn clusters_of_one_cause_are_one_group(rig: &Rig) {
    let label = unique("causes");
    let mut created = Vec::new();
    for _ in 0..8 {
        created.push(rig.cluster(of(&label)).await);
    }
    let path = |index: usize| path_of(&created[index]);
    rig.report(&path(0), report("dns", 1, DONE)).await.is(201);
    for (index, seconds) in [(1, 300), (2, 400), (3, 200), (4, 100)] {
        let message = format!("no zone for {}, attempt {index}", created[index]["name"].as_str().unwrap());
        rig.report(&path(index), blocked(seconds, "NoZone", &message)).await.is(201);
    }
    let since = rig.get(&path(2)).await.is(200).body()["status"]["conditions"][2]["reason_since_time"].clone();
    // The same reason again is not a new one.
    rig.report(&path(2), blocked(10, "NoZone", "no zone for prod-1, attempt 9")).await.is(201);
    rig.report(&path(5), blocked(5, "NoZone", "the zone is locked")).await.is(201);
    rig.report(&path(6), report("dns", 1, DONE)).await.is(201);
    rig.ask(&format!("PATCH {}", path(6)), json!({ "spec": { "region": "us-east1" } })).await.is(200);
    rig.ask(&format!("DELETE {}", path(7)), None).await.is(202);

    let found = causes(rig, &label).await;
    assert_eq!((&found["condition"], &found["total"], &found["done"]), (&json!("DnsSuccessful"), &json!(8), &json!(1)));
    let mut groups = lines(&found);
    assert_eq!(groups.remove(0), "4 False NoZone");
    groups.sort();
    assert_eq!(groups, ["1 - - terminating", "1 False NoZone", "1 True - outdated"]);
    let most = &found["items"][0];
    assert_eq!(most["since_time"], since);
    assert!(most["message"].as_str().unwrap().starts_with("no zone for c-"), "{most}");
    let newest = rig.get(&path(2)).await.is(200).body()["status"]["conditions"][2]["last_updated_time"].clone();
    assert_eq!(most["last_report_time"], newest);
    let examples = most["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 3);
    let known: Vec<_> = created.iter().map(|one| json!({ "id": one["id"], "name": one["name"] })).collect();
    assert!(examples.iter().all(|example| known[1..5].contains(example)), "{examples:?}");

    rig.report(&path(2), report("dns", 1, DONE)).await.is(201);
    let after = causes(rig, &label).await;
    assert_eq!((&after["done"], lines(&after)[0].as_str()), (&json!(2), "3 False NoZone"));
    rig.report(&path(7), report("dns", 2, FINALIZED)).await.is(201);
}

async fn invalid_requests(rig: &Rig) {
    rig.get("/causes/clusters").await.problem("400 VAL-000");
    let refused = rig.get("/causes/clusters?adapter=placement").await;
    refused.problem("400 VAL-000");
    let error = refused.body()["errors"][0].clone();
    assert_eq!(error["field"], "adapter");
    assert!(error["message"].as_str().unwrap().contains("one of validation, dns, pullsecret, hypershift"), "{error}");
    rig.get("/causes/clusters?adapter=dns&search=name%20%3D").await.problem("400 VAL-005");
    for path in ["/causes", "/causes/unknown", "/causes/channels?adapter=dns", "/causes/clusters/x?adapter=dns"] {
        rig.get(path).await.problem("404 NTF-000");
    }
    assert_eq!(rig.ask("POST /causes/clusters?adapter=dns", json!({})).await.status, 405);
}

async fn a_lister_may_read_them(kind: Kind) {
    let issuer = Issuer::start("key").await;
    let grants = [
        issuer.grant("lister@example.com", "kinds: [Cluster], verbs: [list]"),
        issuer.grant("getter@example.com", "kinds: [Cluster], verbs: [get, create]"),
    ];
    let rig = Rig::start(kind, &granted(&[issuer.settings("")], &grants)).await;
    let ask = async |who: &str, line: &str, body: Value| {
        let bearer = issuer.bearer(json!({ "email": format!("{who}@example.com") }));
        rig.send(line, &[("authorization", &bearer)], body.to_string()).await
    };
    ask("getter", "POST /clusters", cluster("one")).await.is(201);
    let found = ask("lister", "GET /causes/clusters?adapter=dns", Value::Null).await.is(200).body();
    assert_eq!((&found["total"], lines(&found)), (&json!(1), vec!["1 - -".to_owned()]));
    ask("getter", "GET /causes/clusters?adapter=dns", Value::Null).await.problem("403 AUZ-001");
    ask("lister", "GET /causes/nodepools?adapter=validation", Value::Null).await.problem("403 AUZ-001");
    rig.get("/causes/clusters?adapter=dns").await.problem("401 AUT-001");
}

async fn they_stop_at_the_tenant(kind: Kind) {
    let rig = Rig::start(kind, SETTINGS).await;
    for (tenant, name) in [("acme", "a-1"), ("acme", "a-2"), ("beta", "b-1")] {
        let headers = [("x-hyperfleet-org", tenant)];
        rig.send("POST /clusters", &headers, cluster(name).to_string()).await.is(201);
    }
    for (header, value, expected) in
        [("x-hyperfleet-org", "acme", 2), ("x-hyperfleet-org", "beta", 1), ("x-hyperfleet-system", "true", 3)]
    {
        let ask = async |query: &str| {
            let line = format!("GET /causes/clusters?adapter=dns{query}");
            rig.send(&line, &[(header, value)], "").await.is(200).body()
        };
        let found = ask("").await;
        assert_eq!((&found["total"], &found["items"][0]["count"]), (&json!(expected), &json!(expected)), "{value}");
        assert!(value != "beta" || !found.to_string().contains("\"a-"), "{found}");
        assert_eq!(ask("&search=name%20%3D%20%27a-1%27").await["total"], i32::from(value != "beta"), "{value}");
    }
}

/// More clusters than are read at once.
async fn a_fleet_is_read_in_parts(kind: Kind) {
    const CLUSTERS: usize = 2100;
    let rig = Rig::start(kind, "").await;
    let create = async |number: usize| drop(rig.create("/clusters", cluster(&format!("c-{number}"))).await);
    futures_util::StreamExt::for_each_concurrent(futures_util::stream::iter(0..CLUSTERS), 64, create).await;
    let found = rig.get("/causes/clusters?adapter=dns").await.is(200).body();
    assert_eq!((&found["total"], &found["done"]), (&json!(CLUSTERS), &json!(0)));
    assert_eq!(lines(&found), [format!("{CLUSTERS} - -")]);
}
