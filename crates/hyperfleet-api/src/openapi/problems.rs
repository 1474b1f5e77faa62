//! The problem responses: one per status, with its codes.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::reference::{component, schema};
use super::superset::beyond;
use crate::problem::Code;

/// The statuses of problems, each with its codes if they differ from the codes of that status.
const STATUSES: &[(StatusCode, &[Code])] = &[
    (StatusCode::BAD_REQUEST, &[]),
    (StatusCode::UNAUTHORIZED, &[]),
    (StatusCode::FORBIDDEN, &[]),
    (StatusCode::NOT_FOUND, &[]),
    (StatusCode::REQUEST_TIMEOUT, &[Code::Timeout]),
    (StatusCode::CONFLICT, &[]),
    (StatusCode::GONE, &[]),
    (StatusCode::PRECONDITION_FAILED, &[]),
    (StatusCode::PAYLOAD_TOO_LARGE, &[]),
    (StatusCode::UNPROCESSABLE_ENTITY, &[Code::Validation]),
    (StatusCode::INTERNAL_SERVER_ERROR, &[]),
    (StatusCode::SERVICE_UNAVAILABLE, &[]),
    (StatusCode::GATEWAY_TIMEOUT, &[]),
];

/// The statuses that HyperFleet's own server never answers with.
const BEYOND: [StatusCode; 2] = [StatusCode::GONE, StatusCode::PRECONDITION_FAILED];

/// The description of a status that its code does not describe.
fn meaning(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::REQUEST_TIMEOUT => Some("The request body did not arrive in time."),
        StatusCode::UNPROCESSABLE_ENTITY => Some("A kind with a parent can only be created below an owner."),
        _ => None,
    }
}

/// All problem responses.
pub(super) fn responses() -> Map<String, Value> {
    let response = |(status, further): &(StatusCode, &[Code])| {
        let codes: Vec<Code> = Code::ALL.iter().copied().filter(|code| code.status() == *status).collect();
        let codes = if further.is_empty() { codes } else { further.to_vec() };
        let lines = codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.meaning()));
        let description = meaning(*status).map_or_else(|| lines.collect::<Vec<_>>().join("\n\n"), str::to_owned);
        let examples: Map<String, Value> =
            codes.iter().map(|code| (code.as_str().to_owned(), json!({ "value": example(*code, *status) }))).collect();
        let media = json!({ "schema": schema("Problem"), "examples": examples });
        let value = json!({
            "description": description,
            "headers": headers_of(*status),
            "content": { "application/problem+json": media },
        });
        (name(*status), if BEYOND.contains(status) { beyond(value) } else { value })
    };
    STATUSES.iter().map(response).collect()
}

/// A reference to the problem response of a status.
pub(super) fn response(status: StatusCode) -> Value {
    component("responses", &name(status))
}

/// The header components.
pub(super) fn headers() -> Value {
    let seconds = json!({ "type": "integer", "minimum": 0 });
    json!({
        "RequestId": {
            "description": "The id of the request in the server's log.",
            "required": true,
            "schema": { "type": "string", "format": "uuid" },
        },
        "RetryAfter": {
            "description": "Seconds until the next try.",
            "required": true,
            "schema": seconds,
        },
        "Authenticate": {
            "description": "The authentication scheme.",
            "required": true,
            "schema": { "type": "string", "enum": ["Bearer"] },
        },
    })
}

/// The headers of every response.
pub(super) fn common_headers() -> Value {
    json!({ "X-Request-ID": component("headers", "RequestId") })
}

fn headers_of(status: StatusCode) -> Value {
    let request_id = component("headers", "RequestId");
    match status {
        StatusCode::UNAUTHORIZED => {
            json!({ "X-Request-ID": request_id, "WWW-Authenticate": component("headers", "Authenticate") })
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            json!({ "X-Request-ID": request_id, "Retry-After": component("headers", "RetryAfter") })
        }
        _ => json!({ "X-Request-ID": request_id }),
    }
}

fn name(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or_default().replace(' ', "")
}

fn example(code: Code, status: StatusCode) -> Value {
    json!({
        "type": code.uri(),
        "title": code.title(),
        "status": status.as_u16(),
        "detail": code.meaning(),
        "instance": "/api/hyperfleet/v1/clusters",
        "code": code.as_str(),
        "timestamp": "2026-01-31T12:00:00.5Z",
        "trace_id": "019c14e2-7ab0-7cc3-98c4-dc0c0c07398f",
    })
}
