//! Numbers are returned as they were sent or refused; never rounded.

use serde_json::json;

use crate::rig::{DONE, Rig, merged, path_of, report, unique};

rules! {
    shared: exact beyond forms equal_numbers_are_no_change;
    own: ;
}

async fn exact(rig: &Rig) {
    let numbers = json!([
        0,
        -1,
        9_007_199_254_740_992_i64,
        9_007_199_254_740_993_i64,
        -9_007_199_254_740_993_i64,
        i64::MAX,
        i64::MIN,
        9_223_372_036_854_775_808_u64,
        u64::MAX,
        0.1,
        1e-7,
        2.5,
        -0.5,
        123_456_789.125,
        1e15
    ]);
    let created = rig.cluster(json!({ "spec": { "n": numbers } })).await;
    let path = path_of(&created);
    assert_eq!(created["spec"]["n"].to_string(), numbers.to_string());
    let read = rig.get(&path).await.is(200).body();
    assert_eq!(read["spec"]["n"].to_string(), numbers.to_string(), "stored as it was sent");
    rig.report(&path, merged(report("dns", 1, DONE), json!({ "data": { "n": numbers } }))).await.is(201);
    let stored = rig.get(&format!("{path}/statuses")).await.is(200).body()["items"][0]["data"]["n"].clone();
    assert_eq!(stored.to_string(), numbers.to_string());
    let same = rig.ask(&format!("PATCH {path}"), json!({ "spec": { "n": numbers } })).await.is(200).body();
    assert_eq!(same["generation"], 1);
    // One more than 2^53 is another number.
    let mut other = numbers.as_array().unwrap().clone();
    other[2] = json!(9_007_199_254_740_993_i64);
    let changed = rig.ask(&format!("PATCH {path}"), json!({ "spec": { "n": other } })).await.is(200).body();
    assert_eq!(changed["generation"], 2);
}

async fn beyond(rig: &Rig) {
    for number in
        ["18446744073709551616", "-9223372036854775809", "1e400", "-1e400", "123456789012345678901234567890", "1e30"]
    {
        let body =
            format!("{{\"kind\":\"Cluster\",\"name\":\"{}\",\"spec\":{{\"a\":[{{\"n\":{number}}}]}}}}", unique("big"));
        let answer = rig.send("POST /clusters", &[], body).await.is(400);
        assert!(!answer.text().contains("123456789012345678901234567890"), "{answer}");
        let path = path_of(&rig.cluster(json!({})).await);
        rig.send(&format!("PATCH {path}"), &[], format!("{{\"spec\":{{\"n\":{number}}}}}")).await.is(400);
        let body = report("dns", 1, DONE)
            .to_string()
            .replace("\"adapter\"", &format!("\"data\":{{\"n\":{number}}},\"adapter\""));
        rig.send(&format!("PUT {path}/statuses"), &[], body).await.is(400);
        assert_eq!(rig.get(&path).await.is(200).body()["generation"], 1);
    }
}

async fn forms(rig: &Rig) {
    for bad in ["01", "+1", ".5", "1.", "0x10", "NaN", "Infinity", "-", "1e", "1_000"] {
        let body = format!("{{\"kind\":\"Cluster\",\"name\":\"{}\",\"spec\":{{\"n\":{bad}}}}}", unique("form"));
        rig.send("POST /clusters", &[], body).await.problem("400 VAL-006");
    }
    let body = format!("{{\"kind\":\"Cluster\",\"name\":\"{}\",\"spec\":{{\"n\":[1e2,1E+2,-0,1.0]}}}}", unique("form"));
    let created = rig.send("POST /clusters", &[], body).await.is(201).body();
    let read = rig.get(&path_of(&created)).await.is(200).body();
    for (actual, expected) in read["spec"]["n"].as_array().unwrap().iter().zip([100.0, 100.0, 0.0, 1.0]) {
        assert_eq!(
            actual.as_f64().map(f64::to_bits).map(|bits| bits << 1),
            Some(f64::to_bits(expected) << 1),
            "{actual}"
        );
    }
    let again =
        rig.ask(&format!("PATCH {}", path_of(&created)), json!({ "spec": created["spec"] })).await.is(200).body();
    assert_eq!(again["generation"], 1, "{}", again["spec"]);
}

async fn equal_numbers_are_no_change(rig: &Rig) {
    let created = rig.cluster(json!({ "spec": { "n": 1, "m": [100, { "deep": 0.5 }] } })).await;
    let line = format!("PATCH {}", path_of(&created));
    for same in [
        r#"{"spec":{"n":1.0,"m":[1e2,{"deep":0.5}]}}"#,
        r#"{"spec":{"m":[100.0,{"deep":5e-1}],"n":1}}"#,
        r#"{"spec":{"n":1.00,"m":[100,{"deep":0.50}]},"labels":{}}"#,
    ] {
        assert_eq!(rig.send(&line, &[], same).await.is(200).body(), created, "{same}");
    }
    assert_eq!(rig.get(&path_of(&created)).await.is(200).body(), created);
    let other = rig.send(&line, &[], r#"{"spec":{"n":"1","m":[100,{"deep":0.5}]}}"#).await.is(200).body();
    assert_eq!(other["generation"], 2, "a text is no number");
}
