//! What happens around every request: an id, a log line, metrics, authentication, bounds.

use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::BytesMut;
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt as _;
use tokio::time::Instant;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate as _};
use uuid::Uuid;

use super::handlers::{self, Asked};
use super::query::Parameters;
use super::route::{Route, route};
use super::{Api, answer};
use crate::excerpt::excerpt;
use crate::problem::{Code, Problem, Rejection};

/// The API as a service for a listener.
pub fn router(api: Api) -> Router {
    // A stream's lines must not wait in a compressor.
    let compress = DefaultPredicate::new().and(NotForContentType::const_new("application/x-ndjson"));
    Router::new().fallback(gate).with_state(api).layer(CompressionLayer::new().compress_when(compress))
}

async fn gate(State(api): State<Api>, request: Request) -> Response {
    let id = Uuid::now_v7().to_string();
    let began = Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(excerpt);
    let route = route(uri.path(), api.service().registry());
    let template = route.as_ref().map_or_else(|| "unknown".to_owned(), Route::template);
    let answered = AssertUnwindSafe(answer_route(&api, request, route)).catch_unwind().await;
    let (mut response, rejection) = match answered {
        Ok(Ok(response)) => (response, None),
        Ok(Err(rejection)) => (answer::problem(&rejection.problem, uri.path(), &id, api.now()), Some(rejection)),
        Err(_panic) => {
            let problem = Problem::new(Code::Internal, "an internal error; the server's log says more");
            (answer::problem(&problem, uri.path(), &id, api.now()), Some(problem.into()))
        }
    };
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert("x-request-id", id);
    }
    headers.append(header::VARY, HeaderValue::from_static("Authorization"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (status, duration) = (response.status(), began.elapsed());
    api.parts.metrics.answered(&method, &template, status, duration);
    tell(
        &Told { id: &id, method: &method, path: uri.path(), status, parent: parent.as_deref() },
        duration,
        rejection.as_ref(),
    );
    response
}

/// What a request's log line holds. Parameters stay out: people search for what is private.
struct Told<'a> {
    id: &'a str,
    method: &'a Method,
    path: &'a str,
    status: StatusCode,
    parent: Option<&'a str>,
}

fn tell(told: &Told<'_>, duration: std::time::Duration, rejection: Option<&Rejection>) {
    let Told { id, method, path, status, parent } = told;
    let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let (method, path, status) = (method.as_str(), excerpt(path), status.as_u16());
    let traceparent = parent.unwrap_or_default();
    match rejection {
        Some(rejection) if status >= 500 => {
            let cause = rejection.cause();
            tracing::error!(
                operation = "request",
                request_id = id,
                method,
                path,
                status,
                duration_ms,
                cause,
                traceparent,
                "a request failed"
            );
        }
        _ => tracing::info!(
            operation = "request",
            request_id = id,
            method,
            path,
            status,
            duration_ms,
            traceparent,
            "answered"
        ),
    }
}

async fn answer_route(api: &Api, request: Request, route: Option<Route<'_>>) -> Result<Response, Rejection> {
    let Some(route) = route else {
        return Err(Problem::new(Code::NoEndpoint, "nothing is served at this path").into());
    };
    if !route.allowed().contains(request.method()) {
        return Ok(answer::wrong_method(route.allowed()));
    }
    if !route.is_public() && !api.service().store().is_usable() {
        let detail = "the database is not there yet, or its schema is not up to date: try again";
        return Err(Problem::new(Code::Unavailable, detail).into());
    }
    let (head, body) = request.into_parts();
    let writes = !matches!(head.method, Method::GET | Method::HEAD);
    let reports = matches!(route, Route::Statuses(_));
    let caller = if route.is_public() {
        crate::service::Caller::default()
    } else {
        api.parts.authentication.admit(&head.headers, writes, reports, api.now()).await?
    };
    let body = if writes { read(api, body).await? } else { Bytes::new() };
    let asked = Asked {
        method: &head.method,
        route,
        parameters: Parameters::parse(head.uri.query()),
        headers: &head.headers,
        body: &body,
        caller,
    };
    let answered = tokio::time::timeout(api.parts.limits.request, handlers::answer(api, asked)).await;
    answered.unwrap_or_else(|_elapsed| Err(Problem::new(Code::Timeout, "it took too long: try again").into()))
}

/// The bytes of a body; none if there are more than `limit`. What is too much is read for a while and thrown away: a
/// client that is cut off in the middle of its sentence does not hear the answer.
async fn take(mut body: Body, limit: usize) -> Result<Option<Bytes>, axum::Error> {
    const PATIENCE: usize = 16;
    let mut taken = BytesMut::new();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        size += data.len();
        if size <= limit {
            taken.extend_from_slice(&data);
        } else if size > limit.saturating_mul(PATIENCE) {
            break;
        } else {
            taken.clear();
        }
    }
    Ok((size <= limit).then(|| taken.freeze()))
}

/// A request's body, within bounds of size and time.
async fn read(api: &Api, body: Body) -> Result<Bytes, Rejection> {
    let limits = &api.parts.limits;
    match tokio::time::timeout(limits.read, take(body, limits.body)).await {
        Ok(Ok(Some(body))) => Ok(body),
        Ok(Ok(None)) => {
            Err(Problem::new(Code::TooLarge, format!("the request body is larger than {} bytes", limits.body)).into())
        }
        Ok(Err(_broken)) => Err(Problem::malformed("the request body broke off").into()),
        Err(_elapsed) => {
            let slow = Problem::new(Code::Timeout, "the request body did not arrive in time");
            Err(slow.with_status(StatusCode::REQUEST_TIMEOUT).into())
        }
    }
}
