//! As much `OpenAPI` as kubectl needs: that writes take `dryRun` and `fieldValidation`, for newer ones in version 3, for older
//! ones in version 2 as protobuf. There are no schemas: the server itself says what is wrong.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::kubernetes::resources::Resource;

/// The version whose behaviour is emulated.
pub(super) const MINOR: &str = "37";

/// The query parameters of writes.
const PARAMETERS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

/// By which kubectl knows which kind a path is for.
const KIND: &str = "x-kubernetes-group-version-kind";

/// The path of the documents of version 3.
pub(crate) fn paths(all: &[Arc<Resource>]) -> Value {
    let mut paths = Map::new();
    for resource in all {
        let prefix = prefix(resource);
        // Documents that change with the served kinds are distinguished by the number of kinds.
        let url = format!("/openapi/v3/{prefix}?hash={}", all.len());
        paths.insert(prefix, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// The document of version 3 for one version of a group.
pub(crate) fn of(all: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let parameters = PARAMETERS.map(parameter);
    let mut paths = Map::new();
    for resource in all.iter().filter(|resource| resource.group == group && resource.version == version) {
        let operation = json!({
            "parameters": parameters, "responses": {"200": {"description": "OK"}}, KIND: kind(resource),
        });
        paths.insert(path(resource), json!({"patch": operation}));
    }
    if paths.is_empty() {
        return None;
    }
    let info = json!({"title": "Kubernetes emulator", "version": format!("v1.{MINOR}.0")});
    Some(json!({"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": {}}}))
}

/// The document of version 2, by the field numbers of gnostic's `OpenAPIv2.proto`.
pub(crate) fn version_2(all: &[Arc<Resource>]) -> Vec<u8> {
    let mut paths = Vec::new();
    for resource in all {
        let yaml = field(2, kind(resource).to_string().as_bytes());
        let extension = [field(1, KIND.as_bytes()), field(2, &yaml)].concat();
        let mut operation = Vec::new();
        for name in PARAMETERS {
            let query = [field(2, b"query"), field(4, name.as_bytes())].concat();
            operation.extend(field(8, &field(1, &field(2, &field(3, &query)))));
        }
        operation.extend(field(13, &extension));
        let item = [field(1, path(resource).as_bytes()), field(2, &field(8, &operation))].concat();
        paths.extend(field(2, &item));
    }
    let info = [field(1, b"Kubernetes emulator"), field(2, b"v1")].concat();
    [field(1, b"2.0"), field(2, &info), field(8, &paths)].concat()
}

/// A field of protobuf with bytes in it.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length > 0x7f {
        bytes.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap_or_default());
    bytes.extend(content);
    bytes
}

fn kind(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn path(resource: &Resource) -> String {
    let place = if resource.is_namespaced() { "namespaces/{namespace}/" } else { "" };
    format!("/{}/{place}{}/{{name}}", prefix(resource), resource.plural)
}

fn prefix(resource: &Resource) -> String {
    if resource.group.is_empty() {
        format!("api/{}", resource.version)
    } else {
        format!("apis/{}/{}", resource.group, resource.version)
    }
}
