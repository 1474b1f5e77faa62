//! Serving HTTP: one listener, bounded patience with slow clients, a kind end.

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

/// How a listener treats its clients.
#[derive(Clone)]
pub struct Manners {
    /// A client has so long to send a request's head, and to say hello over TLS.
    pub head_timeout: Duration,
    /// So long open requests may take to end at a shutdown.
    pub drain_timeout: Duration,
    /// The identity to serve under; without one, plain HTTP is spoken.
    pub tls: Option<Arc<ServerConfig>>,
}

/// An address that is taken; nothing is answered yet.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Why a server's identity cannot be used. The files are named by their settings, not by their paths.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate in the file.
    #[error("the certificate file cannot be read as PEM certificates")]
    Certificate,
    /// There is no key in the file.
    #[error("the key file cannot be read as a PEM private key")]
    Key,
    /// They do not belong together, or cannot be used.
    #[error("certificate and key cannot be used together")]
    Pair(#[source] tokio_rustls::rustls::Error),
}

/// Takes an address; port 0 takes a free one.
pub async fn listen(host: &str, port: u16) -> io::Result<Listener> {
    let listener = TcpListener::bind((host, port)).await?;
    let address = listener.local_addr()?;
    Ok(Listener { listener, address })
}

/// A server's identity from PEM files.
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

// === impl Listener ===

impl Listener {
    /// The address that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop`; then takes no new connections, lets open requests end, and cuts what is left.
    pub async fn serve(self, router: Router, manners: Manners, stop: CancellationToken) {
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
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), manners.clone(), shutdown.watcher());
                    let cut = cut.clone();
                    tasks.spawn(async move {
                        tokio::select! {
                            () = cut.cancelled() => {}
                            () = connection => {}
                        }
                    });
                }
                // Out of file descriptors, or a client that has gone already: it passes.
                Err(_passing) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(self.listener);
        tasks.close();
        let drained = async {
            shutdown.shutdown().await;
            tasks.wait().await;
        };
        if tokio::time::timeout(manners.drain_timeout, drained).await.is_err() {
            cut.cancel();
            tasks.wait().await;
        }
    }
}

async fn connection(stream: TcpStream, router: Router, manners: Manners, watcher: Watcher) {
    // Answers are small and wait for nothing.
    let _no_matter = stream.set_nodelay(true);
    match &manners.tls {
        None => speak(stream, router, &manners, watcher).await,
        Some(config) => {
            let hello = TlsAcceptor::from(Arc::clone(config)).accept(stream);
            // A failed hello is the client's to see.
            if let Ok(Ok(stream)) = tokio::time::timeout(manners.head_timeout, hello).await {
                speak(stream, router, &manners, watcher).await;
            }
        }
    }
}

async fn speak<S>(stream: S, router: Router, manners: &Manners, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(manners.head_timeout);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(200);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    // How a connection ends changes nothing here: the client knows.
    let _ended = watcher.watch(connection).await;
}

impl std::fmt::Debug for Manners {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { head_timeout, drain_timeout, tls } = self;
        formatter
            .debug_struct("Manners")
            .field("head_timeout", head_timeout)
            .field("drain_timeout", drain_timeout)
            .field("tls", &tls.is_some())
            .finish()
    }
}
