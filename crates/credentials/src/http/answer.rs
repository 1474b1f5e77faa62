//! Answers: JSON, problems, AMS's errors.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use registry_account::name::CredentialId;
use serde_json::{Value, json};

use super::problem::{Code, Problem};
use super::rate::RateLimitStatus;

/// An answer of success. It may hold passwords, and is never printed.
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The document; none with a status that has none.
    pub(crate) document: Option<Value>,
    /// The credentials whose passwords it holds.
    pub(crate) revealed: Vec<CredentialId>,
    /// The place of what was created.
    pub(crate) location: Option<String>,
}

/// The surroundings of a refusal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'a> {
    /// The path of the request.
    pub(crate) path: &'a str,
    /// The id of the request.
    pub(crate) trace_id: &'a str,
    /// The time.
    pub(crate) now: Timestamp,
    /// The methods of the path.
    pub(crate) methods: &'a [Method],
}

// === impl Answer ===

impl Answer {
    /// Returns an answer with a document without passwords.
    pub(crate) fn json(status: StatusCode, document: Value) -> Self {
        Self { status, document: Some(document), revealed: Vec::new(), location: None }
    }

    /// Returns the answer without content.
    pub(crate) fn empty() -> Self {
        Self { status: StatusCode::NO_CONTENT, document: None, revealed: Vec::new(), location: None }
    }

    /// Returns it as a response.
    pub(crate) fn into_response(self) -> Response {
        let mut response = match self.document {
            Some(document) => of_json(self.status, "application/json", &document),
            None => with_status(self.status),
        };
        if let Some(location) = self.location.and_then(|location| HeaderValue::from_str(&location).ok()) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

/// Returns a problem as a response.
pub(crate) fn problem(problem: &Problem, refused: &Refused<'_>) -> Response {
    let status = problem.code.status();
    let mut document = json!({
        "type": problem.code.uri(),
        "title": problem.code.title(),
        "status": status.as_u16(),
        "detail": problem.detail,
        "instance": refused.path,
        "code": problem.code.as_str(),
        "timestamp": refused.now.to_string(),
        "trace_id": refused.trace_id,
    });
    if let (false, Some(members)) = (problem.errors.is_empty(), document.as_object_mut()) {
        members.insert("errors".to_owned(), json!(problem.errors));
    }
    with_headers(of_json(status, "application/problem+json", &document), problem, refused)
}

/// Returns a problem as AMS writes errors.
pub(crate) fn ams_error(problem: &Problem, refused: &Refused<'_>) -> Response {
    let status = problem.code.status();
    let number = match status.as_u16() {
        401 => 15,
        403 => 11,
        404 => 7,
        409 => 6,
        429 => 429,
        400..=499 => 21,
        _ => 9,
    };
    let document = json!({
        "kind": "Error",
        "id": number.to_string(),
        "href": format!("/api/accounts_mgmt/v1/errors/{number}"),
        "code": format!("ACCT-MGMT-{number}"),
        "reason": problem.detail,
        "details": problem.errors,
        "operation_id": refused.trace_id,
    });
    with_headers(of_json(status, "application/json", &document), problem, refused)
}

/// Adds the rate limit of the caller to a response.
pub(crate) fn add_rate_limit(response: &mut Response, status: &RateLimitStatus) {
    let RateLimitStatus { limit, remaining, reset, .. } = *status;
    for (name, value) in [
        ("x-ratelimit-limit", u64::from(limit)),
        ("x-ratelimit-remaining", u64::from(remaining)),
        ("x-ratelimit-reset", reset),
    ] {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from(value));
    }
}

fn with_headers(mut response: Response, problem: &Problem, refused: &Refused<'_>) -> Response {
    let headers = response.headers_mut();
    if let Some(seconds) = problem.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if problem.code == Code::Unauthenticated {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if problem.code == Code::Method {
        let names: Vec<&str> = refused.methods.iter().map(Method::as_str).collect();
        headers.extend(HeaderValue::from_str(&names.join(", ")).ok().map(|names| (header::ALLOW, names)));
    }
    response
}

fn of_json(status: StatusCode, content_type: &'static str, document: &Value) -> Response {
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn with_status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
