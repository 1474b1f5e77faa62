//! A proxy in front of an emulated registry, which can damage the body of the next creation.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Returns the damaged body of a creation; `None` for all else.
pub(super) type Damage = fn(&Parts, &Bytes) -> Option<Bytes>;

pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    is_armed: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

// === impl Proxy ===

impl Proxy {
    pub(super) async fn start(behind: String, damage: Damage) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_armed = Arc::new(AtomicBool::new(false));
        let (client, armed) = (reqwest::Client::new(), Arc::clone(&is_armed));
        let handler = async move |request: Request<Body>| forward(&client, &behind, damage, &armed, request).await;
        let task = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await.unwrap() });
        Self { address, is_armed, task }
    }

    /// Lets the body of the next creation arrive damaged.
    pub(super) fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Sends a request on, and its answer back; one that is lost behind is a 502 before.
async fn forward(
    client: &reqwest::Client,
    behind: &str,
    damage: Damage,
    is_armed: &AtomicBool,
    request: Request<Body>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut body = to_bytes(body, 1024 * 1024).await.unwrap();
    if let Some(damaged) = damage(&head, &body)
        && is_armed.swap(false, Ordering::SeqCst)
    {
        body = damaged;
    }
    let mut headers = head.headers;
    headers.remove("content-length");
    let sent = client.request(head.method, format!("{behind}{}", head.uri)).headers(headers).body(body).send().await;
    let Ok(answer) = sent else {
        return Response::builder().status(StatusCode::BAD_GATEWAY).body(Body::empty()).unwrap();
    };
    let mut response = Response::builder().status(answer.status());
    for (name, value) in
        answer.headers().iter().filter(|(name, _)| !["content-length", "transfer-encoding"].contains(&name.as_str()))
    {
        response = response.header(name, value);
    }
    response.body(Body::from(answer.bytes().await.unwrap())).unwrap()
}
