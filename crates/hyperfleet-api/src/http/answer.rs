//! Answers: JSON, problems, pages.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::problem::Problem;

/// JSON with that status.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => with_type(status, "application/json", bytes.into()),
        // Maps with keys of text can be serialised; there is nothing else here.
        Err(_impossible) => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// JSON that is text already.
pub(super) fn json_text(status: StatusCode, text: String) -> Response {
    with_type(status, "application/json", text.into())
}

/// No content.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A page or document.
pub(super) fn with_type(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A list's envelope.
pub(super) fn page(page: i64, total: i64, items: &[Value]) -> Response {
    json(StatusCode::OK, &json!({ "page": page, "size": items.len(), "total": total, "items": items }))
}

/// A list's envelope around items that are JSON text already.
pub(super) fn page_of_texts(page: i64, total: i64, items: &[String]) -> Response {
    let size = items.len();
    let items = items.join(",");
    json_text(StatusCode::OK, format!("{{\"page\":{page},\"size\":{size},\"total\":{total},\"items\":[{items}]}}"))
}

/// A method that the path does not answer; in plain text, as the contract has it.
pub(super) fn wrong_method(allowed: &[Method]) -> Response {
    let names: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    let body = Body::from("Method Not Allowed\n");
    let mut response = with_type(StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", body);
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        response.headers_mut().insert(header::ALLOW, names);
    }
    response
}

/// A problem, as RFC 9457 writes it.
pub(super) fn problem(problem: &Problem, path: &str, trace_id: &str, now: Timestamp) -> Response {
    let status = problem.status();
    let mut body = json!({
        "type": problem.code.uri(),
        "title": problem.code.title(),
        "status": status.as_u16(),
        "detail": problem.detail,
        "instance": path,
        "code": problem.code.as_str(),
        "timestamp": now,
        "trace_id": trace_id,
    });
    if let (false, Some(body)) = (problem.errors.is_empty(), body.as_object_mut()) {
        body.insert("errors".to_owned(), json!(problem.errors));
    }
    let mut response = with_type(status, "application/problem+json", Body::from(body.to_string()));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
