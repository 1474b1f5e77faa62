//! The examples of the document against the server, and the responses against the document.

use http::Method;
use serde_json::{Value, json};

use crate::contract::Contract;
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn every_example_gets_a_documented_response() {
    let rig = Rig::start().await;
    rig.create(1).await;
    let contract = Contract(rig.document().await);
    let mut sent = 0;
    for (path, method, operation) in contract.operations() {
        let examples = &operation["requestBody"]["content"]["application/json"]["examples"];
        for (name, example) in examples.as_object().into_iter().flatten() {
            let id = operation["operationId"].as_str().unwrap();
            let path = address(path);
            let force = path.ends_with("/force-delete");
            // A resource without adapters is removed as soon as its deletion is requested.
            let (path, expected) = if force { deleting(&rig, &path).await } else { (path, expected(id, method)) };
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let answer = rig.ask(method, &path, Some(&example["value"])).await;
            assert!(expected.contains(&answer.status), "{id}, {name}: {} {}", answer.status, answer.text());
            contract.check(operation, &answer);
            if id.starts_with("create") && answer.status == 201 {
                remove(&rig, answer.json()["href"].as_str().unwrap()).await;
            }
            sent += 1;
        }
    }
    assert!(sent > 60, "{sent}");
    rig.end().await;
}

/// The query with the first of the values that each required parameter may have.
fn required_query(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let required = parameters.filter(|parameter| parameter["required"] == true && parameter["in"] == "query");
    let value = |parameter: &Value| parameter["schema"]["enum"][0].as_str().unwrap().to_owned();
    let pairs: Vec<String> = required.map(|one| format!("{}={}", one["name"].as_str().unwrap(), value(one))).collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_read_gets_a_documented_response() {
    let rig = Rig::start().await;
    rig.create(1).await;
    let contract = Contract(rig.document().await);
    let report = &contract.0["paths"]["/api/hyperfleet/v1/clusters/{cluster_id}/statuses"]["put"]["requestBody"];
    let report = &report["content"]["application/json"]["examples"]["current"]["value"];
    let reported = rig.ask(Method::PUT, "/api/hyperfleet/v1/clusters/cluster-1/statuses", Some(report)).await;
    assert_eq!(reported.status, 201);
    for (path, method, operation) in contract.operations() {
        if method == "get" {
            let path = address(path) + &required_query(operation);
            let answer = rig.ask(Method::GET, &path, None).await;
            assert_eq!(answer.status, 200, "{path}");
            contract.check(operation, &answer);
            let absent = path.replace("-1", "-9");
            contract.check(operation, &rig.ask(Method::GET, &absent, None).await);
        }
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_can_be_selected_and_every_column_ordered_by() {
    let rig = Rig::start().await;
    rig.create(1).await;
    let document = rig.document().await;
    let members = document["components"]["schemas"]["NodePool"]["properties"].as_object().unwrap().keys();
    let pattern = &document["components"]["parameters"]["Fields"]["schema"]["items"]["pattern"];
    let documented = json!({ "type": "string", "pattern": pattern });
    for member in members {
        jsonschema::validate(&documented, &json!(member)).unwrap();
        let answer = rig.ask(Method::GET, &format!("/api/hyperfleet/v1/nodepools?fields={member}"), None).await;
        assert_eq!(answer.status, 200, "{member}: {}", answer.text());
    }
    let order = document["components"]["parameters"]["Order"]["description"].as_str().unwrap();
    let columns = order.rsplit_once("One of: ").unwrap().1.trim_end_matches('.').split(", ");
    for column in columns {
        let answer = rig.ask(Method::GET, &format!("/api/hyperfleet/v1/nodepools?order={column}%20desc"), None).await;
        assert_eq!(answer.status, 200, "{column}: {}", answer.text());
    }
    let searches = document["components"]["parameters"]["Search"]["examples"].as_object().unwrap();
    for search in searches.values() {
        let query: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("search", search["value"].as_str().unwrap())
            .finish();
        let answer = rig.ask(Method::GET, &format!("/api/hyperfleet/v1/clusters?{query}"), None).await;
        assert_eq!(answer.status, 200, "{search}: {}", answer.text());
    }
    rig.end().await;
}

/// The path with the ids of existing resources.
fn address(path: &str) -> String {
    let segments = path.split('/').map(|segment| match segment.strip_prefix('{') {
        Some("resource_id}") => "cluster-1".to_owned(),
        Some(parameter) => format!("{}-1", parameter.trim_end_matches("_id}")),
        None => segment.to_owned(),
    });
    segments.collect::<Vec<_>>().join("/")
}

fn expected(id: &str, method: &str) -> &'static [u16] {
    match (id, method) {
        // Their parent is missing in the path.
        ("createNodePool" | "createVersion", _) => &[422],
        _ if id.starts_with("create") => &[201],
        // There is no such tombstone.
        _ if id.ends_with("Swept") => &[404],
        (_, "put") => &[201],
        (_, "patch") => &[200],
        // A first report, a later one, or one about an old generation.
        _ => &[200, 201, 204],
    }
}

/// The path of a forced deletion of a resource whose deletion was requested, and the expected statuses.
async fn deleting(rig: &Rig, path: &str) -> (String, &'static [u16]) {
    let item = path.strip_suffix("/force-delete").unwrap();
    let (collection, last) = item.rsplit_once('/').unwrap();
    let kind = last.trim_end_matches("-1");
    let (kind, created_at) = crate::rig::KINDS.iter().find(|(name, _)| name.to_lowercase() == kind).unwrap();
    let id = format!("{}-deleting", kind.to_lowercase());
    let body: Value = json!({ "id": id, "kind": kind, "name": "deleting", "spec": {} });
    assert_eq!(rig.ask(Method::POST, created_at, Some(&body)).await.status, 201);
    assert_eq!(rig.ask(Method::DELETE, &format!("{collection}/{id}"), None).await.status, 202);
    let has_adapters = ["Cluster", "NodePool"].contains(kind);
    (format!("{collection}/{id}/force-delete"), if has_adapters { &[204] } else { &[404] })
}

/// Removes a resource, so that the same example can be created at another path.
async fn remove(rig: &Rig, href: &str) {
    assert_eq!(rig.ask(Method::DELETE, href, None).await.status, 202);
    let force = rig.ask(Method::POST, &format!("{href}/force-delete"), Some(&json!({ "reason": "a test" }))).await;
    assert!([204, 404].contains(&force.status), "{}", force.text());
}
