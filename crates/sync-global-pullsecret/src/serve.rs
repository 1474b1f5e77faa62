//! `/healthz`, `/readyz`, `/status` and `/metrics`, on a Unix socket and, if wanted, on loopback.
//!
//! Four fixed answers need no HTTP framework: the request's first line is looked at, nothing else.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::status::Board;

/// How many are answered at once; others wait their turn.
const AT_ONCE: usize = 8;

/// The longest head of a request.
const LONGEST_HEAD: usize = 4096;

/// How long a request, and its answer, may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens on a Unix socket that only root can reach; what an earlier process has left there is replaced.
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

/// Answers on the socket, for as long as nobody drops it.
pub async fn socket(listener: UnixListener, board: Board) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => take_on(stream, &board, &turns).await,
            Err(_too_many_open_files) => sleep(Duration::from_secs(1)).await,
        }
    }
}

/// Answers on loopback, for as long as nobody drops it.
pub async fn loopback(listener: TcpListener, board: Board) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => take_on(stream, &board, &turns).await,
            Err(_too_many_open_files) => sleep(Duration::from_secs(1)).await,
        }
    }
}

async fn take_on<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(stream: S, board: &Board, turns: &Arc<Semaphore>) {
    let Ok(turn) = Arc::clone(turns).acquire_owned().await else { return };
    let board = board.clone();
    tokio::spawn(async move {
        // Whoever asks and does not listen gets no answer.
        let _unheard = timeout(PATIENCE, exchange(stream, &board)).await;
        drop(turn);
    });
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, board: &Board) -> io::Result<()> {
    let mut head = Vec::with_capacity(512);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > LONGEST_HEAD || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = answer(method, path, board);
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

fn answer(method: &str, path: &str, board: &Board) -> (&'static str, &'static str, String) {
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    const JSON: &str = "application/json";
    let json = |value: serde_json::Value| value.to_string() + "\n";
    if method != "GET" {
        return ("405 Method Not Allowed", TEXT, "only GET\n".to_owned());
    }
    match path {
        "/healthz" => ("200 OK", JSON, json(serde_json::json!({ "status": "ok" }))),
        "/readyz" => {
            let status = board.read();
            let word = if status.ready { "200 OK" } else { "503 Service Unavailable" };
            let body = serde_json::json!({ "ready": status.ready, "reason": status.reason, "message": status.message });
            (word, JSON, json(body))
        }
        "/status" => ("200 OK", JSON, json(serde_json::to_value(board.read()).unwrap_or_default())),
        "/metrics" => ("200 OK", TEXT, board.read().to_metrics()),
        _ => ("404 Not Found", TEXT, "there are /healthz, /readyz, /status and /metrics\n".to_owned()),
    }
}
