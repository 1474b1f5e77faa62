//! Options of a listener that are chosen by its daemon.

use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::ServerConfig;

/// Timeouts and identity of a listener.
#[derive(Clone)]
pub struct ServeOptions {
    /// Maximum time to complete the TLS handshake, to send the first byte, and to send the head of a request.
    pub head_timeout: Duration,
    /// Maximum time for open requests to complete during shutdown.
    pub drain_timeout: Duration,
    /// Certificate and key; without them the listener serves plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
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
