//! The `OpenAPI` document of the HTTP API.

mod schemas;

use serde_json::{Map, Value, json};

use schemas::{merged, reference};

const ABOUT: &str = "The registry credentials of clusters, over the ledger of the credentials service.

**Callers** send a bearer token of the Kubernetes cluster that the service runs in, for its audience (`server.audience`). Roles of that cluster say what \
they may do: the API group is `hyperfleet.io`, the resource is a part of `clusters`, its name the id of a cluster. Passwords need `get` on \
`clusters/pull-secrets/content` besides.

**Problems** follow RFC 9457. Decide by `status` or `code`. `trace_id` is the `X-Request-ID` of the answer and of the service's log. Paths of AMS answer \
with AMS's errors.

**Limits** are of each caller and replica: `X-RateLimit-Limit`, `-Remaining`, `-Reset` (seconds), and `Retry-After` with 429.";

/// Returns the document.
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Registry credentials",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "Apache 2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "The server of this document" }],
        "security": [{ "bearer": [] }],
        "paths": paths(),
        "components": {
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token that Kubernetes' TokenReview accepts for the audience of the service.",
            }},
            "schemas": schemas::all(),
        },
    })
}

fn paths() -> Value {
    let cluster =
        parameter("path", "cluster_id", "The id of the cluster: a DNS label, such as `cls-abc123` or a UUID.");
    merged([pull_secrets(&cluster), rotations(&cluster), ams()])
}

fn pull_secrets(cluster: &Value) -> Value {
    json!({
        "/v1/openapi": { "get": {
            "operationId": "getOpenApi",
            "summary": "This document",
            "security": [],
            "responses": { "200": { "description": "The document", "content": { "application/json": {} } } },
        }},
        "/v1/clusters/{cluster_id}/pull-secrets": {
            "parameters": [cluster],
            "get": operation(
                "getPullSecrets",
                "The credentials of a cluster; with `pull_secret` if all are usable and the caller may read it (`get` on \
                 `clusters/pull-secrets`)",
                None,
                &[("200", "The credentials", Some("PullSecrets")), ("202", "One of them is not usable yet", Some("PullSecrets"))],
            ),
            "post": operation(
                "createPullSecrets",
                "Have credentials made where there are none; the same request again changes nothing (`create` on `clusters/pull-secrets`)",
                Some("NewPullSecrets"),
                &[("200", "All are usable", Some("PullSecrets")), ("202", "One of them is not usable yet: ask again", Some("PullSecrets"))],
            ),
            "delete": operation(
                "deletePullSecrets",
                "Have the credentials retired once nothing uses them (`delete` on `clusters/pull-secrets`)",
                None,
                &[("204", "The retirement is ordered", None)],
            ),
        },
    })
}

fn rotations(cluster: &Value) -> Value {
    json!({
        "/v1/clusters/{cluster_id}/rotations": {
            "parameters": [cluster],
            "get": listed_rotations(),
            "post": operation(
                "createRotation",
                "Replace the credentials (`create` on `clusters/pull-secrets/rotations`; a forced one also `delete` on \
                 `clusters/pull-secrets`)",
                Some("NewRotation"),
                &[
                    ("200", "Another person's forced one is approved, or the same person's still waits", Some("Rotation")),
                    ("201", "It has begun; `Location` names it", Some("Rotation")),
                ],
            ),
        },
        "/v1/clusters/{cluster_id}/rotations/{rotation_id}": {
            "parameters": [cluster, parameter("path", "rotation_id", "The id of the rotation.")],
            "get": operation(
                "getRotation",
                "One rotation (`get` on `clusters/pull-secrets/rotations`)",
                None,
                &[("200", "The rotation", Some("Rotation"))],
            ),
        },
    })
}

fn ams() -> Value {
    json!({
        "/api/accounts_mgmt/v1/access_token": { "post": operation(
            "createAmsAccessToken",
            "AMS's path for the pull secret of a user: refused with 400 unless the body names a cluster, as below",
            Some("AmsPullSecretRequest"),
            &[("201", "The pull secret", Some("AmsPullSecret"))],
        )},
        "/api/accounts_mgmt/v1/pull_secrets": { "post": operation(
            "createAmsPullSecret",
            "The pull secret of a cluster in AMS's form; 503 with `Retry-After` while it is being made (`create` on `clusters/pull-secrets` and \
             `get` on `clusters/pull-secrets/content`)",
            Some("AmsPullSecretRequest"),
            &[("201", "The pull secret", Some("AmsPullSecret"))],
        )},
        "/api/accounts_mgmt/v1/pull_secrets/{external_resource_id}": {
            "parameters": [parameter("path", "external_resource_id", "The id of the cluster.")],
            "delete": operation(
                "deleteAmsPullSecret",
                "As DELETE of `pull-secrets`",
                None,
                &[("204", "The retirement is ordered", None)],
            ),
        },
    })
}

fn parameter(place: &str, name: &str, description: &str) -> Value {
    json!({ "name": name, "in": place, "required": place == "path", "description": description, "schema": { "type": "string" } })
}

fn listed_rotations() -> Value {
    let mut list = operation(
        "listRotations",
        "The rotations of the credentials, newest first (`list` on `clusters/pull-secrets/rotations`)",
        None,
        &[("200", "A page", Some("Rotations"))],
    );
    if let Some(members) = list.as_object_mut() {
        let parameters = [
            parameter("query", "status", "Those with this status."),
            parameter("query", "since", "Those that began then or later (RFC 3339)."),
            parameter("query", "cursor", "`next_cursor` of the page before."),
            parameter("query", "limit", "The most of a page: 1 to 100, 50 by default."),
        ];
        members.insert("parameters".to_owned(), json!(parameters));
    }
    list
}

fn operation(id: &str, summary: &str, body: Option<&str>, answers: &[(&str, &str, Option<&str>)]) -> Value {
    let mut responses = Map::new();
    for (status, description, schema) in answers {
        let content = schema.map(|schema| json!({ "application/json": { "schema": reference(schema) } }));
        responses.insert(
            (*status).to_owned(),
            json!({ "description": description, "content": content.unwrap_or(json!({})) }),
        );
    }
    let is_of_ams = id.contains("Ams");
    let (media_type, schema) =
        if is_of_ams { ("application/json", "AmsError") } else { ("application/problem+json", "Problem") };
    let content = json!({ media_type: { "schema": reference(schema) } });
    responses
        .insert("default".to_owned(), json!({ "description": "The request was not carried out", "content": content }));
    let mut operation = json!({ "operationId": id, "summary": summary, "responses": responses });
    if let (Some(body), Some(members)) = (body, operation.as_object_mut()) {
        let content = json!({ "application/json": { "schema": reference(body) } });
        let is_required = body == "NewRotation";
        members.insert("requestBody".to_owned(), json!({ "required": is_required, "content": content }));
    }
    operation
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::route::route;

    /// Every operation of the document is served, and every reference leads to a schema.
    #[test]
    fn the_document_is_that_of_the_routes() {
        let document = document();
        let mut operations = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            let plain = path.replace(['{', '}'], "");
            let route = route(&plain).unwrap();
            assert_eq!(route.template(), path);
            let described: BTreeSet<String> = item
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| *key != "parameters")
                .map(|key| key.to_uppercase())
                .collect();
            let served: BTreeSet<String> = route.methods().iter().map(ToString::to_string).collect();
            assert_eq!(described, served, "{path}");
            operations += served.len();
        }
        assert_eq!(operations, 10);
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
