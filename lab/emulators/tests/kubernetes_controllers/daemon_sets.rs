//! `DaemonSets` over registered nodes.

use serde_json::{Value, json};

use crate::client::{Cluster, PODS, runs};

const SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";

fn set(version: &str) -> Value {
    let container = json!({ "name": "main", "image": "syncer", "args": [version] });
    let template = json!({ "metadata": { "labels": { "app": "syncer" } }, "spec": { "containers": [container] } });
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "syncer", "namespace": "default" },
        "spec": { "selector": { "matchLabels": { "app": "syncer" } }, "template": template },
    })
}

#[tokio::test]
async fn run_on_every_node_and_roll() {
    let cluster = Cluster::with(&[("syncer", "exec sleep 1000")]).await;
    for node in ["n1", "n2"] {
        cluster.create("/api/v1/nodes", &json!({ "metadata": { "name": node } })).await;
    }
    cluster.create(SETS, &set("1")).await;
    let done = |generation: u32| {
        move |_: &str, set: &Value| {
            let status = &set["status"];
            status["observedGeneration"] == generation
                && status["updatedNumberScheduled"] == 2
                && status["numberAvailable"] == 2
        }
    };
    cluster.until(SETS, done(1)).await;
    let (_, pods) = cluster.get(PODS).await;
    assert!(pods["items"].as_array().unwrap().iter().all(runs));
    let (_, mut live) = cluster.get(&format!("{SETS}/syncer")).await;
    live["spec"]["template"] = set("2")["spec"]["template"].clone();
    cluster.replace(&format!("{SETS}/syncer"), &live).await;
    cluster.until(SETS, done(2)).await;
    let (_, pods) = cluster.get(PODS).await;
    let items = pods["items"].as_array().unwrap();
    assert!(items.len() == 2 && items.iter().all(|pod| pod["spec"]["containers"][0]["args"] == json!(["2"])));
    cluster.server.shutdown().await;
}
