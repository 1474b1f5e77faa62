//! Valid and invalid names and labels.

use serde_json::json;

use crate::rig::{Rig, cluster, merged, unique};

rules! {
    shared: names names_of_node_pools names_without_limits_of_their_own valid_labels invalid_labels
        every_invalid_label_is_reported;
    own: ;
}

async fn names(rig: &Rig) {
    let tail = unique("n");
    for good in ["a-b".to_owned(), "000".to_owned(), "a--b".to_owned(), "x".repeat(40)] {
        let name: String = format!("{good}{tail}").chars().take(53).collect();
        rig.create("/clusters", cluster(&name)).await;
    }
    let longest = format!("{tail}{}", "x".repeat(53 - tail.len()));
    rig.create("/clusters", cluster(&longest)).await;
    for bad in
        ["-abc", "abc-", "aBc", "a_c", "a.c", "a c", "äbc", "abc\n", "abc/..", "'; --", "<b>", "аbc", "a\u{200b}c"]
    {
        let answer = rig.ask("POST /clusters", cluster(bad)).await;
        answer.is(400).at("name", "pattern");
    }
    // Characters count, not bytes.
    let answer = rig.ask("POST /clusters", cluster("ää")).await;
    answer.refuses("400 VAL-000", "name must be at least 3 characters");
    rig.ask("POST /clusters", cluster("abc\0def")).await.is(400);
}

async fn names_of_node_pools(rig: &Rig) {
    let parent = crate::rig::path_of(&rig.cluster(json!({})).await);
    let line = format!("POST {parent}/nodepools");
    let body = |name: &str| json!({ "kind": "NodePool", "name": name, "spec": {} });
    rig.ask(&line, body("abc")).await.is(201);
    rig.ask(&line, body(&"a".repeat(15))).await.is(201);
    rig.ask(&line, body("ab")).await.refuses("400 VAL-000", "name must be at least 3 characters");
    rig.ask(&line, body(&"a".repeat(16))).await.refuses("400 VAL-000", "name must be at most 15 characters");
}

async fn names_without_limits_of_their_own(rig: &Rig) {
    let body = |name: &str| json!({ "kind": "Channel", "name": name, "spec": {} });
    rig.ask("POST /channels", body("a")).await.is(201);
    let tail = unique("a");
    rig.ask("POST /channels", body(&format!("{tail}{}", "a".repeat(100 - tail.len())))).await.is(201);
    let long = rig.ask("POST /channels", body(&"a".repeat(101))).await;
    long.refuses("400 VAL-000", "name must be at most 100 characters");
}

async fn valid_labels(rig: &Rig) {
    let prefix = format!("{}.{}", "a".repeat(63), "b".repeat(63));
    let labels = json!({
        "a": "", "A.b_c-9": "v", "example.com/name": "A", "cost-center": "x".repeat(63),
        format!("{prefix}/{}", "c".repeat(63)): "z.-_0",
    });
    let created = rig.cluster(json!({ "labels": labels })).await;
    assert_eq!(created["labels"], labels);
}

async fn invalid_labels(rig: &Rig) {
    let long = |count: usize| "a".repeat(count);
    let keys = [
        String::new(),
        "-a".into(),
        "a-".into(),
        "a b".into(),
        "a/b/c".into(),
        "/a".into(),
        "a/".into(),
        long(64),
        "ä".into(),
        "Example.com/a".into(),
        "a..b/c".into(),
        "<script>".into(),
        "a\u{1b}[31m".into(),
        "a'b".into(),
        "a\"b".into(),
        format!("{}/a", long(64)),
        format!("{0}.{0}.{0}.{0}/{1}", long(62), "n".repeat(5)),
    ];
    for key in keys {
        let body = merged(cluster(&unique("c")), json!({ "labels": { key.clone(): "v" } }));
        let answer = rig.ask("POST /clusters", body).await;
        answer.refuses("400 VAL-000", "label validation failed").at("labels", "pattern");
    }
    for value in ["-a", "a-", "a b", "a/b", "ä", "a\nb", "<b>", &long(64)] {
        let body = merged(cluster(&unique("c")), json!({ "labels": { "key": value } }));
        let answer = rig.ask("POST /clusters", body).await;
        answer.refuses("400 VAL-000", "label validation failed").at("labels[key]", "pattern");
    }
    // As in Go, null is the empty text.
    assert_eq!(rig.cluster(json!({ "labels": { "a": null } })).await["labels"], json!({ "a": "" }));
}

async fn every_invalid_label_is_reported(rig: &Rig) {
    let created = rig.cluster(json!({})).await;
    let patch = json!({ "labels": { "-a": "v", "b": "-", "c": "v" } });
    let answer = rig.ask(&format!("PATCH {}", crate::rig::path_of(&created)), patch).await;
    let answer =
        answer.refuses("400 VAL-000", "label validation failed").at("labels", "pattern").at("labels[b]", "pattern");
    let errors = answer.body()["errors"].clone();
    assert_eq!(errors.as_array().unwrap().len(), 2);
    let both = rig.ask("POST /clusters", merged(cluster("abc"), json!({ "labels": { "-": "+" } }))).await;
    both.at("labels", "pattern").at("labels[-]", "pattern");
    assert_eq!((&errors[0]["value"], &errors[1]["value"]), (&json!("-a"), &json!("-")));
}
