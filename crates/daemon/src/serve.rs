//! HTTP listeners: start errors that name the setting to change, TLS, timeouts for slow clients, graceful shutdown.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::settings::Table;

/// Timeouts and identity of a listener.
#[derive(Clone)]
pub struct ServeOptions {
    /// Maximum time to complete the TLS handshake, and to send the head of a request.
    pub head_timeout: Duration,
    /// Maximum time for open requests to complete during shutdown.
    pub drain_timeout: Duration,
    /// Certificate and key; without them the listener serves plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
}

/// The address of a connection's other end, an extension of each of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Configured address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint<'a> {
    /// Purpose of the listener in error messages, such as `probes`.
    pub purpose: &'static str,
    /// Host name or IP address.
    pub host: &'a str,
    /// Port; 0 takes a free one.
    pub port: u16,
    /// Settings that change the host, such as `HEALTH_HOST or --health-host`.
    pub host_setting: String,
    /// Settings that change the port, such as `HEALTH_PORT or --health-port`.
    pub port_setting: String,
}

/// A bound listener that does not serve yet.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

/// An address that cannot be bound, with the setting to change.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {purpose}: {problem}; {advice}")]
pub struct ListenError {
    address: String,
    purpose: &'static str,
    problem: String,
    advice: String,
    source: io::Error,
}

/// A certificate or key that cannot be used. The files are named by their settings, not by their paths.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file holds no certificate.
    #[error("the certificate file cannot be read as PEM certificates")]
    Certificate,
    /// The file holds no key.
    #[error("the key file cannot be read as a PEM private key")]
    Key,
    /// Certificate and key do not belong together, or cannot be used.
    #[error("certificate and key cannot be used together")]
    Pair(#[source] tokio_rustls::rustls::Error),
}

/// Binds an address.
pub async fn listen(endpoint: &Endpoint<'_>) -> Result<Listener, ListenError> {
    let bound = async {
        let listener = TcpListener::bind((endpoint.host, endpoint.port)).await?;
        let address = listener.local_addr()?;
        Ok(Listener { listener, address })
    };
    bound.await.map_err(|error| ListenError::new(endpoint, error))
}

/// Reads a server's certificate and key from PEM files.
pub fn tls(certificate_file: &Path, key_file: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let certificates = CertificateDer::pem_file_iter(certificate_file).map_err(|_unreadable| TlsError::Certificate)?;
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(|_no_pem| TlsError::Certificate)?;
    let key = PrivateKeyDer::from_pem_file(key_file).map_err(|_no_pem| TlsError::Key)?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

// === impl Endpoint ===

impl<'a> Endpoint<'a> {
    /// The address that the settings `SECTION.host` and `SECTION.port` of `table` have given.
    pub fn new(table: &Table, section: &str, purpose: &'static str, host: &'a str, port: u16) -> Self {
        let setting = |member: &str| ways(table, &format!("{section}.{member}"));
        Self { purpose, host, port, host_setting: setting("host"), port_setting: setting("port") }
    }
}

/// The ways to give a setting, such as `HEALTH_PORT or --health-port`.
fn ways(table: &Table, path: &str) -> String {
    table.all().into_iter().find(|row| row.path == path).map_or_else(|| path.to_owned(), |row| table.ways(row))
}

// === impl ListenError ===

impl ListenError {
    fn new(endpoint: &Endpoint<'_>, source: io::Error) -> Self {
        let Endpoint { purpose, host, port, host_setting, port_setting } = endpoint;
        let (problem, advice) = match source.kind() {
            io::ErrorKind::AddrInUse => (
                "address already in use".to_owned(),
                format!("another program uses the port: choose another with {port_setting}"),
            ),
            io::ErrorKind::PermissionDenied => {
                ("permission denied".to_owned(), format!("choose a port from 1024 with {port_setting}"))
            }
            io::ErrorKind::AddrNotAvailable => (
                "address not available".to_owned(),
                format!("this machine has no such address: choose one with {host_setting}"),
            ),
            // The resolver has no error kind of its own.
            kind => (kind.to_string(), format!("check the host in {host_setting} and the port in {port_setting}")),
        };
        let host = if host.contains(':') { format!("[{host}]") } else { (*host).to_owned() };
        Self { address: format!("{host}:{port}"), purpose, problem, advice, source }
    }

    /// The kind of the operating system's error.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

// === impl Listener ===

impl Listener {
    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`. Then closes the listener, lets open requests complete within the drain timeout, and closes
    /// the remaining connections.
    pub async fn serve(self, router: Router, options: ServeOptions, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        let cut = CancellationToken::new();
        let _cut_when_dropped = cut.clone().drop_guard();
        let shutdown = GracefulShutdown::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let router = router.clone().layer(axum::Extension(Peer(peer)));
                    let connection = serve_stream(stream, router, options.clone(), shutdown.watcher());
                    let cut = cut.clone();
                    tasks.spawn(async move {
                        tokio::select! {
                            () = cut.cancelled() => {}
                            () = connection => {}
                        }
                    });
                }
                // Out of file descriptors, or the client has already gone: both pass.
                Err(_passing) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(self.listener);
        tasks.close();
        let drained = async {
            shutdown.shutdown().await;
            tasks.wait().await;
        };
        if tokio::time::timeout(options.drain_timeout, drained).await.is_err() {
            cut.cancel();
            tasks.wait().await;
        }
    }
}

async fn serve_stream(stream: TcpStream, router: Router, options: ServeOptions, watcher: Watcher) {
    // Without it small responses are delayed; a failure to set it changes nothing else.
    let _best_effort = stream.set_nodelay(true);
    match &options.tls {
        None => serve_http(stream, router, &options, watcher).await,
        Some(config) => {
            let handshake = TlsAcceptor::from(Arc::clone(config)).accept(stream);
            // The client sees a failed handshake.
            if let Ok(Ok(stream)) = tokio::time::timeout(options.head_timeout, handshake).await {
                serve_http(stream, router, &options, watcher).await;
            }
        }
    }
}

async fn serve_http<S>(stream: S, router: Router, options: &ServeOptions, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(options.head_timeout);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(200);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    // The client sees a connection that ends with an error.
    let _ended = watcher.watch(connection).await;
}

impl std::fmt::Debug for ServeOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { head_timeout, drain_timeout, tls } = self;
        formatter
            .debug_struct("ServeOptions")
            .field("head_timeout", head_timeout)
            .field("drain_timeout", drain_timeout)
            .field("tls", &tls.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::common;

    const TABLE: Table = Table::of(&[common::HEALTH]);

    fn endpoint(host: &str, port: u16) -> Endpoint<'_> {
        Endpoint::new(&TABLE, "health", "probes", host, port)
    }

    #[tokio::test]
    async fn a_port_in_use_names_address_purpose_and_setting() {
        let first = listen(&endpoint("127.0.0.1", 0)).await.unwrap();
        let port = first.address().port();
        let error = listen(&endpoint("127.0.0.1", port)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(
            error.to_string(),
            format!(
                "cannot listen on 127.0.0.1:{port} for probes: address already in use; \
                 another program uses the port: choose another with HEALTH_PORT or --health-port"
            )
        );
    }

    #[tokio::test]
    async fn an_address_of_another_machine_names_the_host_setting() {
        // 192.0.2.0/24 is reserved for documentation (RFC 5737).
        let error = listen(&endpoint("192.0.2.1", 0)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot listen on 192.0.2.1:0 for probes: address not available; \
             this machine has no such address: choose one with HEALTH_HOST or --health-host"
        );
    }

    #[test]
    fn a_privileged_port_and_other_errors_name_their_settings() {
        let message = |kind: io::ErrorKind| ListenError::new(&endpoint("::1", 80), kind.into()).to_string();
        assert_eq!(
            message(io::ErrorKind::PermissionDenied),
            "cannot listen on [::1]:80 for probes: permission denied; \
             choose a port from 1024 with HEALTH_PORT or --health-port"
        );
        assert!(
            message(io::ErrorKind::InvalidInput).ends_with(
                "check the host in HEALTH_HOST or --health-host and the port in HEALTH_PORT or --health-port"
            )
        );
    }
}
