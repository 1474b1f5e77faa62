//! Raw bytes on a connection, for requests that no HTTP client sends.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends bytes on a new connection and returns everything until the server closes it.
pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before it has read everything.
    let _broken = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request with headers, after which the server closes the connection.
pub(crate) fn head(line: &str, more: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n").into_bytes();
    bytes.extend_from_slice(more);
    bytes.extend_from_slice(b"\r\n");
    bytes
}
