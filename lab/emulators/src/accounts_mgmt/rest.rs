//! The HTTP wire: paths become requests, answers become JSON.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, to_bytes};
use axum::extract::Query;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::faults::Effect;
use super::operation::Operation;
use super::refusal::Refusal;
use super::state::{Answer, Request, State};
use crate::connections::Connection;

/// The SSO's path for tokens.
pub(super) const TOKEN_PATH: &str = "/auth/realms/redhat-external/protocol/openid-connect/token";

/// The largest body.
const MAX_BODY: usize = 1024 * 1024;
/// The page that stands for an answer that a proxy makes.
const GARBAGE: &str = "<html><head><title>Welcome</title></head><body>Scripted fault</body></html>";

/// The memory, shared by all connections.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// The number of calls so far.
    pub(super) received: watch::Sender<usize>,
    /// Cancelled when the server stops; calls that hang end then.
    pub(super) stopping: CancellationToken,
}

struct Routed {
    operation: Operation,
    id: String,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self { state: Mutex::new(state), received: watch::Sender::new(0), stopping: CancellationToken::new() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers one call.
pub(super) async fn serve(shared: Arc<Shared>, connection: Connection, request: http::Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Some(Routed { operation, id }) = route(&head.method, head.uri.path()) else {
        return refusal(&Refusal::new(404, "The requested resource doesn't exist"));
    };
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return refusal(&Refusal::new(400, "The body cannot be read, or is too large"));
    };
    let query = Query::<Vec<(String, String)>>::try_from_uri(&head.uri).map(|Query(query)| query).unwrap_or_default();
    let header = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = header.and_then(|value| value.strip_prefix("Bearer ")).map(str::to_owned);
    let request = Request { operation, id, query, body: body.to_vec(), bearer };
    let (result, effect) = shared.state().call(&request);
    shared.received.send_modify(|received| *received += 1);
    match (effect, result) {
        (Some(Effect::Cut | Effect::CommitThenCut), _) => cut(&connection),
        (Some(Effect::Hang), _) => {
            shared.stopping.cancelled().await;
            cut(&connection)
        }
        (Some(Effect::Garbage), _) => response(200, "text/html; charset=utf-8", Body::from(GARBAGE)),
        (_, Ok(Answer { status, body: Value::Null })) => response(status, "application/json", Body::empty()),
        (_, Ok(Answer { status, body })) => response(status, "application/json", Body::from(body.to_string())),
        (_, Err(refused)) => refusal(&refused),
    }
}

fn route(method: &Method, path: &str) -> Option<Routed> {
    let routed = |operation, id: &str| Some(Routed { operation, id: id.to_owned() });
    if path == TOKEN_PATH && *method == Method::POST {
        return routed(Operation::Token, "");
    }
    let parts: Vec<&str> = path.strip_prefix("/api/accounts_mgmt/v1/")?.split('/').collect();
    match (method.as_str(), parts.as_slice()) {
        ("GET", ["registry_credentials"]) => routed(Operation::List, ""),
        ("POST", ["registry_credentials"]) => routed(Operation::Create, ""),
        ("GET", ["registry_credentials", id]) => routed(Operation::Get, id),
        ("DELETE", ["registry_credentials", id]) => routed(Operation::Delete, id),
        ("GET", ["registries", id]) => routed(Operation::GetRegistry, id),
        _ => None,
    }
}

/// The response is never written: its connection is gone before.
fn cut(connection: &Connection) -> Response<Body> {
    connection.cut();
    Response::new(Body::empty())
}

fn refusal(refused: &Refusal) -> Response<Body> {
    let mut response = response(refused.status, "application/json", Body::from(refused.json().to_string()));
    if let Some(seconds) = refused.seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn response(status: u16, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
