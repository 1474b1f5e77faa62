//! As much of HTTP/1.1 as it takes to ask one server for one thing: `GET`, one request a connection.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use zeroize::Zeroizing;

use super::chunks::{Body, Framing, line};

/// How long connecting, and then the head of an answer, may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// More than any server's head has.
const MOST_HEADERS: usize = 100;

/// A server, and how to be let in.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// Name or address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// The certificates that sign the server's; `None` speaks without encryption.
    pub(super) authority: Option<PathBuf>,
    /// The file with the bearer token, read anew for every request, as it is replaced every hour.
    pub(super) token: Option<PathBuf>,
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// An answer whose body has not been read yet.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Body<BufReader<Box<dyn Stream>>>,
}

/// Asks for a path with its query.
pub(super) async fn get(server: &Server, target: &str) -> io::Result<Answer> {
    match timeout(PATIENCE, connect(server)).await {
        Ok(stream) => match timeout(PATIENCE, ask(server, stream?, target)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(io::Error::other("it does not answer")),
        },
        Err(_elapsed) => Err(io::Error::other("no connection")),
    }
}

async fn connect(server: &Server) -> io::Result<Box<dyn Stream>> {
    let tcp = TcpStream::connect((server.host.as_str(), server.port)).await?;
    tcp.set_nodelay(true)?;
    let Some(authority) = &server.authority else { return Ok(Box::new(tcp)) };
    let connector = TlsConnector::from(Arc::new(trust(authority)?));
    let name = ServerName::try_from(server.host.clone()).map_err(io::Error::other)?;
    Ok(Box::new(connector.connect(name, tcp).await?))
}

fn trust(authority: &Path) -> io::Result<ClientConfig> {
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

async fn ask(server: &Server, mut stream: Box<dyn Stream>, target: &str) -> io::Result<Answer> {
    let authority = if server.host.contains(':') { format!("[{}]", server.host) } else { server.host.clone() };
    let mut request = Zeroizing::new(String::with_capacity(16 * 1024));
    let version = env!("CARGO_PKG_VERSION");
    for part in ["GET ", target, " HTTP/1.1\r\nHost: ", &authority, ":", &server.port.to_string()] {
        request.push_str(part);
    }
    request.push_str("\r\nConnection: close\r\nAccept: application/json\r\nUser-Agent: sync-global-pullsecret/");
    request.push_str(version);
    if let Some(token) = &server.token {
        let text = std::fs::read(token).map(Zeroizing::new);
        let text = text.map_err(|error| io::Error::other(format!("no service account token: {}", error.kind())))?;
        let text = std::str::from_utf8(&text).map(str::trim).unwrap_or_default();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(io::Error::other("the file of the service account token holds no token"));
        }
        request.push_str("\r\nAuthorization: Bearer ");
        request.push_str(text);
    }
    request.push_str("\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    head(BufReader::new(stream)).await
}

async fn head(mut stream: BufReader<Box<dyn Stream>>) -> io::Result<Answer> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    stream.fill_buf().await?;
    let first = line(&mut stream).await?;
    let status =
        first.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok()).ok_or_else(invalid)?;
    let mut framing = Framing::UntilEnd;
    for _header in 0..MOST_HEADERS {
        let header = line(&mut stream).await?;
        if header.is_empty() {
            return Ok(Answer { status, body: Body::new(stream, framing) });
        }
        let (name, value) = header.split_once(':').ok_or_else(invalid)?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") {
            if !value.eq_ignore_ascii_case("chunked") {
                return Err(invalid());
            }
            framing = Framing::Chunked;
        } else if name.eq_ignore_ascii_case("content-length") && framing != Framing::Chunked {
            framing = Framing::Length(value.parse().map_err(|_no_number| invalid())?);
        }
    }
    Err(invalid())
}
