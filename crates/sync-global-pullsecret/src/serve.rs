//! Serves `/healthz`, `/readyz`, `/status` and `/metrics` on a Unix socket and, if configured, on loopback; on an address for
//! the network, if configured, only `/metrics`.
//!
//! Four fixed responses need no HTTP framework: only the first line of a request is read.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::status::SharedStatus;

/// Maximum requests served at once; others wait.
const MAX_CONCURRENT: usize = 8;

/// Maximum bytes of the head of a request.
const MAX_HEAD_BYTES: usize = 4096;

/// Time limit of a request and its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Listens on a Unix socket that only root can reach. Replaces the socket of an earlier process.
pub fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves the socket until the future is dropped.
pub async fn socket(listener: UnixListener, status: SharedStatus) {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => spawn_exchange(stream, &status, &permits, Scope::All).await,
            Err(_too_many_open_files) => sleep(Duration::from_secs(1)).await,
        }
    }
}

/// The responses that a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All responses.
    All,
    /// Only `/metrics`.
    Metrics,
}

/// Serves an address until the future is dropped.
pub async fn address(listener: TcpListener, status: SharedStatus, scope: Scope) {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => spawn_exchange(stream, &status, &permits, scope).await,
            Err(_too_many_open_files) => sleep(Duration::from_secs(1)).await,
        }
    }
}

async fn spawn_exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    status: &SharedStatus,
    permits: &Arc<Semaphore>,
    scope: Scope,
) {
    let Ok(permit) = Arc::clone(permits).acquire_owned().await else { return };
    let status = status.clone();
    tokio::spawn(async move {
        // A client that disconnects gets no response.
        let _disconnected = timeout(REQUEST_TIMEOUT, exchange(stream, &status, scope)).await;
        drop(permit);
    });
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    status: &SharedStatus,
    scope: Scope,
) -> io::Result<()> {
    let mut head = Vec::with_capacity(512);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > MAX_HEAD_BYTES || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut parts = head.split(' ');
    let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Response { status, content_type, body } = respond(method, path, status, scope);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

struct Response {
    status: &'static str,
    content_type: &'static str,
    body: String,
}

impl Response {
    fn text(status: &'static str, body: impl Into<String>) -> Self {
        Self { status, content_type: "text/plain; version=0.0.4; charset=utf-8", body: body.into() }
    }

    fn json(status: &'static str, value: &serde_json::Value) -> Self {
        Self { status, content_type: "application/json", body: format!("{value}\n") }
    }
}

fn respond(method: &str, path: &str, status: &SharedStatus, scope: Scope) -> Response {
    if method != "GET" {
        return Response::text("405 Method Not Allowed", "only GET\n");
    }
    match path {
        "/metrics" => Response::text("200 OK", status.read().to_metrics()),
        _ if scope == Scope::Metrics => Response::text("404 Not Found", "there is /metrics\n"),
        "/healthz" => Response::json("200 OK", &serde_json::json!({ "status": "ok" })),
        "/readyz" => {
            let status = status.read();
            let code = if status.ready { "200 OK" } else { "503 Service Unavailable" };
            let body = serde_json::json!({ "ready": status.ready, "reason": status.reason, "message": status.message });
            Response::json(code, &body)
        }
        "/status" => Response::json("200 OK", &serde_json::to_value(status.read()).unwrap_or_default()),
        _ => Response::text("404 Not Found", "there are /healthz, /readyz, /status and /metrics\n"),
    }
}
