//! One HTTP/1.1 request on a connection of its own, with headers that clients of a library could not send.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

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
    let stream = TcpStream::connect(address).await.unwrap();
    exchange_over(stream, method, path, body, &format!("host: {address}\r\n{headers}")).await
}

/// Sends a request on a connection that is there; one of `headers` is the host.
pub async fn exchange_over(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    method: &str,
    path: &str,
    body: &str,
    headers: &str,
) -> Option<Reply> {
    let length = body.len();
    let request =
        format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
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

/// Secures a connection, with `authority` (PEM) as the only one that is trusted. Fails if the server's certificate is not of
/// that authority or not of this machine.
pub async fn secured(stream: TcpStream, authority: &str) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::IpAddress(stream.peer_addr()?.ip().into());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}
