//! HTTP listeners: start errors that name the setting to change, TLS, limits for silent and slow clients, graceful shutdown.

mod body;
mod connection;
pub(crate) mod expiry;
mod limits;
mod options;
mod readers;
mod stream;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use connection::Connection;
use hyper_util::server::graceful::GracefulShutdown;
use limits::Connections;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::settings::Table;

pub use body::read_limited;
pub use expiry::certificate_expiry;
pub use limits::ConnectionLimits;
pub use options::ServeOptions;
pub use tls::{TlsError, expose_client, tls};

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
    socket: TcpListener,
    address: SocketAddr,
    limits: ConnectionLimits,
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

/// Binds an address.
pub async fn listen(endpoint: &Endpoint<'_>) -> Result<Listener, ListenError> {
    let bound = async {
        let socket = TcpListener::bind((endpoint.host, endpoint.port)).await?;
        let address = socket.local_addr()?;
        Ok(Listener { socket, address, limits: ConnectionLimits::default() })
    };
    bound.await.map_err(|error| ListenError::new(endpoint, error))
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

    /// Replaces the limits of connections.
    #[must_use]
    pub fn with_limits(self, limits: ConnectionLimits) -> Self {
        Self { limits, ..self }
    }

    /// Moves the listener to the runtime that this is called in.
    pub(crate) fn moved(self) -> impl FnOnce() -> io::Result<Self> {
        let Self { socket, address, limits } = self;
        let socket = socket.into_std();
        move || Ok(Self { socket: TcpListener::from_std(socket?)?, address, limits })
    }

    /// Serves until `stop`. Then closes the listener, lets open requests complete within the drain timeout, and closes
    /// the remaining connections.
    pub async fn serve(self, router: Router, options: ServeOptions, stop: CancellationToken) {
        let tasks = TaskTracker::new();
        let cut = CancellationToken::new();
        let _cut_when_dropped = cut.clone().drop_guard();
        let shutdown = GracefulShutdown::new();
        let mut connections = Connections::new(self.limits.connections);
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = connections.accept(&self.socket) => accepted,
            };
            let (stream, place) = match accepted {
                Ok(accepted) => accepted,
                // Out of file descriptors, or the client has already gone: both pass.
                Err(_passing) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let connection = Connection { place, limits: self.limits, options: options.clone() };
            let router = match stream.peer_addr() {
                Ok(peer) => router.clone().layer(axum::Extension(Peer(peer))),
                // The client has gone.
                Err(_gone) => continue,
            };
            let connection = connection.serve(stream, router, shutdown.watcher());
            let cut = cut.clone();
            tasks.spawn(async move {
                tokio::select! {
                    () = cut.cancelled() => {}
                    () = connection => {}
                }
            });
        }
        drop(self.socket);
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

#[cfg(test)]
mod tests;
