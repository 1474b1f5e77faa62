//! Adapters' reports: validation, storage and representation.

use serde_json::{Value, json};

use crate::rig::{DONE, Rig, merged, path_of, report, time, unique};

rules! {
    shared: is_stored_and_shown messages_in_order times put_returns_201_and_post_distinguishes_updates members_of_2025
        the_specifications_example
        transition_times_are_kept equal_times_with_other_content reports_do_not_change_the_resource the_view_of_adapters any_adapter
        lists metadata_and_data absent_resources malformed;
    own: ;
}

async fn cluster(rig: &Rig) -> String {
    path_of(&rig.cluster(json!({})).await)
}

async fn is_stored_and_shown(rig: &Rig) {
    let path = cluster(rig).await;
    let observed = time(-10);
    let body = json!({
        "adapter": "validation", "observed_generation": 1, "observed_time": observed,
        "conditions": [
            { "type": "Available", "status": "True", "reason": "Valid", "message": "all is well" },
            { "type": "Applied", "status": "True" },
            { "type": "Health", "status": "False", "reason": "Slow" },
            { "type": "Extra", "status": "Unknown" },
        ],
        "data": { "a": [1, { "b": null }] },
        "nonsense": true,
    });
    let condition =
        |kind: &str, status: &str| json!({ "type": kind, "status": status, "last_transition_time": observed });
    let expected = json!({
        "adapter": "validation", "observed_generation": 1,
        "conditions": [
            merged(condition("Available", "True"), json!({ "reason": "Valid", "message": "all is well" })),
            condition("Applied", "True"),
            merged(condition("Health", "False"), json!({ "reason": "Slow" })),
            condition("Extra", "Unknown"),
        ],
        "data": { "a": [1, { "b": null }] },
        "created_time": observed, "last_report_time": observed,
    });
    let same = |actual: &Value| {
        // The store keeps microseconds.
        let text = actual.to_string();
        let micro: jiff::Timestamp = observed.parse::<jiff::Timestamp>().unwrap();
        let micro = jiff::Timestamp::from_microsecond(micro.as_microsecond()).unwrap().to_string();
        assert_eq!(text, expected.to_string().replace(&observed, &micro));
    };
    same(&rig.report(&path, body).await.is(201).body());
    let list = rig.get(&format!("{path}/statuses")).await.is(200).body();
    assert_eq!((&list["page"], &list["size"], &list["total"]), (&json!(1), &json!(1), &json!(1)));
    same(&list["items"][0]);
}

async fn messages_in_order(rig: &Rig) {
    let path = cluster(rig).await;
    let conditions = |conditions: Value| merged(report("a", 1, ""), json!({ "conditions": conditions }));
    let missing = |kind: &str| {
        format!("missing mandatory condition '{kind}': all adapters must report Available, Applied, and Health")
    };
    let invalid = |status: &str, index: usize, kind: &str| {
        format!(
            "invalid status value '{status}' for condition at index {index} (type: {kind}): must be 'True', 'False', or \
             'Unknown'"
        )
    };
    let rows: &[(Value, String)] = &[
        (json!({}), "adapter is required".into()),
        (json!({ "adapter": "", "observed_generation": 0 }), "adapter is required".into()),
        (json!({ "adapter": "a" }), "observed_generation must be >= 1".into()),
        (json!({ "adapter": "a", "observed_generation": 0 }), "observed_generation must be >= 1".into()),
        (json!({ "adapter": "a", "observed_generation": -1 }), "observed_generation must be >= 1".into()),
        (conditions(json!([{ "status": "True" }])), "condition type cannot be empty at index 0".into()),
        (
            conditions(json!([{ "type": "A", "status": "True" }, { "type": "", "status": "x" }])),
            "condition type cannot be empty at index 1".into(),
        ),
        (
            conditions(json!([{ "type": "A", "status": "True" }, { "type": "A", "status": "x" }])),
            "duplicate condition type 'A' at index 1".into(),
        ),
        (conditions(json!([{ "type": "A", "status": "true" }])), invalid("true", 0, "A")),
        (conditions(json!([{ "type": "A" }])), invalid("", 0, "A")),
        (conditions(json!([])), missing("Available")),
        (report("a", 1, "Health=True Applied=True"), missing("Available")),
        (report("a", 1, "Available=True Health=True"), missing("Applied")),
        (report("a", 1, "Available=True Applied=True Finalized=True"), missing("Health")),
    ];
    for (body, detail) in rows {
        rig.report(&path, body.clone()).await.refuses("400 VAL-000", detail);
    }
    assert_eq!(rig.get(&format!("{path}/statuses")).await.is(200).body()["total"], 0);
    // Conditions are checked before the time, and both before the resource is looked up.
    let late = merged(conditions(json!([{ "type": "A", "status": "x" }])), json!({ "observed_time": time(900) }));
    rig.report(&path, late).await.refuses("400 VAL-000", &invalid("x", 0, "A"));
    let late = merged(report("a", 1, DONE), json!({ "observed_time": time(900) }));
    let answer = rig.report(&format!("/clusters/{}", unique("absent")), late).await;
    answer.refuses("400 VAL-000", "observed_time must not be more than 5m0s in the future");
}

async fn times(rig: &Rig) {
    let path = cluster(rig).await;
    let at = |adapter: &str, time: Value| merged(report(adapter, 1, DONE), json!({ "observed_time": time }));
    let past = "observed_time must not be more than 30m0s in the past";
    let future = "observed_time must not be more than 5m0s in the future";
    for (time, detail) in [
        (time(5 * 60 + 20), future),
        (time(-30 * 60 - 20), past),
        ("1970-01-01T00:00:00Z".to_owned(), past),
        ("9999-12-30T00:00:00Z".to_owned(), future),
    ] {
        rig.report(&path, at("a", json!(time))).await.refuses("400 VAL-000", detail);
    }
    for bad in
        ["", "yesterday", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "0"]
    {
        rig.report(&path, at("a", json!(bad))).await.problem("400 VAL-006");
    }
    for bad in [json!(0), json!(1.5), json!({}), json!([])] {
        rig.report(&path, at("a", bad)).await.problem("400 VAL-006");
    }
    rig.report(&path, at("b", json!(time(5 * 60 - 20)))).await.is(201);
    rig.report(&path, at("c", json!(time(-30 * 60 + 20)))).await.is(201);
    // An absent time and Go's zero time mean now, so they are never stale.
    let before = jiff::Timestamp::now();
    for (adapter, none) in [("d", Value::Null), ("e", json!("0001-01-01T00:00:00Z"))] {
        for _ in 0..2 {
            let stored = rig.report(&path, at(adapter, none.clone())).await.is(201).body();
            let time: jiff::Timestamp = stored["last_report_time"].as_str().unwrap().parse().unwrap();
            assert!(time.duration_since(before).abs() < jiff::SignedDuration::from_mins(1));
        }
    }
    // Any offset is accepted.
    let zoned = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(5)));
    let text = zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    let stored = rig.report(&path, at("f", json!(text))).await.is(201).body();
    let actual: jiff::Timestamp = stored["last_report_time"].as_str().unwrap().parse().unwrap();
    assert_eq!(actual.as_second(), zoned.timestamp().as_second());
}

async fn put_returns_201_and_post_distinguishes_updates(rig: &Rig) {
    let path = cluster(rig).await;
    for (method, adapter, status) in [
        ("PUT", "a", 201),
        ("PUT", "a", 201),
        ("POST", "b", 201),
        ("POST", "b", 200),
        ("POST", "a", 200),
        ("PUT", "b", 201),
    ] {
        let answer = rig.ask(&format!("{method} {path}/statuses"), report(adapter, 1, DONE)).await;
        assert_eq!(answer.is(status).body()["adapter"], adapter);
    }
    assert_eq!(rig.ask(&format!("POST {path}/statuses"), report("b", 7, DONE)).await.is(204).text(), "");
}

async fn members_of_2025(rig: &Rig) {
    let path = cluster(rig).await;
    let body = json!({
        "adapter": "placement", "observedGeneration": 1, "lastUpdated": time(-5),
        "conditions": [
            { "type": "Available", "status": "True", "lastTransitionTime": time(-9) },
            { "type": "Applied", "status": "True" },
            { "type": "Health", "status": "True" },
        ],
        "data": { "clusterName": "mgmt-1" },
        "metadata": { "jobName": "j", "jobNamespace": "n" },
    });
    let stored = rig.ask(&format!("POST {path}/statuses"), body).await.is(201).body();
    assert_eq!(stored["observed_generation"], 1);
    assert_eq!(stored["metadata"], json!({ "job_name": "j", "job_namespace": "n" }));
    assert_eq!(stored["data"], json!({ "clusterName": "mgmt-1" }));
    let age = jiff::Timestamp::now().duration_since(stored["last_report_time"].as_str().unwrap().parse().unwrap());
    assert!(age >= jiff::SignedDuration::from_secs(4), "{age}");
}

/// The example of the specification, word for word but for its comments.
async fn the_specifications_example(rig: &Rig) {
    let path = cluster(rig).await;
    let body = json!({
        "adapter": "dns",
        "observedGeneration": 1,
        "conditions": [
            {
                "type": "Available", "status": "True", "reason": "AllRecordsCreated",
                "message": "All DNS records created and verified", "lastTransitionTime": "2025-10-21T14:35:00Z",
            },
            {
                "type": "Applied", "status": "True", "reason": "JobLaunched",
                "message": "DNS Job created successfully", "lastTransitionTime": "2025-10-21T14:33:00Z",
            },
            {
                "type": "Health", "status": "True", "reason": "NoErrors",
                "message": "DNS adapter executed without errors", "lastTransitionTime": "2025-10-21T14:35:00Z",
            },
        ],
        "data": { "recordsCreated": ["api.cluster.example.com", "*.apps.cluster.example.com"] },
        "lastUpdated": "2025-10-21T14:35:00Z",
    });
    let line = format!("POST {path}/statuses");
    let stored = rig.ask(&line, body.clone()).await.is(201).body();
    assert_eq!(stored["last_report_time"], "2025-10-21T14:35:00Z");
    rig.ask(&line, body.clone()).await.is(200);
    // The order of reports holds for it too.
    rig.ask(&line, merged(body.clone(), json!({ "lastUpdated": "2025-10-21T14:36:00Z" }))).await.is(200);
    rig.ask(&line, body.clone()).await.is(204);
    rig.ask(&line, merged(body.clone(), json!({ "lastUpdated": time(900) }))).await.problem("400 VAL-000");
    // Both members: today's rules apply.
    let both = merged(body, json!({ "observed_time": "2025-10-21T14:35:00Z" }));
    rig.ask(&line, both).await.refuses("400 VAL-000", "observed_time must not be more than 30m0s in the past");
}

async fn transition_times_are_kept(rig: &Rig) {
    let path = cluster(rig).await;
    let at =
        |seconds: i64, conditions: &str| merged(report("a", 1, conditions), json!({ "observed_time": time(seconds) }));
    let first = rig.report(&path, at(-30, "Available=False Applied=True Health=True")).await.is(201).body();
    let second = rig.report(&path, at(-20, "Available=True Applied=True Health=True Extra=True")).await.is(201).body();
    let moved = |kind: usize| second["conditions"][kind]["last_transition_time"] == second["last_report_time"];
    assert!(moved(0) && !moved(1) && !moved(2) && moved(3), "{second}");
    assert_eq!(second["conditions"][1]["last_transition_time"], first["last_report_time"]);
    assert_eq!(second["created_time"], first["created_time"]);
    assert_ne!(second["last_report_time"], first["last_report_time"]);
}

async fn equal_times_with_other_content(rig: &Rig) {
    let path = cluster(rig).await;
    let observed = time(-5);
    let body = |data: i64| merged(report("a", 1, DONE), json!({ "observed_time": observed, "data": { "n": data } }));
    rig.report(&path, body(1)).await.is(201);
    let stored = rig.get(&format!("{path}/statuses")).await.is(200).body()["items"][0].clone();
    let failed = json!([
        { "type": "Available", "status": "False", "reason": "Broken" },
        { "type": "Applied", "status": "True" },
        { "type": "Health", "status": "False" },
    ]);
    let before = rig.get(&path).await.is(200).body();
    for other in
        [body(1), body(2), merged(body(3), json!({ "conditions": failed })), merged(body(1), json!({ "metadata": {} }))]
    {
        assert_eq!(rig.report(&path, other.clone()).await.is(201).body(), stored, "what was stored stays");
        assert_eq!(rig.ask(&format!("POST {path}/statuses"), other).await.is(200).body(), stored);
    }
    assert_eq!(rig.get(&format!("{path}/statuses")).await.is(200).body()["items"], json!([stored]));
    assert_eq!(rig.get(&path).await.is(200).body(), before);
    // The rules that come before still hold.
    let incomplete = merged(report("a", 1, "Available=True"), json!({ "observed_time": observed }));
    rig.report(&path, incomplete).await.problem("400 VAL-000");
    let unknown =
        merged(report("a", 1, "Available=Unknown Applied=True Health=True"), json!({ "observed_time": observed }));
    rig.report(&path, unknown).await.is(204);
    // At another generation the time says nothing.
    rig.ask(&format!("PATCH {path}"), json!({ "spec": { "n": 2 } })).await.is(200);
    let next = merged(body(5), json!({ "observed_generation": 2 }));
    assert_eq!(rig.report(&path, next).await.is(201).body()["data"]["n"], 5);
}

async fn reports_do_not_change_the_resource(rig: &Rig) {
    let path = cluster(rig).await;
    let before = rig.get(&path).await.is(200).body();
    rig.report(&path, report("dns", 1, DONE)).await.is(201);
    let after = rig.get(&path).await.is(200).body();
    for member in ["generation", "updated_time", "updated_by", "spec"] {
        assert_eq!(after[member], before[member], "{member}");
    }
}

async fn the_view_of_adapters(rig: &Rig) {
    let path = cluster(rig).await;
    let body = merged(report("placement", 1, DONE), json!({ "data": { "name": "mgmt" } }));
    rig.report(&path, body).await.is(201);
    rig.report(&path, report("dns", 1, "Available=Unknown Applied=True Health=True")).await.is(201);
    let adapters = rig.get(&path).await.is(200).body()["status"]["adapters"].clone();
    assert_eq!(adapters["placement"]["available"], "True");
    assert_eq!(adapters["placement"]["data"], json!({ "name": "mgmt" }));
    assert_eq!(adapters["placement"]["conditions"][0]["type"], "Available");
    assert_eq!(adapters["dns"]["available"], "Unknown");
}

async fn any_adapter(rig: &Rig) {
    let path = cluster(rig).await;
    for name in ["Some Body", "ü", "a/b", "'; DROP TABLE x; --", "<script>", &"x".repeat(63)] {
        assert_eq!(rig.report(&path, report(name, 1, DONE)).await.is(201).body()["adapter"], *name);
    }
    rig.report(&path, report("a\0b", 1, DONE)).await.is(400);
    // They are not required.
    let conditions = rig.get(&path).await.is(200).body()["status"]["conditions"].clone();
    assert_eq!(conditions.as_array().unwrap().len(), 2, "{conditions}");
}

async fn lists(rig: &Rig) {
    let path = cluster(rig).await;
    for n in 0..25 {
        rig.report(&path, report(&format!("adapter-{n:02}"), 1, DONE)).await.is(201);
    }
    let names = async |query: &str| -> Vec<String> {
        let body = rig.get(&format!("{path}/statuses{query}")).await.is(200).body();
        assert_eq!(body["total"], 25);
        let items = body["items"].as_array().unwrap();
        assert_eq!(body["size"], items.len());
        items.iter().map(|item| item["adapter"].as_str().unwrap().to_owned()).collect()
    };
    let all = names("?size=100").await;
    assert_eq!(names("").await, all[..20]);
    assert_eq!(names("?page=2").await, all[20..]);
    assert_eq!(names("?page=3&size=10").await, all[20..]);
    assert_eq!(names("?page=4&size=10").await, [""; 0]);
    rig.get(&format!("{path}/statuses?size=101")).await.refuses("400 VAL-000", "Invalid query parameters");
    rig.get(&format!("{path}/statuses?page=0")).await.refuses("400 VAL-000", "Invalid query parameters");
    rig.get(&format!("/clusters/{}/statuses", unique("absent"))).await.problem("404 NTF-001");
}

async fn metadata_and_data(rig: &Rig) {
    let path = cluster(rig).await;
    let metadata = json!({
        "job_name": "j", "job_namespace": "n", "attempt": 3, "started_time": "2026-01-01T00:00:00Z",
        "completed_time": "2026-01-01T00:01:00Z", "duration": "1m", "other": "dropped",
    });
    let stored = rig.report(&path, merged(report("a", 1, DONE), json!({ "metadata": metadata }))).await.is(201).body();
    let mut expected = metadata.clone();
    expected.as_object_mut().unwrap().remove("other");
    assert_eq!(stored["metadata"], expected);
    let plain = rig.report(&path, report("b", 1, DONE)).await.is(201).body();
    assert_eq!((&plain["data"], plain.get("metadata")), (&json!({}), None));
    for absent in ["id", "href"] {
        assert_eq!(plain.get(absent), None);
    }
    for bad in [
        json!({ "data": [] }),
        json!({ "data": "x" }),
        json!({ "metadata": 5 }),
        json!({ "metadata": { "attempt": "x" } }),
    ] {
        rig.report(&path, merged(report("c", 1, DONE), bad)).await.problem("400 VAL-000");
    }
}

async fn absent_resources(rig: &Rig) {
    let id = unique("absent");
    let answer = rig.report(&format!("/clusters/{id}"), report("a", 1, DONE)).await;
    answer.refuses("404 NTF-001", &format!("Cluster with id='{id}' not found"));
    // A missing mandatory condition is checked after the resource is found.
    rig.report(&format!("/clusters/{id}"), report("a", 1, "")).await.problem("404 NTF-001");
}

async fn malformed(rig: &Rig) {
    let path = cluster(rig).await;
    for body in ["", "{", "nonsense"] {
        rig.send(&format!("PUT {path}/statuses"), &[], body).await.problem("400 VAL-006");
    }
    for bad in [json!(1.5), json!("1"), json!([1]), json!(true)] {
        let body = merged(report("a", 1, DONE), json!({ "observed_generation": bad }));
        rig.report(&path, body).await.problem("400 VAL-000");
    }
    for bad in [json!({}), json!("x"), json!([1]), json!([[]]), json!([{ "type": 1, "status": "True" }])] {
        rig.report(&path, merged(report("a", 1, DONE), json!({ "conditions": bad }))).await.problem("400 VAL-000");
    }
}
