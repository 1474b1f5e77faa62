//! The order of lists, and the selection of fields.

use serde_json::{Value, json};

use crate::rig::{Kind, Rig, merged, path_of, unique};

rules! {
    shared: invalid_orders fields_of_a_resource invalid_fields;
    own: orders;
}

async fn orders(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    for name in ["b", "a", "c"] {
        rig.create("/channels", json!({ "kind": "Channel", "name": name, "spec": {}, "id": format!("id-{name}") }))
            .await;
    }
    rig.ask("PATCH /channels/id-a", json!({ "spec": { "n": 1 } })).await.is(200);
    for (order, names) in [
        ("name", "a b c"),
        ("name asc", "a b c"),
        ("name desc", "c b a"),
        ("generation desc, name desc", "a c b"),
        ("generation,name", "b c a"),
        ("created_time", "b a c"),
        ("created_time desc", "c a b"),
        ("updated_time desc", "a c b"),
        ("id desc", "c b a"),
        ("kind,created_by,updated_by,owner_id,owner_kind,deleted_time,deleted_by,name", "a b c"),
        ("  name   desc  ", "c b a"),
    ] {
        assert_eq!(rig.list("/channels", &[("order", order)]).await.names().join(" "), names, "{order}");
    }
    let repeated = rig.list("/channels", &[("order", "generation desc"), ("order", "name desc")]).await;
    assert_eq!(repeated.names().join(" "), "a c b");
    assert_eq!(rig.list("/channels", &[("order", ",name desc,,")]).await.names().join(" "), "c b a");
}

async fn invalid_orders(rig: &Rig) {
    for order in [
        "nonsense",
        "NAME",
        "name up",
        "name ASC",
        "name desc desc",
        "name;",
        "name desc; DROP TABLE resources",
        "1",
        "name--",
        "(select 1)",
        "name,(SELECT password FROM users)",
        "case when 1=1 then id end",
        "spec",
        "spec.region",
        "labels.a",
        "name'",
        "\"name\"",
        "r.name",
        "resources.name",
        "state",
        "sealed",
        "name\0",
        "nаme",
        "name/**/desc",
        "\u{1b}[31mname",
        "name\r\ndesc\u{7}",
        "pg_sleep(5)",
        "rowid",
        "ctid",
    ] {
        let answer = rig.list("/clusters", &[("order", order)]).await;
        answer.problem("400 VAL-005");
        assert!(!answer.text().contains('\u{1b}'), "{answer}");
    }
    let long = vec!["name"; 2000].join(",");
    assert!([200, 400, 414].contains(&rig.list("/clusters", &[("order", &long)]).await.status));
    let unknown = rig.list("/clusters", &[("order", "nonsense")]).await.problem("400 VAL-005");
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("invalid field in search or order query"), "{detail}");
}

async fn fields_of_a_resource(rig: &Rig) {
    let created = rig.cluster(json!({ "spec": { "a": { "b": 1, "c": 2 } }, "labels": { "k": "v" } })).await;
    let path = path_of(&created);
    let id = &created["id"];
    let rows: &[(&str, Value)] = &[
        ("name", json!({ "id": id, "name": created["name"] })),
        ("id", json!({ "id": id })),
        ("name,kind", json!({ "id": id, "name": created["name"], "kind": "Cluster" })),
        ("generation&fields=labels", json!({ "id": id, "generation": 1, "labels": { "k": "v" } })),
        ("deleted_time,references", json!({ "id": id })),
        ("spec", json!({ "id": id, "spec": created["spec"] })),
    ];
    for (fields, expected) in rows {
        assert_eq!(rig.get(&format!("{path}?fields={fields}")).await.is(200).body(), *expected, "{fields}");
        let search = format!("search=id%3D'{}'", id.as_str().unwrap());
        let list = rig.get(&format!("/clusters?{search}&fields={fields}")).await.is(200).body();
        assert_eq!(list["items"], json!([expected]), "{fields}");
        assert_eq!((&list["page"], &list["size"], &list["total"]), (&json!(1), &json!(1), &json!(1)));
    }
    for empty in ["", ",", "%20"] {
        assert_eq!(rig.get(&format!("{path}?fields={empty}")).await.is(200).body(), created);
    }
    let status = rig.get(&format!("{path}?fields=status")).await.is(200).body();
    assert_eq!(
        status,
        merged(json!({ "id": id }), json!({ "status": created["status"] })),
        "with the view of adapters"
    );
}

async fn invalid_fields(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    for fields in
        ["nonsense", "name,nonsense", "Name", "id;", "sealed", "*", "name\0", "\u{1b}[31m", "' or 1=1", "owner_id"]
    {
        for target in ["/clusters", path.as_str()] {
            let answer = rig.list(target, &[("fields", fields)]).await;
            answer.problem("400 VAL-000");
            assert!(!answer.text().contains('\u{1b}'), "{answer}");
        }
    }
    rig.list(&format!("/clusters/{}", unique("absent")), &[("fields", "name")]).await.problem("404 NTF-001");
}
