//! The steps around every request: identity, rate, body, permissions, audit, log, metrics.

use std::net::IpAddr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::Response;
use daemon::log::{AUDIT, SPANS};
use daemon::serve::{Peer, read_limited};
use daemon::traces;
use fleet_model::ClusterId;
use fleet_model::names::trace::{METHOD, REQUEST, REQUEST_ID, RESOURCE_ID, ROUTE, STATUS};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use secrecy::SecretString;
use tokio::time::{Instant, timeout};
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};
use uuid::Uuid;

use super::answer::{self, Answer, Refused};
use super::directory::Directory;
use super::openapi;
use super::problem::{Code, Problem};
use super::pull_secrets::About;
use super::rate::RateLimitStatus;
use super::request::{Operation, Parts, Requested};
use super::reviews::{Caller, Permission, Reviewer, Unreviewed};
use super::route::{Route, is_of_ams, route};
use super::state::{Api, Shared};
use crate::metrics::AnsweredRequest;

/// The longest token that is reviewed, in bytes.
const LONGEST_TOKEN: usize = 16 * 1024;

/// The route of paths that name nothing, in metrics and traces.
const UNKNOWN: &str = "unknown";

/// A call, as far as it is known.
struct Call {
    id: String,
    method: Method,
    route: &'static str,
    remote: Option<IpAddr>,
    caller: Option<Caller>,
    cluster: Option<ClusterId>,
    rate_limit: Option<RateLimitStatus>,
}

/// Creates the router that serves an API.
pub fn router<R: Reviewer, D: Directory>(api: Api<R, D>) -> Router {
    Router::new().fallback(handle::<R, D>).with_state(api)
}

async fn handle<R: Reviewer, D: Directory>(State(api): State<Api<R, D>>, request: Request) -> Response {
    let (started, shared) = (Instant::now(), api.shared());
    let path = request.uri().path().to_owned();
    let route = route(&path);
    let mut call = Call::new(&request, route);
    let span = call.span(request.headers());
    let limit = shared.limits.request;
    let carried_out = timeout(limit, shared.carry_out(&mut call, route, request)).instrument(span.clone()).await;
    let timed_out = || Err(Problem::new(Code::Timeout, "the request timed out: try again"));
    let carried_out = carried_out.unwrap_or_else(|_elapsed| timed_out());
    let refused = Refused {
        path: &path,
        trace_id: &call.id,
        now: shared.sources.now(),
        methods: route.as_ref().map_or(&[], Route::methods),
    };
    let (mut response, problem) = match carried_out {
        Ok(answer) => {
            call.audit_revealed(&answer);
            (answer.into_response(), None)
        }
        Err(problem) if is_of_ams(&path) => (answer::ams_error(&problem, &refused), Some(problem)),
        Err(problem) => (answer::problem(&problem, &refused), Some(problem)),
    };
    if let Some(problem) = problem.as_ref().filter(|problem| problem.is_denial()) {
        call.audit_denied(&problem.detail);
    }
    if let Some(status) = &call.rate_limit {
        answer::add_rate_limit(&mut response, status);
    }
    let headers = response.headers_mut();
    headers
        .extend(HeaderValue::from_str(&call.id).ok().map(|id| (header::HeaderName::from_static("x-request-id"), id)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (status, duration) = (response.status(), started.elapsed());
    let method = known(&call.method).unwrap_or("other");
    shared.metrics.answered(&AnsweredRequest { method, route: call.route, status: status.as_u16(), duration });
    let _entered = span.enter();
    span.record(STATUS, status.as_u16());
    if status.is_server_error() {
        traces::fail(&span, status.as_str());
    }
    call.log(status, duration.as_millis(), problem.as_ref());
    response
}

/// The name of a method that the API knows; `None` for another one, of which clients can invent any number.
fn known(method: &Method) -> Option<&str> {
    let known = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    known.contains(method).then(|| method.as_str())
}

// === impl Shared ===

impl<R: Reviewer, D: Directory> Shared<R, D> {
    async fn carry_out(&self, call: &mut Call, route: Option<Route<'_>>, request: Request) -> Result<Answer, Problem> {
        if request.headers().contains_key(header::ORIGIN) {
            return Err(Problem::new(
                Code::PermissionDenied,
                "requests of web pages are refused: send no Origin header",
            ));
        }
        let route = route.ok_or_else(|| Problem::new(Code::NoEndpoint, "nothing is served at this path"))?;
        if !route.methods().contains(request.method()) {
            return Err(Problem::new(Code::Method, "the path does not have this method"));
        }
        let busy =
            |_closed| Problem::unavailable("the service is busy: try again", "too many requests at the same time");
        let _place = self.places.try_acquire().map_err(busy)?;
        if route == Route::OpenApi {
            return Ok(Answer::json(StatusCode::OK, openapi::document()));
        }
        let (head, body) = request.into_parts();
        let caller = self.identify(&head.headers).await?;
        let caller = &*call.caller.insert(caller);
        let status = self.requests.take(caller.name());
        call.rate_limit = Some(status);
        allowed(&status, "requests")?;
        let body = self.body(&head.headers, body).await?;
        let parts = Parts { route, method: &head.method, query: head.uri.query().unwrap_or_default(), body: &body };
        let Some(requested) = Requested::read(&parts)? else { return Ok(Answer::empty()) };
        let cluster = &*call.cluster.insert(requested.cluster.clone());
        for permission in requested.permissions() {
            self.permitted(caller, *permission, cluster).await?;
        }
        let is_of_ams = is_of_ams(head.uri.path());
        let mut reveals = false;
        if is_of_ams && requested.may_reveal() {
            self.permitted(caller, Permission::GetContent, cluster).await?;
            reveals = true;
        } else if requested.may_reveal() {
            let reviewed = self.reviews.permits(caller, Permission::GetContent, cluster).await;
            reveals = reviewed.map_err(unreviewed)?;
        }
        let about = About { cluster, caller: caller.name(), reveals, is_of_ams };
        if let Operation::Rotate(_) = requested.operation {
            let status = self.rotations.take(caller.name());
            allowed(&status, "rotations")?;
        }
        match &requested.operation {
            Operation::Read => self.read(&about).await,
            Operation::Ensure(registries) => self.ensure(&about, registries).await,
            Operation::Retire => self.retire(&about).await,
            Operation::ListRotations(query) => self.list_rotations(&about, query).await,
            Operation::ReadRotation(id) => self.read_rotation(&about, *id).await,
            Operation::Rotate(new) => self.rotate(&about, *new).await,
        }
    }

    /// Returns the caller of a request.
    async fn identify(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let unauthenticated = || {
            let detail =
                "send a bearer token that Kubernetes accepts for the audience of this service (`server.audience`)";
            Problem::new(Code::Unauthenticated, detail)
        };
        let token = bearer(headers).ok_or_else(unauthenticated)?;
        self.reviews.identify(&token).await.map_err(unreviewed)?.ok_or_else(unauthenticated)
    }

    /// Fails unless a caller has a permission.
    async fn permitted(&self, caller: &Caller, permission: Permission, cluster: &ClusterId) -> Result<(), Problem> {
        if self.reviews.permits(caller, permission, cluster).await.map_err(unreviewed)? {
            return Ok(());
        }
        let detail = format!(
            "{} may not {} clusters/{} of {cluster}: bind it to a ClusterRole with that verb in the API group hyperfleet.io",
            caller.name(),
            permission.verb(),
            permission.subresource()
        );
        Err(Problem::new(Code::PermissionDenied, detail))
    }

    /// Reads the body of a request, within the limits of size and time.
    async fn body(&self, headers: &HeaderMap, body: axum::body::Body) -> Result<Bytes, Problem> {
        let limits = &self.limits;
        let read = timeout(limits.read, read_limited(body, limits.body)).await;
        let read = read.map_err(|_elapsed| Problem::new(Code::Timeout, "the body did not arrive in time"))?;
        let read = read.map_err(|_broken| Problem::new(Code::Malformed, "the body ended early"))?;
        let body =
            read.ok_or_else(|| Problem::new(Code::TooLarge, format!("a body has {} bytes at most", limits.body)))?;
        let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
        let media_type = content_type.and_then(|value| value.split(';').next()).map(str::trim);
        if !body.is_empty() && !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json"))
        {
            return Err(Problem::new(Code::MediaType, "send the body as application/json"));
        }
        Ok(body)
    }
}

/// Returns the bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<SecretString> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let fits = scheme.eq_ignore_ascii_case("bearer") && (1..=LONGEST_TOKEN).contains(&token.len());
    fits.then(|| SecretString::from(token))
}

fn allowed(status: &RateLimitStatus, of: &str) -> Result<(), Problem> {
    let Some(seconds) = status.retry_after else { return Ok(()) };
    let detail = format!("too many {of}: the next one is allowed in {seconds} s");
    Err(Problem { retry_after: Some(seconds), ..Problem::new(Code::RateLimited, detail) })
}

fn unreviewed(cause: Unreviewed) -> Problem {
    Problem::unavailable("Kubernetes cannot be asked about the caller: try again", cause.0)
}

// === impl Call ===

impl Call {
    fn new(request: &Request, route: Option<Route<'_>>) -> Self {
        Self {
            id: Uuid::now_v7().to_string(),
            method: request.method().clone(),
            route: route.map_or(UNKNOWN, |route| route.template()),
            remote: request.extensions().get::<Peer>().map(|peer| peer.0.ip()),
            caller: None,
            cluster: None,
            rate_limit: None,
        }
    }

    /// The span of the call, which continues the trace of its caller. A `traceparent` that is malformed is ignored.
    fn span(&self, headers: &HeaderMap) -> Span {
        let method = known(&self.method);
        let span = info_span!(
            target: SPANS,
            REQUEST,
            otel.name = format!("{} {}", method.unwrap_or("HTTP"), self.route),
            otel.kind = "server",
            { METHOD } = method.unwrap_or("_OTHER"),
            { ROUTE } = self.route,
            { REQUEST_ID } = self.id,
            { RESOURCE_ID } = Empty,
            { STATUS } = Empty,
        );
        let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        traces::continuing(parent.and_then(|text| text.parse().ok()).as_ref(), span)
    }

    fn caller(&self) -> &str {
        self.caller.as_ref().map_or("", Caller::name)
    }

    fn cluster(&self) -> &str {
        self.cluster.as_ref().map_or("", ClusterId::as_str)
    }

    /// Records that passwords leave the service.
    fn audit_revealed(&self, answer: &Answer) {
        if answer.revealed.is_empty() {
            return;
        }
        let credentials: Vec<String> = answer.revealed.iter().map(ToString::to_string).collect();
        tracing::info!(
            target: AUDIT,
            operation = "read-pull-secret",
            allowed = true,
            request_id = self.id,
            method = self.method.as_str(),
            path = self.route,
            remote = self.remote.map(|remote| remote.to_string()),
            subject = self.caller(),
            id = self.cluster(),
            credentials = credentials.join(","),
            "pull secret read"
        );
    }

    /// Records that the call was denied.
    fn audit_denied(&self, because: &str) {
        tracing::warn!(
            target: AUDIT,
            operation = "deny",
            allowed = false,
            because,
            request_id = self.id,
            method = known(&self.method).unwrap_or("other"),
            path = self.route,
            remote = self.remote.map(|remote| remote.to_string()),
            subject = self.caller(),
            id = self.cluster(),
            "call denied"
        );
    }

    fn log(&self, status: StatusCode, duration_ms: u128, problem: Option<&Problem>) {
        let (method, route, status) = (known(&self.method).unwrap_or("other"), self.route, status.as_u16());
        let (request_id, caller, cluster) = (self.id.as_str(), self.caller(), self.cluster());
        let duration_ms = u64::try_from(duration_ms).unwrap_or(u64::MAX);
        Span::current().record(RESOURCE_ID, cluster);
        if let Some(cause) = problem.and_then(|problem| problem.cause.as_deref()) {
            tracing::error!(
                operation = "request",
                request_id,
                method,
                route,
                status,
                duration_ms,
                caller,
                cluster,
                cause,
                "request failed"
            );
        } else {
            tracing::info!(
                operation = "request",
                request_id,
                method,
                route,
                status,
                duration_ms,
                caller,
                cluster,
                "request handled"
            );
        }
    }
}
