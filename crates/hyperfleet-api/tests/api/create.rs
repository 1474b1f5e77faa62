//! Creating resources: responses, refusals, and the order of the checks.

use serde_json::{Value, json};

use crate::rig::{BASE, Rig, cluster, merged, path_of, unique};

rules! {
    shared: answers_with_the_whole_resource conditions_are_written_at_once messages_in_order duplicates
        a_child_belongs_below_its_parent a_parent_must_exist client_ids unknown_members_are_ignored
        generic_endpoints kinds_without_adapters_have_no_conditions labels_are_left_out_when_there_are_none a_trace_is_not_kept_without_an_export;
    own: the_default_set_is_served;
}

async fn answers_with_the_whole_resource(rig: &Rig) {
    let name = unique("whole");
    let body = merged(cluster(&name), json!({ "labels": { "env": "test" } }));
    let created = rig.create("/clusters", body).await;
    let id = created["id"].as_str().unwrap();
    let parsed = uuid::Uuid::parse_str(id).unwrap();
    assert_eq!((parsed.get_version_num(), parsed.to_string().as_str()), (7, id));
    assert_eq!(created["kind"], "Cluster");
    assert_eq!(created["name"], name);
    assert_eq!(created["href"], format!("{BASE}/clusters/{id}"));
    assert_eq!(created["spec"], json!({ "region": "europe-west3" }));
    assert_eq!(created["labels"], json!({ "env": "test" }));
    assert_eq!(created["tenancy"], json!({}));
    assert_eq!(created["generation"], 1);
    assert_eq!(created["created_by"], "system@hyperfleet.local");
    assert_eq!(created["updated_by"], "system@hyperfleet.local");
    assert_eq!(created["created_time"], created["updated_time"]);
    assert!(created["created_time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    for absent in ["deleted_time", "deleted_by", "owner_references", "references"] {
        assert_eq!(created.get(absent), None, "{absent}");
    }
    assert_eq!(rig.get(&format!("/clusters/{id}")).await.is(200).body(), created, "committed before answered");
}

async fn a_trace_is_not_kept_without_an_export(rig: &Rig) {
    for trace in ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "garbage"] {
        let body = cluster(&unique("traced")).to_string();
        let created = rig.send("POST /clusters", &[("traceparent", trace)], body).await.is(201).body();
        assert_eq!(created.get("traceparent"), None);
    }
}

async fn conditions_are_written_at_once(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let now = &created["created_time"];
    let missing = "Required adapters not reporting Available=True: [dns, hypershift, pullsecret, validation]. \
                   Currently reporting: []";
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "False", "reason": reason, "message": message, "observed_generation": 1,
            "created_time": now, "last_updated_time": now, "last_transition_time": now, "reason_since_time": now,
        })
    };
    assert_eq!(
        created["status"]["conditions"],
        json!([
            condition("Reconciled", "ReconciledMissingAdapters", missing),
            condition(
                "LastKnownReconciled",
                "AdaptersMissingReports",
                "Required adapters have not yet reported status"
            ),
        ])
    );
}

async fn messages_in_order(rig: &Rig) {
    let pattern = "name must start and end with lowercase letter or number, and contain only lowercase letters, numbers, \
                   and hyphens";
    let rows: &[(Value, &str, &str, &str)] = &[
        (json!({}), "kind is required", "kind", "required"),
        (json!({ "kind": "NodePool" }), "kind must be 'Cluster'", "kind", "enum"),
        (json!({ "kind": "cluster", "name": "abc", "spec": {} }), "kind must be 'Cluster'", "kind", "enum"),
        (json!({ "kind": "Cluster" }), "name is required", "name", "required"),
        (json!({ "kind": "Cluster", "name": "" }), "name is required", "name", "required"),
        (json!({ "kind": "Cluster", "name": "ab" }), "name must be at least 3 characters", "name", "min_length"),
        (
            json!({ "kind": "Cluster", "name": "a".repeat(54) }),
            "name must be at most 53 characters",
            "name",
            "max_length",
        ),
        (json!({ "kind": "Cluster", "name": "Abc" }), pattern, "name", "pattern"),
        (json!({ "kind": "Cluster", "name": "abc" }), "spec is required", "spec", "required"),
        (json!({ "kind": "Cluster", "name": "abc", "spec": null }), "spec is required", "spec", "required"),
    ];
    for (body, message, field, constraint) in rows {
        let answer = rig.ask("POST /clusters", body.clone()).await;
        answer.refuses("400 VAL-000", message).at(field, constraint);
    }
    for body in ["", "{", "nonsense", "{} {}", "{\"kind\": \"Cluster\",}"] {
        rig.send("POST /clusters", &[], body).await.problem("400 VAL-006");
    }
}

async fn duplicates(rig: &Rig) {
    let name = unique("twice");
    let first = rig.create("/clusters", cluster(&name)).await;
    let answer = rig.ask("POST /clusters", cluster(&name)).await;
    answer.refuses("409 CNF-001", "This Cluster already exists");
    // Names are unique within a parent, and within a kind.
    let pool = json!({ "kind": "NodePool", "name": "pool", "spec": {} });
    rig.create(&format!("{}/nodepools", path_of(&first)), pool.clone()).await;
    let again = rig.ask(&format!("POST {}/nodepools", path_of(&first)), pool.clone()).await;
    again.refuses("409 CNF-001", "This NodePool already exists");
    let second = rig.cluster(json!({})).await;
    rig.create(&format!("{}/nodepools", path_of(&second)), pool).await;
    rig.create("/channels", json!({ "kind": "Channel", "name": name, "spec": {} })).await;
    // Only among resources that are not deleted.
    rig.ask(&format!("DELETE {}", path_of(&first)), None).await.is(202);
    rig.create("/clusters", cluster(&name)).await;
}

async fn a_child_belongs_below_its_parent(rig: &Rig) {
    let parent = rig.cluster(json!({})).await;
    let pool = json!({ "kind": "NodePool", "name": unique("np"), "spec": { "replicas": 3 } });
    for path in ["/nodepools", "/resources"] {
        rig.ask(&format!("POST {path}"), pool.clone()).await.problem("422 VAL-000");
    }
    let created = rig.create(&format!("{}/nodepools", path_of(&parent)), pool).await;
    let (id, parent_id) = (created["id"].as_str().unwrap(), parent["id"].as_str().unwrap());
    assert_eq!(created["href"], format!("{BASE}/clusters/{parent_id}/nodepools/{id}"));
    let owner = json!({ "id": parent_id, "kind": "Cluster", "href": parent["href"] });
    assert_eq!(created["owner_references"], owner, "an object, not an array");
    for path in
        [format!("/nodepools/{id}"), format!("/clusters/{parent_id}/nodepools/{id}"), format!("/resources/{id}")]
    {
        assert_eq!(rig.get(&path).await.is(200).body(), created, "{path}");
    }
    let other = rig.cluster(json!({})).await;
    let wrong = format!("{}/nodepools/{id}", path_of(&other));
    rig.get(&wrong).await.refuses("404 NTF-001", &format!("NodePool with id='{id}' not found"));
    for line in ["PATCH", "DELETE"] {
        rig.ask(&format!("{line} {wrong}"), json!({ "spec": {} })).await.problem("404 NTF-001");
    }
    rig.get(&format!("/clusters/{id}")).await.problem("404 NTF-001");
    rig.get(&format!("{wrong}/statuses")).await.problem("404 NTF-001");
}

async fn a_parent_must_exist(rig: &Rig) {
    let pool = json!({ "kind": "NodePool", "name": "pool", "spec": {} });
    let absent = uuid::Uuid::now_v7();
    let answer = rig.ask(&format!("POST /clusters/{absent}/nodepools"), pool.clone()).await;
    answer.refuses("404 NTF-001", &format!("Cluster with id='{absent}' not found"));
    rig.get(&format!("/clusters/{absent}/nodepools")).await.problem("404 NTF-001");
    let going = rig.cluster(json!({})).await;
    rig.ask(&format!("DELETE {}", path_of(&going)), None).await.is(202);
    let answer = rig.ask(&format!("POST {}/nodepools", path_of(&going)), pool).await;
    let id = going["id"].as_str().unwrap();
    answer.refuses("409 CNF-003", &format!("Cluster '{id}' is marked for deletion"));
}

async fn client_ids(rig: &Rig) {
    let id = unique("cls");
    let created = rig.cluster(json!({ "id": id })).await;
    assert_eq!(created["id"], id);
    assert_eq!(rig.get(&format!("/clusters/{id}")).await.is(200).body(), created);
    // Unique over all kinds, including resources that are being deleted.
    rig.ask("POST /clusters", merged(cluster(&unique("c")), json!({ "id": id }))).await.problem("409 CNF-001");
    let channel = json!({ "kind": "Channel", "name": unique("ch"), "spec": {}, "id": id });
    rig.ask("POST /channels", channel).await.problem("409 CNF-001");
    rig.ask(&format!("DELETE /clusters/{id}"), None).await.is(202);
    rig.ask("POST /clusters", merged(cluster(&unique("c")), json!({ "id": id }))).await.problem("409 CNF-001");
    for good in ["0", &"a".repeat(63), "a--b"] {
        let good =
            if good.len() == 63 { format!("{}{good}", unique("l-")).chars().take(63).collect() } else { unique(good) };
        rig.cluster(json!({ "id": good })).await;
    }
    for bad in ["", "-a", "a-", "A", "a_b", "a.b", "a/b", "ä", "a b", "a\n", &"a".repeat(64)] {
        let answer = rig.ask("POST /clusters", merged(cluster(&unique("c")), json!({ "id": bad }))).await;
        answer.is(400).at("id", "pattern");
    }
}

async fn unknown_members_are_ignored(rig: &Rig) {
    let more = json!({ "generation": 99, "status": { "conditions": [] }, "created_by": "mallory", "nonsense": [1] });
    let created = rig.cluster(more).await;
    assert_eq!((&created["generation"], &created["created_by"]), (&json!(1), &json!("system@hyperfleet.local")));
    assert_eq!(created.get("nonsense"), None);
}

async fn generic_endpoints(rig: &Rig) {
    let created = rig.create("/resources", cluster(&unique("generic"))).await;
    assert_eq!(rig.get(&path_of(&created)).await.is(200).body(), created, "its href is its kind's");
    let (id, name) = (created["id"].as_str().unwrap(), created["name"].as_str().unwrap());
    let search = format!("name = '{name}'");
    for (kind, found) in [(None, 1), (Some("Cluster"), 1), (Some("Channel"), 0)] {
        let mut parameters = vec![("search", search.as_str())];
        parameters.extend(kind.map(|kind| ("kind", kind)));
        assert_eq!(rig.list("/resources", &parameters).await.is(200).body()["total"], found, "{kind:?}");
    }
    rig.list("/resources", &[("kind", "Nonsense")]).await.is(400);
    let patched = rig.ask(&format!("PATCH /resources/{id}"), json!({ "spec": { "a": 1 } })).await.is(200).body();
    assert_eq!(patched["generation"], 2);
    rig.report(&format!("/resources/{id}"), crate::rig::report("dns", 2, crate::rig::DONE)).await.is(201);
    assert_eq!(rig.get(&format!("/resources/{id}/statuses")).await.is(200).body()["total"], 1);
    rig.ask(&format!("DELETE /resources/{id}"), None).await.is(202);
    rig.ask(&format!("POST /resources/{id}/force-delete"), json!({ "reason": "x" })).await.is(204);
    rig.get(&format!("/resources/{id}")).await.problem("404 NTF-001");
    rig.ask("POST /resources", json!({ "kind": "Nonsense", "name": "abc", "spec": {} })).await.is(400);
    rig.ask("POST /resources", json!({})).await.refuses("400 VAL-000", "spec is required");
}

async fn kinds_without_adapters_have_no_conditions(rig: &Rig) {
    let channel = rig.create("/channels", json!({ "kind": "Channel", "name": unique("ch"), "spec": {} })).await;
    assert_eq!(channel["status"]["conditions"], json!([]));
}

async fn labels_are_left_out_when_there_are_none(rig: &Rig) {
    for labels in [json!({}), Value::Null] {
        assert_eq!(rig.cluster(json!({ "labels": labels })).await.get("labels"), None);
    }
}

async fn the_default_set_is_served(kind: crate::rig::Kind) {
    let rig = Rig::start(kind, "").await;
    for plural in ["clusters", "nodepools", "channels", "versions", "wifconfigs", "resources"] {
        let body = rig.get(&format!("/{plural}")).await.is(200).body();
        assert_eq!(body, json!({ "page": 1, "size": 0, "total": 0, "items": [] }), "{plural}");
    }
    rig.get("/nonsense").await.problem("404 NTF-000");
}
