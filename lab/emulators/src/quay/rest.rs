//! The HTTP wire: paths become requests, answers become JSON.

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Query;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HOST, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response};
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::json;

use super::answer::Answer;
use super::engine::{End, Engine};
use super::fields::field;
use super::paths::AUTH_PATH;
use super::refusal::Refusal;
use super::request::Request;
use crate::connections::Connection;
use crate::responses::{Place, document, given};

mod route;

use route::Routed;

/// The largest body, as Quay's limit for robots.
const BODY_BYTES_MAXIMUM: usize = 1024 * 1024;

/// The header with the digest of a manifest.
const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// The header with the addresses of the proxies before this server.
const FORWARDED: &str = "x-forwarded-for";

/// Answers one call, with the time of the server's own clock.
pub(crate) async fn serve(engine: Arc<Engine>, connection: Connection, request: http::Request<Body>) -> Response<Body> {
    let mut response = answer(&engine, connection, request).await;
    let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&engine.now()).ok();
    if let Some(date) = date.and_then(|text| HeaderValue::from_str(&text).ok()) {
        response.headers_mut().insert(DATE, date);
    }
    response
}

async fn answer(engine: &Engine, connection: Connection, request: http::Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let base = format!("http://{}", header(&head, &HOST));
    // containerd asks with a form first, and goes on without one after this status.
    if head.uri.path() == AUTH_PATH && !matches!(head.method, Method::GET | Method::HEAD) {
        return document(405, &json!(null));
    }
    let Some(routed) = route::route(&head.method, head.uri.path()) else {
        return refusal(&Refusal::not_found(), &base, engine);
    };
    let Ok(body) = to_bytes(body, BODY_BYTES_MAXIMUM).await else {
        return refusal(&Refusal::invalid("The body cannot be read, or is too large."), &base, engine);
    };
    let target = routed.target();
    let request = bind(routed, &head, &body);
    let target = if target.is_empty() { request.basic().map(|basic| basic.user).unwrap_or_default() } else { target };
    let End { result, delivery } = engine.call(request, target).await;
    let (response, text) = match &result {
        Ok(answer) => written(answer),
        Err(refused) => (refusal(refused, &base, engine), refused.json(&base).to_string()),
    };
    given(delivery, response, &text, &Place { connection: &connection, stopping: &engine.stopping }).await
}

fn header<'a>(head: &'a Parts, name: &HeaderName) -> &'a str {
    head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Makes the request of a routed call from its query, headers and body.
fn bind(routed: Routed, head: &Parts, body: &Bytes) -> Request {
    let Routed { operation, organization, name, member } = routed;
    let query = Query::<Vec<(String, String)>>::try_from_uri(&head.uri).map(|Query(query)| query).unwrap_or_default();
    let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let forwarded = head.headers.get(FORWARDED).and_then(|value| value.to_str().ok());
    let address = forwarded.and_then(|addresses| addresses.split(',').next()).unwrap_or("127.0.0.1");
    Request {
        operation,
        organization,
        name,
        member,
        query,
        body: body.to_vec(),
        authorization,
        address: address.trim().to_owned(),
        agent: header(head, &USER_AGENT).to_owned(),
    }
}

fn refusal(refusal: &Refusal, base: &str, engine: &Engine) -> Response<Body> {
    let mut response = document(refusal.status, &refusal.json(base));
    if let Some(seconds) = refusal.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    let challenge = refusal.challenge(&format!("{base}{AUTH_PATH}"), &engine.service);
    if let Some(challenge) = challenge.and_then(|text| HeaderValue::from_str(&text).ok()) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// An answer, and its text.
fn written(answer: &Answer) -> (Response<Body>, String) {
    let mut response = document(answer.status, &answer.body);
    if let Some(digest) = answer.digest.as_deref().and_then(|digest| HeaderValue::from_str(digest).ok()) {
        let kind = field(&answer.body, "mediaType").as_str().and_then(|kind| HeaderValue::from_str(kind).ok());
        response.headers_mut().insert(CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static("application/json")));
        response.headers_mut().insert(DIGEST, digest);
    }
    (response, answer.body.to_string())
}
