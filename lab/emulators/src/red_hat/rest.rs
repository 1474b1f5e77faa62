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

/// The path of the API up to `/partners`.
pub(super) const ROOT: &str = "/management/v1";
/// The path at which the registry's clients get their tokens, as that of registry.redhat.io.
pub(super) const TOKEN_PATH: &str = "/auth/realms/rhcc/protocol/redhat-docker-v2/auth";
/// The name of the service that tokens are for.
pub(super) const SERVICE: &str = "docker-registry";
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

/// The path of a call, read.
pub(super) struct Routed {
    operation: Operation,
    partner: Option<String>,
    target: String,
    reference: String,
}

/// The end of a call.
struct End {
    result: Result<Answer, Refusal>,
    effect: Option<Effect>,
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

    /// Counts a call, and ends it.
    fn call(&mut self, request: &Request) -> End {
        self.calls.push(request.operation);
        let effect = self.faults.strike(&Aim { operation: request.operation, target: request.target.clone() });
        let now = self.now();
        let result = match effect.filter(|effect| !effect.commits()) {
            Some(_) => Ok(Answer::empty()),
            None => self.state.handle(now, request),
        };
        let refused = effect.and_then(Effect::refused);
        End { result: refused.map_or(result, |refused| Err(Refusal::scripted(refused))), effect }
    }
}

/// Answers one call.
pub(super) async fn serve(
    shared: Arc<Shared>,
    connection: Connection,
    request: http::Request<Body>,
    route: fn(&Method, &str) -> Option<Routed>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Some(Routed { operation, partner, target, reference }) = route(&head.method, head.uri.path()) else {
        return document(404, &Refusal::new(404, "404: not found").json());
    };
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return document(400, &Refusal::new(400, "400: the body cannot be read").json());
    };
    let query = Query::<Vec<(String, String)>>::try_from_uri(&head.uri).map(|Query(query)| query).unwrap_or_default();
    let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let request = Request { operation, partner, target, reference, query, body: body.to_vec(), authorization };
    let End { result, effect } = shared.memory().call(&request);
    if let Some(delay) = effect.map(Effect::delay).filter(|delay| !delay.is_zero()) {
        tokio::time::sleep(delay).await;
    }
    let (status, body) = match &result {
        Ok(Answer { status, body }) => (*status, body.clone()),
        Err(refusal) => (refusal.status, refusal.json()),
    };
    let mut response = document(status, &body);
    if let Err(refusal) = &result {
        add_headers(response.headers_mut(), refusal, &request, &head.headers);
    }
    let delivery = effect.map_or(Delivery::Whole, Effect::delivery);
    given(delivery, response, &body.to_string(), &Place { connection: &connection, stopping: &shared.stopping }).await
}

fn add_headers(headers: &mut HeaderMap, refusal: &Refusal, request: &Request, sent: &HeaderMap) {
    if let Some(seconds) = refusal.seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if refusal.status == 401 && request.partner.is_none() {
        let host = sent.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let challenge = format!("Bearer realm=\"https://{host}{TOKEN_PATH}\",service=\"{SERVICE}\"");
        headers.extend(HeaderValue::from_str(&challenge).ok().map(|value| (WWW_AUTHENTICATE, value)));
    }
}

/// Reads a path of the API.
pub(super) fn api(method: &Method, path: &str) -> Option<Routed> {
    let parts: Vec<&str> = path.strip_prefix(ROOT)?.strip_prefix("/partners/")?.split('/').collect();
    let (operation, partner, target) = match (method.as_str(), parts.as_slice()) {
        ("POST", [partner, "service-accounts"]) => (Operation::CreateAccount, partner, ""),
        ("POST", [partner, "service-accounts", name]) => (Operation::RecoverAccount, partner, *name),
        ("GET", [partner, "service-accounts", name]) => (Operation::GetAccount, partner, *name),
        ("DELETE", [partner, "service-accounts", name]) => (Operation::DeleteAccount, partner, *name),
        _ => return None,
    };
    let (partner, target) = (Some((*partner).to_owned()), target.to_owned());
    Some(Routed { operation, partner, target, reference: String::new() })
}

/// Reads a path of the registry, or of its token service.
pub(super) fn registry(method: &Method, path: &str) -> Option<Routed> {
    if ![Method::GET, Method::HEAD].contains(method) {
        return None;
    }
    let routed = |operation, target: &str, reference: &str| {
        let (target, reference) = (target.to_owned(), reference.to_owned());
        Some(Routed { operation, partner: None, target, reference })
    };
    if path == TOKEN_PATH {
        return routed(Operation::IssueToken, "", "");
    }
    match path.strip_prefix("/v2/")? {
        "" => routed(Operation::Challenge, "", ""),
        rest => match (rest.strip_suffix("/tags/list"), rest.split_once("/manifests/")) {
            (Some(repository), _) => routed(Operation::ListTags, repository, ""),
            (None, Some((repository, reference))) => routed(Operation::GetManifest, repository, reference),
            (None, None) => None,
        },
    }
}
