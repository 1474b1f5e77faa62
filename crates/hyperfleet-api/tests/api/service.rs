//! The service's own endpoints: root, `OpenAPI` document, probes, metrics.

use serde_json::{Value, json};

use crate::rig::{Rig, path_of};

rules! {
    shared: root openapi probes metrics;
    own: ;
}

async fn text(rig: &Rig, url: String) -> (u16, String) {
    let response = rig.client.get(url).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn root(rig: &Rig) {
    let body = rig.get("/api/hyperfleet").await.is(200).body();
    let expected = json!({
        "id": "hyperfleet", "kind": "API", "href": "/api/hyperfleet", "version": "1.2.3-test",
        "build_time": "2026-01-31T12:00:00Z",
    });
    assert_eq!(body, expected);
}

async fn openapi(rig: &Rig) {
    let document = rig.get("/openapi").await.is(200);
    assert!(document.header("content-type").starts_with("application/json"));
    let document = document.body();
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    let paths = document["paths"].as_object().unwrap();
    for path in ["/clusters", "/clusters/{id}/statuses", "/nodepools"] {
        let known = |known: &String| {
            let known = known.strip_prefix("/api/hyperfleet/v1").unwrap_or(known);
            let segments = |path: &str| {
                path.split('/').map(|one| if one.starts_with('{') { "{}" } else { one }.to_owned()).collect::<Vec<_>>()
            };
            segments(known) == segments(path)
        };
        assert!(paths.keys().any(known), "{path}: {:?}", paths.keys().collect::<Vec<_>>());
    }
    let page = rig.get("/openapi.html").await.is(200);
    assert!(page.header("content-type").starts_with("text/html"));
}

async fn probes(rig: &Rig) {
    let (status, body) = text(rig, format!("http://{}/healthz", rig.health)).await;
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (200, json!({ "status": "ok" })));
    let (status, _) = text(rig, format!("http://{}/readyz", rig.health)).await;
    assert_eq!(status, 200);
}

async fn metrics(rig: &Rig) {
    let path = path_of(&rig.cluster(json!({})).await);
    rig.get(&path).await.is(200);
    rig.get("/nonsense-of-metrics").await.is(404);
    let (status, body) = text(rig, format!("http://{}/metrics", rig.metrics)).await;
    assert_eq!(status, 200);
    for name in [
        "hyperfleet_api_requests_total",
        "hyperfleet_api_request_duration_seconds",
        "hyperfleet_api_build_info",
        "hyperfleet_api_reconciliation_started_total",
        "hyperfleet_db_query_duration_seconds",
        "hyperfleet_db_connections_open",
        "hyperfleet_db_connections_in_use",
    ] {
        assert!(body.contains(name), "{name}");
    }
    let counted = body.lines().find(|line| {
        line.starts_with("hyperfleet_api_requests_total{")
            && line.contains("path=\"/api/hyperfleet/v1/clusters/-\"")
            && line.contains("method=\"GET\"")
            && line.contains("code=\"200\"")
    });
    assert!(
        counted.is_some_and(|line| line.contains("component=\"api\"") && line.contains("version=\"1.2.3-test\"")),
        "{counted:?}"
    );
    assert!(!body.contains(path.rsplit('/').next().unwrap()), "ids are no labels");
    assert!(!body.contains("nonsense-of-metrics"), "unknown paths are no labels");
}
