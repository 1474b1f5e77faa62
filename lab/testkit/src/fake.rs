//! A server that answers whatever a test wants, and remembers what it was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use http::{HeaderMap, Method, Request, Response};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// An HTTP server; it ends when it is dropped.
pub struct Fake {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Received {
    pub method: Method,
    /// Path and query.
    pub target: String,
    pub headers: HeaderMap,
    /// A text if it is no JSON; null if there was none.
    pub body: Value,
}

// === impl Fake ===

impl Fake {
    /// Answers every request in the same way.
    pub async fn answering(answer: Response<String>) -> Self {
        Self::start(move |_| answer.clone()).await
    }

    pub async fn start(answer: impl Fn(&Received) -> Response<String> + Clone + Send + Sync + 'static) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let memory = Arc::clone(&received);
        let handler = async move |request: Request<Body>| {
            let request = Received::read(request).await;
            let response = answer(&request).map(Body::from);
            memory.lock().unwrap().push(request);
            response
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await.unwrap() });
        Self { address, received, task }
    }

    /// Answers the head of the first request on every connection with these bytes, and closes it.
    pub async fn speaking(bytes: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut head = BufReader::new(&mut connection).lines();
                while head.next_line().await.unwrap().is_some_and(|line| !line.is_empty()) {}
                connection.write_all(bytes.as_bytes()).await.unwrap();
            }
        });
        Self { address, received: Arc::default(), task }
    }

    /// Accepts connections and says nothing.
    pub async fn silent() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                held.push(connection);
            }
        });
        Self { address, received: Arc::default(), task }
    }

    /// The one request so far.
    #[track_caller]
    pub fn only(&self) -> Received {
        let [request] = <[Received; 1]>::try_from(self.received()).unwrap();
        request
    }

    /// Every request so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Received ===

impl Received {
    async fn read(request: Request<Body>) -> Self {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, 1024 * 1024).await.unwrap();
        let body = match serde_json::from_slice(&body) {
            Ok(document) => document,
            Err(_no_json) if body.is_empty() => Value::Null,
            Err(_no_json) => Value::String(String::from_utf8_lossy(&body).into_owned()),
        };
        Self { method: head.method, target: head.uri.to_string(), headers: head.headers, body }
    }
}

/// A JSON document.
pub fn json(status: u16, document: &Value) -> Response<String> {
    answer(status, "application/json; charset=UTF-8", document.to_string())
}

/// A page such as proxies show.
pub fn page(status: u16, text: &str) -> Response<String> {
    answer(status, "text/html", format!("<!DOCTYPE html><html><body><h1>{status}</h1><p>{text}</p></body></html>"))
}

fn answer(status: u16, kind: &str, body: String) -> Response<String> {
    Response::builder().status(status).header("content-type", kind).body(body).unwrap()
}
