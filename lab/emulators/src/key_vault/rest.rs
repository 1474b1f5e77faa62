//! The HTTP wire: paths become requests, answers become JSON.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Query;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HOST, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::{Value, json};

use super::engine::{self, Asked, Engine, Silence};
use super::entra::{Form, RESOURCE};
use super::operation::Operation;
use super::refusal::Refusal;
use super::request::{Bundle, Page, Request};
use crate::connections::Connection;

mod route;

use route::Routed;

/// More than the largest value with everything around it, each character escaped.
const BODY_BYTES_MAXIMUM: usize = 512 * 1024;

/// The path at which a tenant issues tokens, behind the tenant's id.
pub(crate) const TOKEN_PATH: &str = "/oauth2/v2.0/token";

/// The path of the document by which clients find a tenant's endpoints, behind the tenant's id.
const CONFIGURATION_PATH: &str = "/v2.0/.well-known/openid-configuration";

/// Answers one call, with the time of the server's own clock.
pub(crate) async fn serve(engine: Arc<Engine>, connection: Connection, request: http::Request<Body>) -> Response<Body> {
    let mut response = answer(&engine, connection, request).await;
    if let Some(date) = date(engine.now()) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

/// Writes a time as headers have it.
fn date(time: Timestamp) -> Option<HeaderValue> {
    let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()?;
    HeaderValue::from_str(&text).ok()
}

async fn answer(engine: &Engine, connection: Connection, request: http::Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let base = base(&head);
    let authority = format!("{base}/{}", engine.tenant);
    let path = head.uri.path();
    if let Some(tenant) = tenant(path, CONFIGURATION_PATH) {
        if tenant == engine.tenant {
            return document(200, &configuration(&authority));
        }
        return refusal(&Refusal::no_tenant("invalid_tenant", tenant), Operation::RequestToken, &authority);
    }
    let body = to_bytes(body, BODY_BYTES_MAXIMUM).await.map_err(|_too_large| {
        Refusal::bad_parameter(format!("The body cannot be read, or is larger than {BODY_BYTES_MAXIMUM} bytes."))
    });
    let issuing = tenant(path, TOKEN_PATH).filter(|_| head.method == http::Method::POST);
    let asked = if let Some(tenant) = issuing {
        let body = if tenant == engine.tenant {
            body.map(|body| engine::Body::Token(Form::read(&body)))
        } else {
            Err(Refusal::no_tenant("invalid_request", tenant))
        };
        let (name, resource) = (String::new(), String::new());
        Asked { operation: Operation::RequestToken, name, resource, authorization: None, body }
    } else {
        let Some(routed) = route::route(&head.method, path) else {
            let message = format!("There is no {} {path} in this API.", head.method);
            return refusal(&Refusal::bad_parameter(message), Operation::GetSecret, &authority);
        };
        let resource = routed.resource();
        let Routed { operation, name, .. } = &routed;
        let (operation, name) = (*operation, name.clone());
        let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = body
            .and_then(|body| bind(routed, &head, base, &body))
            .map(|request| engine::Body::Secrets(Box::new(request)));
        Asked { operation, name, resource, authorization, body }
    };
    let operation = asked.operation;
    match engine.call(asked).await {
        Ok(Ok(answer)) => document(engine::status(&answer), &answer),
        Ok(Err(refused)) => refusal(&refused, operation, &authority),
        Err(Silence::Cut) => cut(&connection),
        Err(Silence::Hang) => {
            engine.stopping.cancelled().await;
            cut(&connection)
        }
    }
}

/// The tenant's id in front of the rest of a path.
fn tenant<'a>(path: &'a str, rest: &str) -> Option<&'a str> {
    path.strip_prefix('/')?.strip_suffix(rest)
}

/// The address of this server as the caller wrote it.
fn base(head: &Parts) -> String {
    let host = head.headers.get(HOST).and_then(|value| value.to_str().ok());
    let host = head.uri.authority().map(http::uri::Authority::as_str).or(host);
    format!("https://{}", host.unwrap_or_default())
}

/// Makes the request of a routed call from its query and body.
fn bind(routed: Routed, head: &Parts, base: String, body: &[u8]) -> Result<Request, Refusal> {
    let Routed { operation, name, version } = routed;
    let query = Query::<Vec<(String, String)>>::try_from_uri(&head.uri).map(|Query(query)| query).unwrap_or_default();
    let get = |name: &str| query.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| value.clone());
    let Some(api_version) = get("api-version").filter(|version| !version.is_empty()) else {
        return Err(Refusal::bad_parameter("The parameter api-version must be given."));
    };
    let size = get("maxresults").map(|size| size.parse()).transpose();
    let size = size.map_err(|_no_number| Refusal::bad_parameter("maxresults must be a whole number."))?;
    let sound = |name: &str| name.len() <= 127 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !sound(&name) {
        return Err(Refusal::bad_parameter(format!("The request URI contains an invalid name: {name}")));
    }
    let bundle = match operation {
        Operation::SetSecret | Operation::UpdateSecret => read(body)?,
        _ => Bundle::default(),
    };
    let page = Page { size, after: get("$skiptoken"), api_version };
    Ok(Request { operation, name, version, page, bundle, base })
}

/// Reads a body without repeating any of it in an error.
fn read(body: &[u8]) -> Result<Bundle, Refusal> {
    let wrong = |error: serde_json::Error| {
        Refusal::bad_parameter(format!("The body is no document of a secret (line {}).", error.line()))
    };
    serde_json::from_slice(body).map_err(wrong)
}

/// The document by which clients find the token endpoint.
fn configuration(authority: &str) -> Value {
    json!({
        "token_endpoint": format!("{authority}/oauth2/v2.0/token"),
        "authorization_endpoint": format!("{authority}/oauth2/v2.0/authorize"),
        "issuer": format!("{authority}/v2.0"),
        // No client asks for the keys, but Microsoft's for Node insists on their address.
        "jwks_uri": format!("{authority}/discovery/v2.0/keys"),
    })
}

/// The response is never written: its connection is gone before.
fn cut(connection: &Connection) -> Response<Body> {
    connection.cut();
    Response::new(Body::empty())
}

fn refusal(refusal: &Refusal, operation: Operation, authority: &str) -> Response<Body> {
    let of_entra = operation == Operation::RequestToken;
    let body = if of_entra { refusal.oauth_json() } else { refusal.json() };
    let mut response = document(refusal.status, &body);
    if let Some(seconds) = refusal.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    let challenge = format!("Bearer authorization=\"{authority}\", resource=\"{RESOURCE}\"");
    if let (401, false, Ok(challenge)) = (refusal.status, of_entra, HeaderValue::from_str(&challenge)) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

fn document(status: u16, value: &Value) -> Response<Body> {
    let body = if value.is_null() { Body::empty() } else { Body::from(value.to_string()) };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    response
}
