//! The steps around every request: id, access log, metrics, authentication, limits.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use daemon::serve::{Peer, read_limited};
use futures_util::FutureExt as _;
use http::{HeaderValue, Method, StatusCode, header};
use tokio::time::Instant;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate as _};
use tracing::Instrument as _;
use uuid::Uuid;

use super::audit::Call;
use super::handlers::{self, AuthenticatedRequest};
use super::head::Head;
use super::query::Parameters;
use super::route::{Route, route};
use super::{Api, access, digests, response, trace};
use crate::excerpt::excerpt;
use crate::problem::{Code, Problem, Rejection};
use crate::service::Caller;

/// Creates the router that serves the API.
pub fn router(api: Api) -> Router {
    // A compressor would buffer the lines of a change stream.
    let compress = DefaultPredicate::new().and(NotForContentType::const_new("application/x-ndjson"));
    Router::new().fallback(handle).with_state(api).layer(CompressionLayer::new().compress_when(compress))
}

async fn handle(State(api): State<Api>, request: Request) -> Response {
    let id = Uuid::now_v7().to_string();
    let uri = request.uri().clone();
    let route = route(uri.path(), api.service().registry());
    let span = trace::span(&request, route.as_ref(), &id);
    let response = answer(&api, request, route, &id).instrument(span.clone()).await;
    trace::answered(&span, response.status());
    response
}

async fn answer(api: &Api, request: Request, route: Option<Route<'_>>, id: &str) -> Response {
    let started = Instant::now();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let parent = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(excerpt);
    let template = trace::template(route.as_ref());
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    let mut caller = None;
    let context = Context { request_id: id, peer, caller: &mut caller };
    let handled = AssertUnwindSafe(handle_route(api, request, route.clone(), context)).catch_unwind();
    // All of it: also authentication can wait for another service.
    let handled = tokio::time::timeout(api.parts.limits.request, handled).await;
    let timed_out = || Problem::new(Code::Timeout, "the request timed out: try again").into();
    let (mut response, rejection) = match handled.unwrap_or_else(|_elapsed| Ok(Err(timed_out()))) {
        Ok(Ok(response)) => (response, None),
        Ok(Err(rejection)) => (response::problem(&rejection.problem, uri.path(), id, api.now()), Some(rejection)),
        Err(_panic) => {
            let problem = Problem::new(Code::Internal, "an internal error; the server's log says more");
            (response::problem(&problem, uri.path(), id, api.now()), Some(problem.into()))
        }
    };
    if let Some(Rejection { problem, .. }) = rejection.as_ref().filter(|rejection| is_denial(&rejection.problem)) {
        let path = excerpt(uri.path());
        let call = Call {
            chain: &api.parts.audit,
            request_id: id,
            method: method.as_str(),
            path: &path,
            peer,
            caller: caller.as_ref(),
        };
        audit_denied(api, call, route.as_ref(), &problem.detail).await;
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert("x-request-id", id);
    }
    headers.append(header::VARY, HeaderValue::from_static("Authorization"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (status, duration) = (response.status(), started.elapsed());
    api.parts.metrics.answered(&method, &template, status, duration);
    let entry = AccessLogEntry { id, method: &method, path: uri.path(), status, parent: parent.as_deref(), duration };
    entry.log(rejection.as_ref());
    response
}

/// A line of the access log. Query parameters are left out, since searches may contain private data.
struct AccessLogEntry<'a> {
    id: &'a str,
    method: &'a Method,
    path: &'a str,
    status: StatusCode,
    /// The `traceparent` header.
    parent: Option<&'a str>,
    duration: Duration,
}

impl AccessLogEntry<'_> {
    fn log(&self, rejection: Option<&Rejection>) {
        let Self { id, method, path, status, parent, duration } = self;
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
                    "request failed"
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
                "request handled"
            ),
        }
    }
}

/// The surroundings of a request that is handled.
struct Context<'a> {
    request_id: &'a str,
    peer: Option<IpAddr>,
    /// Set as soon as the caller is known.
    caller: &'a mut Option<Caller>,
}

fn is_denial(problem: &Problem) -> bool {
    matches!(
        problem.code,
        Code::PermissionDenied | Code::Unauthenticated | Code::InvalidCredentials | Code::InvalidToken
    )
}

/// Records a denied call, with the resource if there is one.
async fn audit_denied(api: &Api, call: Call<'_>, route: Option<&Route<'_>>, because: &str) {
    let denied = call.deny(because);
    let resource = match (route.and_then(Route::address), call.caller) {
        (Some(address), Some(caller)) => {
            let found = api.service().get(address, &caller.reach);
            tokio::time::timeout(api.parts.limits.request, found).await.ok().and_then(Result::ok)
        }
        _ => None,
    };
    denied.about(resource.as_ref());
}

async fn handle_route(
    api: &Api,
    request: Request,
    route: Option<Route<'_>>,
    context: Context<'_>,
) -> Result<Response, Rejection> {
    let Some(route) = route else {
        return Err(Problem::new(Code::NoEndpoint, "nothing is served at this path").into());
    };
    if !route.allowed().contains(request.method()) {
        return Ok(response::method_not_allowed(route.allowed()));
    }
    if !route.is_public() && !api.service().store().is_usable() {
        let detail = "the database is not reachable or its schema is not up to date: try again";
        return Err(Problem::new(Code::Unavailable, detail).into());
    }
    let (head, body) = request.into_parts();
    let writes = !matches!(head.method, Method::GET | Method::HEAD);
    let reports = matches!(route, Route::Statuses(_));
    let parameters = Parameters::parse(head.uri.query());
    let Context { request_id, peer, caller } = context;
    let registry = api.service().registry();
    let subject = access::subject(registry, &route, &parameters);
    let caller = if route.is_public() {
        caller.insert(Caller::default())
    } else {
        let authentication = &api.parts.authentication;
        let of = Head { headers: &head.headers, peer, writes, reports };
        let caller = caller.insert(authentication.authenticate(of, api.now()).await?);
        authentication.admit(caller, of, subject)?;
        access::check(&caller.permissions, registry, &route, &head.method, &parameters)?;
        caller
    };
    let shows_digests = route.is_public() || caller.permissions.pull_secrets(subject).reads;
    let body = if writes { read(api, body).await? } else { Bytes::new() };
    let path = excerpt(head.uri.path());
    let call = Call {
        chain: &api.parts.audit,
        request_id,
        method: head.method.as_str(),
        path: &path,
        peer,
        caller: Some(&*caller),
    };
    let request = AuthenticatedRequest {
        call,
        method: &head.method,
        route,
        parameters,
        headers: &head.headers,
        body: &body,
        caller,
    };
    let response = handlers::handle(api, request).await?;
    Ok(if shows_digests { response } else { digests::hide(response) })
}

/// Reads a request's body within the limits of size and time.
async fn read(api: &Api, body: Body) -> Result<Bytes, Rejection> {
    let limits = &api.parts.limits;
    match tokio::time::timeout(limits.read, read_limited(body, limits.body)).await {
        Ok(Ok(Some(body))) => Ok(body),
        Ok(Ok(None)) => {
            Err(Problem::new(Code::TooLarge, format!("the request body is larger than {} bytes", limits.body)).into())
        }
        Ok(Err(_broken)) => Err(Problem::malformed("the request body ended early").into()),
        Err(_elapsed) => {
            let slow = Problem::new(Code::Timeout, "the request body did not arrive in time");
            Err(slow.with_status(StatusCode::REQUEST_TIMEOUT).into())
        }
    }
}
