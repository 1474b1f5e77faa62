//! Problems for requests that no endpoint handles. The checks that apply to every problem run on each response.

use serde_json::json;

use crate::rig::raw::{exchange, head};
use crate::rig::{BASE, Rig, path_of, unique};

rules! {
    shared: unknown_paths wrong_methods trailing_slashes absent_resources request_ids compression impossible_ids
        head_requests;
    own: ;
}

async fn unknown_paths(rig: &Rig) {
    for path in [
        "/nonsense",
        "/clusters/x/nonsense",
        "/clusters/x/statuses/nonsense",
        "/clusters/x/force-delete/y",
        "/clusters/x/versions",
        "/nodepools/x/nodepools",
        "/api/hyperfleet/v2/clusters",
        "/api",
        "/api/hyperfleet/v1",
        "/Clusters",
        "/clusters/x/y/z/a/b",
        "/compatibility",
        "/clusters/x/nodepools/y/statuses/z",
        "/resources/x/nodepools",
    ] {
        for method in ["GET", "POST", "DELETE", "PUT"] {
            rig.ask(&format!("{method} {path}"), json!({})).await.problem("404 NTF-000");
        }
    }
    rig.get("/nonsense?x=%00%ff").await.problem("404 NTF-000");
}

async fn wrong_methods(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    for (line, allowed) in [
        ("PUT /clusters".to_owned(), "GET POST"),
        ("DELETE /clusters".to_owned(), "GET POST"),
        ("PUT /resources".to_owned(), "GET POST"),
        (format!("PUT {path}"), "GET PATCH DELETE"),
        (format!("POST {path}"), "GET PATCH DELETE"),
        (format!("PATCH {path}/statuses"), "GET PUT POST"),
        (format!("DELETE {path}/statuses"), "GET PUT POST"),
        (format!("GET {path}/force-delete"), "POST"),
        (format!("PUT {path}/force-delete"), "POST"),
        ("POST /api/hyperfleet".to_owned(), "GET"),
        ("POST /openapi".to_owned(), "GET"),
        ("TRACE /clusters".to_owned(), "GET POST"),
        ("OPTIONS /clusters".to_owned(), "GET POST"),
    ] {
        let answer = rig.ask(&line, json!({})).await.is(405);
        assert!(answer.header("content-type").starts_with("text/plain"), "{answer}");
        let actual: Vec<&str> = answer.header("allow").split(", ").filter(|method| *method != "HEAD").collect();
        assert_eq!(actual.join(" "), allowed, "{line}");
    }
}

async fn trailing_slashes(rig: &Rig) {
    let created = rig.create("/clusters/", crate::rig::cluster(&unique("slash"))).await;
    let path = path_of(&created);
    assert_eq!(rig.get(&format!("{path}/")).await.is(200).body(), created);
    rig.get("/clusters/?size=1").await.is(200);
    rig.get(&format!("{path}/statuses/")).await.is(200);
    rig.get("/nonsense/").await.problem("404 NTF-000");
}

async fn absent_resources(rig: &Rig) {
    let id = unique("absent");
    for (plural, kind) in
        [("clusters", "Cluster"), ("nodepools", "NodePool"), ("channels", "Channel"), ("versions", "Version")]
    {
        let answer = rig.get(&format!("/{plural}/{id}")).await;
        answer.refuses("404 NTF-001", &format!("{kind} with id='{id}' not found"));
    }
}

async fn request_ids(rig: &Rig) {
    let inbound = uuid::Uuid::now_v7().to_string();
    let one = rig.send("GET /clusters/x", &[("x-request-id", &inbound)], "").await.is(404);
    let two = rig.get("/clusters/x").await.is(404);
    assert_ne!(one.header("x-request-id"), inbound, "an inbound one is ignored");
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
    assert_eq!(one.body()["instance"], format!("{BASE}/clusters/x"));
}

async fn compression(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({ "spec": { "long": "x".repeat(5000) } })).await);
    let plain = rig.get(&path).await.is(200);
    assert_eq!(plain.header("content-encoding"), "");
    let zipped = rig.send(&format!("GET {path}"), &[("accept-encoding", "gzip")], "").await.is(200);
    assert_eq!(zipped.header("content-encoding"), "gzip");
    assert_eq!(zipped.bytes[..2], [0x1f, 0x8b]);
    assert!(zipped.bytes.len() < plain.bytes.len() / 2);
    let refused = rig.send(&format!("GET {path}"), &[("accept-encoding", "gzip;q=0, identity")], "").await.is(200);
    assert_eq!(refused.header("content-encoding"), "");
}

async fn impossible_ids(rig: &Rig) {
    for id in [
        "%00",
        "%0d%0ax",
        "..%2f..",
        "%ff",
        "'%20or%20'1'='1",
        "%1b%5b31m",
        "x%27)%20or%20(1=1",
        "*",
        "%f0%9f%a6%80",
        &"x".repeat(5000),
        "A",
        "undefined",
    ] {
        for line in ["GET", "PATCH", "DELETE", "PUT statuses", "POST force-delete"] {
            let (method, tail) = line.split_once(' ').map_or((line, ""), |(method, tail)| (method, tail));
            let path = format!("/clusters/{id}/{tail}");
            let body = match tail {
                "statuses" => crate::rig::report("dns", 1, crate::rig::DONE),
                "force-delete" => json!({ "reason": "x" }),
                _ => json!({ "spec": {} }),
            };
            let answer = rig.ask(&format!("{method} {}", path.trim_end_matches('/')), body).await;
            answer.problem("404 NTF-001");
            assert!(!answer.text().contains(['\u{1b}', '\0', '\r']), "{answer}");
        }
    }
}

async fn head_requests(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    let answer = exchange(rig.address, &head(&format!("HEAD {BASE}{path}"), b"")).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{answer}");
}
