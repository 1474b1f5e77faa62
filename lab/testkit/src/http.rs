//! One HTTP/1.1 request on a connection of its own, with headers that clients of a library could not send.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// Status line and headers in lower case.
    pub head: String,
    pub body: Value,
}

impl Reply {
    /// The body, if the status is this one.
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        self.body
    }
}

/// Sends a request; each of `headers` ends with CRLF. `None` if the connection ended without an answer. A body that is no JSON
/// is returned as a text.
pub async fn exchange(address: SocketAddr, method: &str, path: &str, body: &str, headers: &str) -> Option<Reply> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A reset is as good as an end: only the answer counts.
    drop(stream.read_to_end(&mut answer).await);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = serde_json::from_str(body).unwrap_or_else(|_| json!(body));
    Some(Reply { status, head: head.to_lowercase(), body })
}
