//! An API as HyperFleet's Go server serves it: without the superset that our own server adds to the contract.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::http::{Reply, exchange};
use crate::hyperfleet::HyperFleetApi;

/// A server before an API that counts requests; one that speaks as the Go server does hides the superset:
///
/// - resources have no `status.adapters`, and their pull secret is in their spec in clear;
/// - there is no change stream and no history, and statuses are written by PUT only.
#[derive(Debug)]
pub struct GoApi {
    pub address: String,
    asked: Arc<Mutex<Vec<String>>>,
    failing: Arc<Mutex<Option<String>>>,
    serving: JoinHandle<()>,
}

/// The server behind, and how it is shown.
#[derive(Clone)]
struct Behind {
    api: SocketAddr,
    is_go: bool,
    asked: Arc<Mutex<Vec<String>>>,
    failing: Arc<Mutex<Option<String>>>,
}

/// A request that was read whole.
struct Request {
    method: String,
    target: String,
    headers: String,
    body: String,
}

impl GoApi {
    /// Shows the API as the Go server serves it.
    pub async fn before(api: &HyperFleetApi) -> Self {
        Self::start(api, true).await
    }

    /// Shows the API as it is.
    pub async fn transparent(api: &HyperFleetApi) -> Self {
        Self::start(api, false).await
    }

    async fn start(api: &HyperFleetApi, is_go: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let failing = Arc::<Mutex<Option<String>>>::default();
        let api = api.address.parse().unwrap();
        let behind = Behind { api, is_go, asked: Arc::clone(&asked), failing: Arc::clone(&failing) };
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(behind.clone().serve(stream));
            }
        });
        Self { address, asked, failing, serving }
    }

    /// The requests so far, such as `GET /clusters/cls-1/statuses`, below the API's path and without a query.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Answers 503 to every request below this path from now on.
    pub fn fail(&self, path: &str) {
        *self.failing.lock().unwrap() = Some(path.to_owned());
    }

    /// Ends the failure.
    pub fn recover(&self) {
        *self.failing.lock().unwrap() = None;
    }

    /// The number of requests that begin and end with these.
    pub fn count(&self, begin: &str, end: &str) -> usize {
        self.asked().iter().filter(|asked| asked.starts_with(begin) && asked.ends_with(end)).count()
    }
}

impl Drop for GoApi {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Behind {
    async fn serve(self, mut stream: TcpStream) {
        let Some(request) = read(&mut stream).await else { return };
        let reply = self.answer(&request).await;
        let Some(Reply { status, body, .. }) = reply else { return };
        let (kind, body) = match body {
            Value::String(text) if text.is_empty() => ("application/json", String::new()),
            Value::String(text) => ("text/plain", text),
            body if status >= 400 => ("application/problem+json", body.to_string()),
            body => ("application/json", body.to_string()),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        // The client may have gone.
        drop(stream.write_all(format!("{head}{body}").as_bytes()).await);
    }

    async fn answer(&self, request: &Request) -> Option<Reply> {
        let Request { method, target, headers, body } = request;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let short = path.strip_prefix("/api/hyperfleet/v1").unwrap_or(path);
        self.asked.lock().unwrap().push(format!("{method} {short}"));
        let fails = self.failing.lock().unwrap().as_ref().is_some_and(|failing| short.starts_with(failing));
        if fails {
            let body = json!({"code": "HYPERFLEET-SVC-001", "status": 503, "detail": "a scripted failure"});
            return Some(Reply { status: 503, head: String::new(), body });
        }
        if !self.is_go {
            return exchange(self.api, method, target, body, headers).await;
        }
        if method == "POST" && short.ends_with("/statuses") {
            return Some(Reply { status: 405, head: String::new(), body: json!("Method Not Allowed\n") });
        }
        if short.ends_with("/history") || short.starts_with("/tombstones") || short.starts_with("/causes") {
            let body =
                json!({"code": "HYPERFLEET-NTF-000", "status": 404, "detail": "The requested endpoint does not exist"});
            return Some(Reply { status: 404, head: String::new(), body });
        }
        let ours = ["watch", "include", "resource_version"];
        let mut kept: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
        kept.retain(|pair| !ours.contains(&pair.split('=').next().unwrap_or_default()));
        if method == "GET" && short.split('/').count() == 3 {
            kept.push("include=pullSecret");
        }
        let target = format!("{path}?{}", kept.join("&"));
        let mut reply = exchange(self.api, method, &target, body, headers).await?;
        for item in reply.body.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
            hide_adapters(item);
        }
        hide_adapters(&mut reply.body);
        Some(reply)
    }
}

fn hide_adapters(resource: &mut Value) {
    resource.get_mut("status").and_then(Value::as_object_mut).map(|status| status.remove("adapters"));
}

/// Reads a request with a `content-length`; `None` if the connection ended before.
async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.trim_end().split("\r\n");
    let first: Vec<&str> = lines.next()?.split(' ').collect();
    let (method, target) = (first.first()?.to_string(), first.get(1)?.to_string());
    let of = |line: &str, name: &str| line.split(':').next().is_some_and(|found| found.eq_ignore_ascii_case(name));
    let (mut length, mut headers) = (0, String::new());
    for line in lines {
        if of(line, "content-length") {
            length = line.split(':').nth(1)?.trim().parse().ok()?;
        } else if ["authorization", "content-type", "accept"].iter().any(|name| of(line, name)) {
            headers += &[line, "\r\n"].concat();
        }
    }
    while bytes.len() < end + length {
        more(stream, &mut bytes).await?;
    }
    Some(Request { method, target, headers, body: String::from_utf8(bytes[end..].to_vec()).ok()? })
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let count = stream.read_buf(bytes).await.ok()?;
    (count > 0).then_some(())
}
