//! The HTTP wire: paths become calls, answers become JSON.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, to_bytes};
use axum::extract::Query;
use http::header::{AUTHORIZATION, HOST, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Response};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::operation::Operation;
use super::refusal::Refusal;
use super::request::Request;
use super::state::{Answer, State};
use crate::connections::Connection;
use crate::http_faults::{Aim, Delivery, Effect, Fault};
use crate::responses::{Place, document, given};
use crate::scripted::Script;

/// The path at which registries' clients get their tokens.
pub(super) const TOKEN_PATH: &str = "/service/token";
/// The name of the service that tokens are for.
pub(super) const SERVICE: &str = "harbor-registry";

/// The largest body.
const MAX_BODY: usize = 1024 * 1024;

/// The memory, shared by all connections.
#[derive(Debug)]
pub(super) struct Shared {
    memory: Mutex<Memory>,
    /// Cancelled when the server stops; calls that hang end then.
    pub(super) stopping: CancellationToken,
}

/// The memory of a server.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) state: State,
    pub(super) faults: Script<Fault<Operation>>,
    /// The operations that were called.
    pub(super) calls: Vec<Operation>,
    /// The time by which the clock is ahead of this machine's.
    pub(super) ahead: SignedDuration,
}

/// The end of a call.
struct End {
    result: Result<Answer, Refusal>,
    effect: Option<Effect>,
}

struct Routed {
    operation: Operation,
    target: String,
    reference: String,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(memory: Memory) -> Self {
        Self { memory: Mutex::new(memory), stopping: CancellationToken::new() }
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Memory ===

impl Memory {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::now().checked_add(self.ahead).unwrap_or(Timestamp::MAX)
    }

    /// Counts a call, and ends it. One without a good identity uses up no fault.
    fn call(&mut self, request: &Request) -> End {
        self.calls.push(request.operation);
        let now = self.now();
        if let Err(refusal) = self.state.authenticate(now, request) {
            return End { result: Err(refusal), effect: None };
        }
        let effect = self.faults.strike(&Aim { operation: request.operation, target: request.target.clone() });
        let result = match effect.filter(|effect| !effect.commits()) {
            Some(_) => Ok(Answer::empty()),
            None => self.state.handle(now, request),
        };
        let refused = effect.and_then(Effect::refused);
        End { result: refused.map_or(result, |refused| Err(Refusal::scripted(refused))), effect }
    }
}

/// Answers one call.
pub(super) async fn serve(shared: Arc<Shared>, connection: Connection, request: http::Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Some(Routed { operation, target, reference }) = route(&head.method, head.uri.path()) else {
        return document(404, &Refusal::new(404, "not found").json());
    };
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return document(400, &Refusal::invalid("the body cannot be read, or is too large").json());
    };
    let query = Query::<Vec<(String, String)>>::try_from_uri(&head.uri).map(|Query(query)| query).unwrap_or_default();
    let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let is_head = head.method == Method::HEAD;
    let request = Request { operation, target, reference, is_head, query, body: body.to_vec(), authorization };
    let End { result, effect } = shared.memory().call(&request);
    if let Some(delay) = effect.map(Effect::delay).filter(|delay| !delay.is_zero()) {
        tokio::time::sleep(delay).await;
    }
    let (mut response, text) = match &result {
        Ok(Answer { status, body, .. }) => (document(*status, body), body.to_string()),
        Err(refusal) => (document(refusal.status, &refusal.json()), refusal.json().to_string()),
    };
    add_headers(response.headers_mut(), &result, operation, &head.headers);
    let delivery = effect.map_or(Delivery::Whole, Effect::delivery);
    given(delivery, response, &text, &Place { connection: &connection, stopping: &shared.stopping }).await
}

fn add_headers(headers: &mut HeaderMap, result: &Result<Answer, Refusal>, operation: Operation, request: &HeaderMap) {
    match result {
        Ok(Answer { total: Some(total), .. }) => drop(headers.insert("x-total-count", HeaderValue::from(*total))),
        Ok(_) => {}
        Err(refusal) => {
            if let Some(seconds) = refusal.seconds() {
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            if refusal.status == 401 && !operation.is_of_api() {
                let host = request.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
                let challenge = format!("Bearer realm=\"http://{host}{TOKEN_PATH}\",service=\"{SERVICE}\"");
                headers.extend(HeaderValue::from_str(&challenge).ok().map(|value| (WWW_AUTHENTICATE, value)));
            }
        }
    }
}

fn route(method: &Method, path: &str) -> Option<Routed> {
    let routed =
        |operation, target: &str| Some(Routed { operation, target: target.to_owned(), reference: String::new() });
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    if path == TOKEN_PATH && method == "GET" {
        return routed(Operation::IssueToken, "");
    }
    if let Some(rest) = path.strip_prefix("/v2/").filter(|_| method == "GET") {
        if rest.is_empty() {
            return routed(Operation::Challenge, "");
        }
        if let Some(repository) = rest.strip_suffix("/tags/list") {
            return routed(Operation::ListTags, repository);
        }
        let (repository, reference) = rest.split_once("/manifests/")?;
        return Some(Routed { reference: reference.to_owned(), ..routed(Operation::GetManifest, repository)? });
    }
    let parts: Vec<&str> = path.strip_prefix("/api/v2.0/")?.split('/').collect();
    match (method, parts.as_slice()) {
        ("POST", ["robots"]) => routed(Operation::CreateRobot, ""),
        ("GET", ["robots"]) => routed(Operation::ListRobots, ""),
        ("GET", ["robots", id]) => routed(Operation::GetRobot, id),
        ("PUT", ["robots", id]) => routed(Operation::UpdateRobot, id),
        ("PATCH", ["robots", id]) => routed(Operation::RefreshRobot, id),
        ("DELETE", ["robots", id]) => routed(Operation::DeleteRobot, id),
        ("GET", ["projects", name]) => routed(Operation::GetProject, name),
        ("GET", ["projects", name, "auditlog-exts"]) => routed(Operation::ListLogs, name),
        _ => None,
    }
}
