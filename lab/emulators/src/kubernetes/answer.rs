//! Answers to calls.

use axum::body::Body;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::status::Status;

/// The media type of `OpenAPI` documents of version 2 in protobuf.
const OPEN_API_V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// An answer to a call.
#[derive(Debug)]
pub(crate) enum Answer {
    Document {
        code: u16,
        value: Value,
        /// Warnings, which clients show to people.
        warnings: Vec<String>,
    },
    Text(Vec<u8>),
    /// Nothing is served on the path, and no API could be.
    NoPath,
    /// The one document that is asked for as protobuf only.
    Protobuf(Vec<u8>),
    /// A watch, which goes on.
    Stream(Body),
}

impl Answer {
    pub(crate) fn ok(value: Value) -> Self {
        Self::Document { code: 200, value, warnings: Vec::new() }
    }

    /// The same with warnings.
    pub(crate) fn warning(mut self, more: Vec<String>) -> Self {
        if let Self::Document { warnings, .. } = &mut self {
            warnings.extend(more);
        }
        self
    }

    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::Document { code, .. } => *code,
            Self::NoPath => 404,
            Self::Text(_) | Self::Protobuf(_) | Self::Stream(_) => 200,
        }
    }
}

pub(crate) fn response(answer: Result<Answer, Status>) -> Response<Body> {
    match answer {
        Ok(Answer::Document { code, value, warnings }) => {
            let mut response = document(code, &value);
            let warnings = warnings.iter().filter_map(|text| HeaderValue::from_str(&format!("299 - {text:?}")).ok());
            response.headers_mut().extend(warnings.map(|warning| (WARNING, warning)));
            response
        }
        Ok(Answer::NoPath) => {
            let mut response = typed(Body::from("404 page not found\n"), "text/plain; charset=utf-8");
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
        Ok(Answer::Text(text)) => typed(Body::from(text), "text/plain; charset=utf-8"),
        Ok(Answer::Protobuf(document)) => typed(Body::from(document), OPEN_API_V2),
        Ok(Answer::Stream(body)) => typed(body, "application/json"),
        Err(status) => {
            let mut response = document(status.code, &status.json());
            if let Some(seconds) = status.retry_seconds() {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            response
        }
    }
}

fn document(code: u16, value: &Value) -> Response<Body> {
    let mut response = typed(Body::from(format!("{value}\n")), "application/json");
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn typed(body: Body, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
