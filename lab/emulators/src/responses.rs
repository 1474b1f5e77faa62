//! Answers over HTTP, and the ways in which scripted faults spoil them.

use axum::body::{Body, Bytes};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::channel::Channel;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::connections::Connection;
use crate::http_faults::Delivery;

/// The page that stands for an answer that a proxy makes.
const GARBAGE: &str = "<html><head><title>Welcome</title></head><body>Scripted fault</body></html>";

/// A part of an answer that is too long, and the number of times that it is sent.
const CHUNK: &[u8] = &[b' '; 64 * 1024];
const CHUNKS: usize = 1024;

/// The connection of a call, and the end of its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) stopping: &'a CancellationToken,
}

/// Gives an answer in a way; `text` is its body.
pub(crate) async fn given(
    delivery: Delivery,
    response: Response<Body>,
    text: &str,
    place: &Place<'_>,
) -> Response<Body> {
    match delivery {
        Delivery::Whole => response,
        Delivery::Garbage => page(Body::from(GARBAGE)),
        Delivery::Huge => page(huge()),
        Delivery::Stalled => stalled(response, text, place.stopping.clone()),
        Delivery::Cut => cut(place.connection),
        Delivery::Hang => {
            place.stopping.cancelled().await;
            cut(place.connection)
        }
    }
}

/// A document in JSON; null has no body.
pub(crate) fn document(status: u16, value: &Value) -> Response<Body> {
    let body = if value.is_null() { Body::empty() } else { Body::from(value.to_string()) };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The response is never written: its connection is gone before.
fn cut(connection: &Connection) -> Response<Body> {
    connection.cut();
    Response::new(Body::empty())
}

fn page(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

/// A body that is made while it is read; it ends with its reader.
fn huge() -> Body {
    let (mut sender, body) = Channel::<Bytes>::new(1);
    tokio::spawn(async move {
        for _ in 0..CHUNKS {
            if sender.send_data(Bytes::from_static(CHUNK)).await.is_err() {
                return;
            }
        }
    });
    Body::new(body)
}

/// The response with a half of its body, and an end with the server only.
fn stalled(response: Response<Body>, text: &str, stopping: CancellationToken) -> Response<Body> {
    let half = Bytes::copy_from_slice(text.as_bytes().get(..text.len() / 2).unwrap_or_default());
    let (mut sender, body) = Channel::<Bytes>::new(1);
    tokio::spawn(async move {
        // A reader that is gone waits for nothing.
        if sender.send_data(half).await.is_ok() {
            stopping.cancelled().await;
        }
    });
    response.map(|_| Body::new(body))
}
