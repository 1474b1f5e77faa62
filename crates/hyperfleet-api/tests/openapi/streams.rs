//! The lines of a change stream against the document.

use http::Method;
use serde_json::{Value, json};

use crate::contract::Contract;
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_a_stream_is_an_event() {
    let rig = Rig::start().await;
    rig.create(1).await;
    let contract = Contract(rig.document().await);
    let mut stream = rig.lines("/api/hyperfleet/v1/clusters?watch=true").await;
    assert_eq!(stream.headers()["content-type"], "application/x-ndjson");
    let event = json!({ "$ref": "#/components/schemas/ChangeEvent" });
    let cluster = json!({ "$ref": "#/components/schemas/Cluster" });
    let mut text = String::new();
    let mut actual: Vec<String> = Vec::new();
    while actual.last().is_none_or(|kind| kind != "MODIFIED") {
        text += std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap();
        while let Some((line, rest)) = text.split_once('\n') {
            let line: Value = serde_json::from_str(line).unwrap();
            text = rest.to_owned();
            contract.satisfies(&event, &line);
            let kind = line["type"].as_str().unwrap().to_owned();
            if kind == "BOOKMARK" {
                let labels = json!({ "labels": { "a": "b" } });
                rig.ask(Method::PATCH, "/api/hyperfleet/v1/clusters/cluster-1", Some(&labels)).await;
            } else {
                contract.satisfies(&cluster, &line["object"]);
            }
            actual.push(kind);
        }
    }
    assert_eq!(actual, ["ADDED", "BOOKMARK", "MODIFIED"]);
    drop(stream);
    rig.end().await;
}
