//! One request on a connection of its own, by hyper's HTTP/1 client.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use zeroize::Zeroizing;

/// Time limit for connecting, and then for the head of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum bytes that hyper buffers, which bounds the head of a response too.
const MAX_BUFFER: usize = 16 * 1024;

/// Idle time after which the kernel probes the connection, the time between probes, and the number of lost probes that
/// end it: a peer that vanished is noticed within half a minute.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;

/// Time that sent bytes may stay unacknowledged before the kernel ends the connection, in milliseconds.
const UNACKNOWLEDGED_LIMIT: u32 = 30_000;

/// The API server's address and the files that authenticate both sides.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// File with the certificates that sign the server's; `None` speaks plain HTTP.
    pub(crate) authority: Option<PathBuf>,
    /// File with the bearer token, read for every request because the kubelet replaces it every hour.
    pub(crate) token: PathBuf,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A response whose body has not been read yet.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Body,
}

/// A body that is read piece by piece. Dropping it closes the connection.
pub(crate) struct Body {
    incoming: Incoming,
    _sender: SendRequest<Full<Bytes>>,
    _connection: JoinSet<()>,
}

/// Requests a path with its query.
pub(crate) async fn get(server: &Server, target: &str) -> io::Result<Response> {
    request(server, Method::GET, target, None).await
}

/// Applies a JSON merge patch (RFC 7396). Returns the status of the response.
pub(crate) async fn merge_patch(server: &Server, target: &str, patch: Vec<u8>) -> io::Result<StatusCode> {
    Ok(request(server, Method::PATCH, target, Some(patch)).await?.status)
}

async fn request(server: &Server, method: Method, target: &str, patch: Option<Vec<u8>>) -> io::Result<Response> {
    let Ok(stream) = timeout(REQUEST_TIMEOUT, connect(server)).await else {
        return Err(io::Error::other("no connection"));
    };
    match timeout(REQUEST_TIMEOUT, send(server, stream?, method, target, patch)).await {
        Ok(response) => response,
        Err(_elapsed) => Err(io::Error::other("no response")),
    }
}

async fn connect(server: &Server) -> io::Result<Box<dyn Stream>> {
    let tcp = TcpStream::connect((server.host.as_str(), server.port)).await?;
    tcp.set_nodelay(true)?;
    detect_dead_peer(&tcp)?;
    let Some(authority) = &server.authority else { return Ok(Box::new(tcp)) };
    let connector = TlsConnector::from(Arc::new(tls(authority)?));
    let name = ServerName::try_from(server.host.clone()).map_err(io::Error::other)?;
    Ok(Box::new(connector.connect(name, tcp).await?))
}

/// Makes the kernel end a connection whose peer no longer answers.
fn detect_dead_peer(tcp: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(tcp, true)?;
    sockopt::set_tcp_keepidle(tcp, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(tcp, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(tcp, KEEPALIVE_PROBES)?;
    sockopt::set_tcp_user_timeout(tcp, UNACKNOWLEDGED_LIMIT)?;
    Ok(())
}

fn tls(authority: &Path) -> io::Result<ClientConfig> {
    let unusable = || io::Error::other("the file with the API server's authority has no usable certificate");
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(authority).map_err(|_unreadable| unusable())?;
    roots.add_parsable_certificates(certificates.flatten());
    if roots.is_empty() {
        return Err(unusable());
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(versions.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth())
}

async fn send(
    server: &Server,
    stream: Box<dyn Stream>,
    method: Method,
    target: &str,
    patch: Option<Vec<u8>>,
) -> io::Result<Response> {
    let host = if server.host.contains(':') { format!("[{}]", server.host) } else { server.host.clone() };
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header(HOST, format!("{host}:{}", server.port))
        .header(CONNECTION, "close")
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("sync-global-pullsecret/", env!("CARGO_PKG_VERSION")))
        .header(AUTHORIZATION, bearer(&server.token)?);
    if patch.is_some() {
        request = request.header(CONTENT_TYPE, "application/merge-patch+json");
    }
    let request = request.body(Full::from(patch.unwrap_or_default())).map_err(io::Error::other)?;
    let handshake = http1::Builder::new().max_buf_size(MAX_BUFFER).handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    let mut driver = JoinSet::new();
    driver.spawn(async {
        // An error of the connection reaches the reader of the body too.
        let _reported_there = connection.await;
    });
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let status = response.status();
    Ok(Response { status, body: Body { incoming: response.into_body(), _sender: sender, _connection: driver } })
}

/// The `Authorization` header with the token of the file.
fn bearer(token: &Path) -> io::Result<HeaderValue> {
    let text = std::fs::read(token).map(Zeroizing::new);
    let text = text.map_err(|error| io::Error::other(format!("no service account token: {}", error.kind())))?;
    let invalid = || io::Error::other("the file of the service account token holds no token");
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_graphic) {
        return Err(invalid());
    }
    let value = Zeroizing::new([b"Bearer ", text].concat());
    let mut header = HeaderValue::from_bytes(&value).map_err(|_invalid| invalid())?;
    header.set_sensitive(true);
    Ok(header)
}

/// Appends without leaving a copy behind when the buffer has to grow.
fn append(buffer: &mut Zeroizing<Vec<u8>>, bytes: &[u8]) {
    if buffer.capacity() - buffer.len() < bytes.len() {
        let mut larger = Vec::with_capacity((buffer.len() + bytes.len()).next_power_of_two());
        larger.extend_from_slice(buffer);
        *buffer = Zeroizing::new(larger);
    }
    buffer.extend_from_slice(bytes);
}

// === impl Body ===

impl Body {
    /// Appends the next piece. Returns false at the end of the body.
    pub(crate) async fn read(&mut self, buffer: &mut Zeroizing<Vec<u8>>) -> io::Result<bool> {
        loop {
            match self.incoming.frame().await {
                None => return Ok(false),
                Some(Err(error)) => return Err(io::Error::other(error)),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        append(buffer, &bytes);
                        return Ok(true);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// The body that a client reads from a server that writes `text` and closes.
    async fn body(text: &'static str) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = async move {
            let (mut stream, _peer) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                assert_ne!(stream.read_buf(&mut head).await.unwrap(), 0);
            }
            // One byte at a time: every boundary falls somewhere.
            for byte in format!("HTTP/1.1 200 OK\r\n{text}").bytes() {
                if stream.write_all(&[byte]).await.is_err() {
                    return;
                }
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        daemon::file::replace(&token, b"t0ken\n").unwrap();
        let server = Server { host: "127.0.0.1".to_owned(), port, authority: None, token };
        let reading = async {
            let mut response = get(&server, "/").await.ok()?;
            let mut buffer = Zeroizing::new(Vec::new());
            while response.body.read(&mut buffer).await.ok()? {}
            Some(String::from_utf8(buffer.to_vec()).unwrap())
        };
        tokio::join!(serving, reading).1
    }

    #[rstest]
    #[case::length("Content-Length: 5\r\n\r\nhello and more", Some("hello"))]
    #[case::length_zero("Content-Length: 0\r\n\r\nmore", Some(""))]
    #[case::cut_short("Content-Length: 5\r\n\r\nhel", None)]
    #[case::until_end("\r\nhello", Some("hello"))]
    #[case::chunks("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n", Some("hello!"))]
    #[case::trailers("Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n", Some("0123456789"))]
    #[case::chunks_cut_short("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", None)]
    #[case::no_number("Transfer-Encoding: chunked\r\n\r\nx\r\nhello\r\n", None)]
    #[case::negative("Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", None)]
    #[case::larger_than_declared("Transfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", None)]
    #[case::beyond_all_numbers("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", None)]
    #[tokio::test]
    async fn bodies(#[case] text: &'static str, #[case] expected: Option<&str>) {
        assert_eq!(body(text).await.as_deref(), expected);
    }

    #[tokio::test]
    async fn the_kernel_ends_a_connection_to_a_vanished_peer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        detect_dead_peer(&tcp).unwrap();
        assert!(sockopt::socket_keepalive(&tcp).unwrap());
        let probing = sockopt::tcp_keepintvl(&tcp).unwrap() * sockopt::tcp_keepcnt(&tcp).unwrap();
        assert!(sockopt::tcp_keepidle(&tcp).unwrap() + probing <= Duration::from_secs(30));
        assert!((1..=30_000).contains(&sockopt::tcp_user_timeout(&tcp).unwrap()));
    }
}
