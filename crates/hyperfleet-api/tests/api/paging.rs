//! Paging of lists.

use serde_json::{Value, json};

use crate::rig::{Kind, Rig, path_of, unique};

rules! {
    shared: bounds empty_padded_and_older_parameters references_without_a_usable_target below_a_parent;
    own: pages_hold_every_item_once;
}

async fn bounds(rig: &Rig) {
    let rows: &[(&str, &str, &str, &str, &str)] = &[
        ("size", "101", "size", "max", "size must be at most 100"),
        ("size", "9223372036854775807", "size", "max", "size must be at most 100"),
        ("size", "0", "size", "min", "size must be at least 1"),
        ("size", "-1", "size", "min", "size must be at least 1"),
        ("size", "x", "size", "format", "must be a valid integer"),
        ("size", "1.5", "size", "format", "must be a valid integer"),
        ("size", "1e1", "size", "format", "must be a valid integer"),
        ("size", "99999999999999999999", "size", "format", "must be a valid integer"),
        ("size", "1; DROP TABLE resources", "size", "format", "must be a valid integer"),
        ("page", "0", "page", "min", "page must be at least 1"),
        ("page", "-9223372036854775808", "page", "min", "page must be at least 1"),
        ("page", "100001", "page", "max", "page must be at most 100000"),
        ("page", "one", "page", "format", "must be a valid integer"),
        ("page", "\u{1b}[31m\r\nx", "page", "format", "must be a valid integer"),
        ("page", "\0", "page", "format", "must be a valid integer"),
    ];
    for (name, value, field, constraint, message) in rows {
        let answer = rig.list("/clusters", &[(name, value)]).await;
        let answer = answer.refuses("400 VAL-000", "Invalid query parameters").at(field, constraint);
        let error = answer.body()["errors"][0].clone();
        assert_eq!(error["message"], *message);
        let number = serde_json::from_str::<i64>(value).map_or_else(|_| json!(value.trim()), |number| json!(number));
        assert_eq!(error["value"], number, "of the request's type, as it was sent");
        assert!(!answer.text().contains('\u{1b}'));
    }
    let both = rig.list("/clusters", &[("page", "0"), ("size", "0")]).await;
    assert_eq!(both.is(400).body()["errors"].as_array().unwrap().len(), 2);
    for good in [("page", "100000"), ("size", "1"), ("size", "100"), ("nonsense", "x")] {
        rig.list("/clusters", &[good]).await.is(200);
    }
}

/// Every kind of list.
async fn lists(rig: &Rig) -> [String; 4] {
    let path = path_of(&rig.cluster(json!({})).await);
    ["/clusters".to_owned(), "/resources".to_owned(), format!("{path}/nodepools"), format!("{path}/statuses")]
}

async fn empty_padded_and_older_parameters(rig: &Rig) {
    for list in lists(rig).await {
        // The names of older versions have no effect.
        for (name, value, page) in [
            ("page", "", 1),
            ("page", "  ", 1),
            ("page", " 2 ", 2),
            ("page", "+2", 2),
            ("page", "\t3\n", 3),
            ("size", "", 1),
            ("size", "\t", 1),
            ("size", " 100 ", 1),
            ("pageSize", "101", 1),
            ("pageSize", "x", 1),
            ("orderBy", "x", 1),
            ("order", "", 1),
            ("order", " ", 1),
            ("order", ",,", 1),
            ("ref_type", " ", 1),
            ("ref_target_id", "", 1),
            ("fields", ",", 1),
        ] {
            let body = rig.list(&list, &[(name, value)]).await.is(200).body();
            assert_eq!(body["page"], page, "{list} {name}={value:?}");
        }
    }
}

async fn references_without_a_usable_target(rig: &Rig) {
    let message = "ref_type and ref_target_id must be provided together";
    for list in lists(rig).await {
        for (parameters, field) in [
            (vec![("ref_type", "wif_config")], "reftargetid"),
            (vec![("ref_type", "wif_config"), ("ref_target_id", "")], "reftargetid"),
            (vec![("ref_type", "wif_config"), ("ref_target_id", " \t")], "reftargetid"),
            (vec![("ref_target_id", "x")], "reftype"),
            (vec![("ref_target_id", "x"), ("ref_type", " ")], "reftype"),
        ] {
            let answer = rig.list(&list, &parameters).await;
            let answer = answer.refuses("400 VAL-000", "Invalid query parameters").at(field, "required");
            let error = json!({ "field": field, "value": "", "constraint": "required", "message": message });
            assert_eq!(answer.body()["errors"], json!([error]), "{list}");
        }
    }
}

async fn pages_hold_every_item_once(kind: Kind) {
    let rig = Rig::start(kind, "").await;
    let channel = |name: &str| json!({ "kind": "Channel", "name": name, "spec": {} });
    let names: Vec<String> = (0..45).map(|n| format!("channel-{n:02}")).collect();
    for name in &names {
        rig.create("/channels", channel(name)).await;
    }
    let newest_first: Vec<String> = names.iter().rev().cloned().collect();
    let first = rig.get("/channels").await;
    assert_eq!(first.names(), newest_first[..20], "20 by default, the newest first");
    let body = first.body();
    assert_eq!((&body["page"], &body["size"], &body["total"]), (&json!(1), &json!(20), &json!(45)));
    assert_eq!(body.get("kind"), None);
    let last = rig.get("/channels?page=3").await;
    assert_eq!(last.names(), newest_first[40..]);
    assert_eq!((&last.body()["page"], &last.body()["size"]), (&json!(3), &json!(5)));
    let beyond = rig.get("/channels?page=4").await.is(200).body();
    assert_eq!(beyond, json!({ "page": 4, "size": 0, "total": 45, "items": [] }));
    for order in ["", "kind", "kind desc", "generation", "created_by desc", "deleted_time"] {
        let mut actual = Vec::new();
        for page in 1..=7 {
            let page = page.to_string();
            actual.extend(rig.list("/channels", &[("order", order), ("size", "7"), ("page", &page)]).await.names());
        }
        actual.sort();
        assert_eq!(actual, names, "ties are broken: {order}");
    }
    assert_eq!(rig.get("/channels?pageSize=7&orderBy=name").await.names(), newest_first[..20], "of older versions");
}

async fn below_a_parent(rig: &Rig) {
    let (one, two) = (rig.cluster(json!({})).await, rig.cluster(json!({})).await);
    for (parent, count) in [(&one, 3), (&two, 2)] {
        for n in 0..count {
            let body = json!({ "kind": "NodePool", "name": format!("pool-{n}"), "spec": {} });
            rig.create(&format!("{}/nodepools", path_of(parent)), body).await;
        }
    }
    let total = |body: Value| body["total"].clone();
    let id = one["id"].as_str().unwrap();
    assert_eq!(total(rig.get(&format!("{}/nodepools", path_of(&one))).await.is(200).body()), 3);
    assert_eq!(total(rig.get(&format!("{}/nodepools", path_of(&two))).await.is(200).body()), 2);
    let search = format!("owner_id = '{id}'");
    assert_eq!(total(rig.list("/nodepools", &[("search", &search)]).await.is(200).body()), 3);
    let search = format!("owner_kind = 'Cluster' and owner_id = '{id}' and name = 'pool-1'");
    assert_eq!(total(rig.list("/nodepools", &[("search", &search)]).await.is(200).body()), 1);
    let empty = path_of(&rig.create("/channels", json!({ "kind": "Channel", "name": unique("c"), "spec": {} })).await);
    assert_eq!(total(rig.get(&format!("{empty}/versions")).await.is(200).body()), 0);
}
