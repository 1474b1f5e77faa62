//! Responses: JSON, problems, pages.

use std::fmt::Write as _;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::document::ProblemDocument;
use crate::problem::Problem;

/// A JSON response.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => with_type(status, "application/json", bytes.into()),
        // Values with string keys always serialise.
        Err(_impossible) => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// A JSON response from serialised text.
pub(super) fn json_text(status: StatusCode, text: String) -> Response {
    with_type(status, "application/json", text.into())
}

/// A response without content.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A response with that content type.
pub(super) fn with_type(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A page of a list.
pub(super) fn page(page: i64, total: i64, items: &[Value]) -> Response {
    json(StatusCode::OK, &json!({ "page": page, "size": items.len(), "total": total, "items": items }))
}

/// A page of a list from serialised items.
pub(super) fn page_of_texts(page: i64, total: i64, items: &[String]) -> Response {
    const REST: usize = 128;
    // One allocation, as a page may be large.
    let mut text = String::with_capacity(items.iter().map(|item| item.len() + 1).sum::<usize>() + REST);
    let size = items.len();
    // Writing to a string does not fail.
    let _written = write!(text, "{{\"page\":{page},\"size\":{size},\"total\":{total},\"items\":[");
    for (index, item) in items.iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "," });
        text.push_str(item);
    }
    text.push_str("]}");
    json_text(StatusCode::OK, text)
}

/// The 405 for a method that the path does not support; in plain text, as HyperFleet's API responds.
pub(super) fn method_not_allowed(allowed: &[Method]) -> Response {
    let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    let body = Body::from("Method Not Allowed\n");
    let mut response = with_type(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", body);
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        response.headers_mut().insert(header::ALLOW, names);
    }
    response
}

/// A problem response (RFC 9457).
pub(super) fn problem(problem: &Problem, path: &str, trace_id: &str, now: Timestamp) -> Response {
    let status = problem.status();
    let document = ProblemDocument {
        kind: problem.code.uri(),
        title: problem.code.title(),
        status: status.as_u16(),
        detail: &problem.detail,
        instance: path,
        code: problem.code.as_str(),
        timestamp: now,
        trace_id,
        errors: &problem.errors,
    };
    let mut response = json(status, &document);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
