//! A server that answers from a script and remembers what it was asked; and clients that do not wait.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use daemon::backoff::{Backoff, RetryPolicy};
use daemon::retry::Budget;
use futures_util::stream::{self, StreamExt as _};
use http::HeaderMap;
use hyperfleet_client::{Client, Settings};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A server that answers from a script.
pub(crate) struct Server {
    address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<Asked>>,
}

/// The request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Such as `GET /clusters/a?fields=id`, below the API's path.
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    end: End,
}

/// The end of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// As it should.
    Whole,
    /// The connection breaks.
    Broken,
    /// Never.
    Open,
    /// It does not even begin.
    Never,
}

// === impl Server ===

impl Server {
    /// Starts a server with this script; whatever is asked beyond it is answered with 500.
    pub(crate) async fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { script: Mutex::new(script.into_iter().collect()), asked: Mutex::default() });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, shared }
    }

    /// Settings for a client that gives up late and waits for nothing.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.address.parse().unwrap());
        settings.attempt_timeout = Duration::from_mins(1);
        let backoff = Backoff::doubling(Duration::ZERO, Duration::ZERO);
        settings.retry = RetryPolicy { backoff, max_retries: 3 };
        settings.watch.backoff = backoff;
        settings.watch.poll_interval = Duration::ZERO;
        settings
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.settings()).unwrap()
    }

    /// All that was asked.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first lines of all that was asked.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

/// Time enough for every test.
pub(crate) fn budget() -> Budget {
    Budget::new(Duration::from_mins(2), CancellationToken::new())
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let target = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let target = target.strip_prefix("/api/hyperfleet/v1").unwrap_or(&target).to_owned();
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    let line = format!("{} {target}", parts.method);
    shared.asked.lock().unwrap().push(Asked { line, headers: parts.headers, body });
    let reply = shared.script.lock().unwrap().pop_front();
    reply.unwrap_or_else(|| Reply::status(500)).send().await
}

// === impl Reply ===

impl Reply {
    pub(crate) fn new(status: u16, body: impl fmt::Display) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: body.to_string(), end: End::Whole }
    }

    /// A status alone.
    pub(crate) fn status(status: u16) -> Self {
        Self { headers: Vec::new(), ..Self::new(status, "") }
    }

    /// A problem with one of HyperFleet's codes.
    pub(crate) fn problem(status: u16, code: &str) -> Self {
        let body = serde_json::json!({"code": format!("HYPERFLEET-{code}"), "detail": "in words", "status": status});
        Self::new(status, body).with("content-type", "application/problem+json")
    }

    /// Lines of a change stream, which then stays open.
    pub(crate) fn lines(lines: &[Value]) -> Self {
        let body = lines.iter().map(ToString::to_string).chain([String::new()]).collect::<Vec<_>>().join("\n");
        Self { end: End::Open, ..Self::new(200, body).with("content-type", "application/x-ndjson") }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value.to_string()));
        self
    }

    /// The same, with the connection breaking where the body ends.
    pub(crate) fn broken(self) -> Self {
        Self { end: End::Broken, ..self }
    }

    /// No answer at all.
    pub(crate) fn never() -> Self {
        Self { end: End::Never, ..Self::status(200) }
    }

    async fn send(self) -> Response {
        let first = stream::iter([Ok::<_, std::io::Error>(self.body.clone())]);
        let body = match self.end {
            End::Whole => Body::from(self.body),
            // What was written before must have left before the connection breaks.
            End::Broken => Body::from_stream(first.chain(stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("broken on purpose"))
            }))),
            End::Open => Body::from_stream(first.chain(stream::pending())),
            End::Never => {
                let never: Infallible = std::future::pending().await;
                match never {}
            }
        };
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(body).unwrap()
    }
}
