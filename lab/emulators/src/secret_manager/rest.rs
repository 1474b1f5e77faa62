//! The REST wire: paths, query parameters and JSON bodies become requests; answers become JSON.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Query;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response as HttpResponse, StatusCode};
use serde_json::Value;

use super::engine::{Asked, Engine, Silence};
use super::settings::Wire;
use super::status::{Code, Status};
use crate::connections::Connection;

mod bind;
mod route;

use bind::Parameters;

/// More than the largest payload in base64 with everything around it.
const BODY_BYTES_MAXIMUM: usize = 1024 * 1024;

/// Answers one call.
pub(crate) async fn serve(
    engine: Arc<Engine>,
    connection: Connection,
    request: http::Request<Body>,
) -> HttpResponse<Body> {
    let (head, body) = request.into_parts();
    let Some(routed) = route::route(&head.method, head.uri.path()) else {
        let path = head.uri.path();
        let message = format!("Method not found: there is no {} {path} in this API.", head.method);
        return refusal(&Status::not_found(message));
    };
    let query = Query::<Vec<(String, String)>>::try_from_uri(&head.uri).map(|Query(query)| query);
    let parameters = query.map_err(|_| Status::invalid("The query cannot be read.")).and_then(Parameters::new);
    let numbers = parameters.as_ref().is_ok_and(|parameters| parameters.enums_as_numbers);
    let body = to_bytes(body, BODY_BYTES_MAXIMUM).await;
    let body = body.map_err(|_| {
        Status::invalid(format!("The request body cannot be read, or is larger than {BODY_BYTES_MAXIMUM} bytes."))
    });
    let request = parameters.and_then(|parameters| bind::bind(&routed, parameters, &body?));
    let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (method, resource) = (routed.method, routed.resource);
    let answer = engine.call(Asked { wire: Wire::Rest, method, resource, authorization, request }).await;
    match answer {
        Ok(Ok(response)) => document(200, &response.json(numbers)),
        Ok(Err(status)) => refusal(&status),
        Err(Silence::Cut) => cut(&connection),
        Err(Silence::Hang) => {
            engine.stopping.cancelled().await;
            cut(&connection)
        }
    }
}

/// The response is never written: its connection is gone before.
fn cut(connection: &Connection) -> HttpResponse<Body> {
    connection.cut();
    HttpResponse::new(Body::empty())
}

fn refusal(status: &Status) -> HttpResponse<Body> {
    let mut response = document(status.code.http(), &status.json());
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status.code == Code::Unauthenticated {
        let challenge = HeaderValue::from_static("Bearer realm=\"https://accounts.google.com/\"");
        response.headers_mut().insert(http::header::WWW_AUTHENTICATE, challenge);
    }
    response
}

fn document(code: u16, value: &Value) -> HttpResponse<Body> {
    let mut response = HttpResponse::new(Body::from(format!("{value:#}\n")));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=UTF-8"));
    response
}
