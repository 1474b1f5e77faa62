//! Configurations of HyperFleet's own server start this one unchanged.

use serde_json::json;

use crate::rig::{Kind, Rig, cluster, file, log, path_of, report};

rules! {
    shared: ;
    own: the_charts_configuration the_developers_configuration;
}

const CHART: &str = include_str!("../upstream/chart.yaml");
const DEVELOPMENT: &str = include_str!("../upstream/development.yaml");

/// The database is the test's own; the rest is the chart's.
fn without_database(yaml: &str) -> String {
    let (before, rest) = yaml.split_once("database:\n").unwrap();
    let (_database, after) = rest.split_once("\nlogging:").unwrap();
    format!("{before}logging:{after}")
}

async fn the_charts_configuration(kind: Kind) {
    let rig = Rig::start(kind, &without_database(CHART)).await;
    assert!(rig.address.ip().is_loopback(), "without authentication: {}", rig.address);
    let path = path_of(&rig.create("/clusters", cluster("drop-in")).await);
    let mut landing = report("landing-zone", 1, crate::rig::DONE);
    landing["conditions"].as_array_mut().unwrap().push(json!({ "type": "NamespaceReady", "status": "True" }));
    rig.report(&path, landing).await.is(201);
    let conditions = rig.get(&path).await.is(200).body()["status"]["conditions"].clone();
    let mapped = conditions.as_array().unwrap().last().unwrap();
    assert_eq!(mapped["type"], "NamespaceReady");
    assert_eq!((&mapped["status"], &mapped["message"]), (&json!("True"), &json!("landing zone of drop-in")));
    let logged = log::logged();
    for key in ["server.host", "logging.otel", "logging.masking", "metrics.tls", "entities[0].search_disallowed_fields"]
    {
        assert!(logged.contains(&format!("{key}: no effect here")), "{key}");
    }
}

async fn the_developers_configuration(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let keys = file(folder.path(), "jwks.json", r#"{"keys":[]}"#);
    let rig = Rig::start(kind, &DEVELOPMENT.replace("JWKS", keys.to_str().unwrap())).await;
    rig.get("/channels").await.problem("401 AUT-001");
    rig.send("GET /channels", &[("authorization", "Bearer e30.e30.e30")], "").await.problem("401 AUT-002");
    let logged = log::logged();
    for note in
        ["server.jwt.configs[0]: no effect here without audience", "server.tenant: no effect here of its headers"]
    {
        assert!(logged.contains(note), "{note}");
    }
}
