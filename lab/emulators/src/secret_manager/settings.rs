//! Settings of a server, the calls that it has received, and the errors of its start.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::faults::Fault;
use super::method::Method;
use super::status::Code;

/// Behaviour of a server.
#[derive(Clone)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The folder in which secrets outlive the server; in memory if none. One server at a time may use a folder.
    pub data_dir: Option<PathBuf>,
    /// Scripted faults, in the order in which they are tried.
    pub faults: Vec<Fault>,
    /// Limits a project and minute.
    pub quotas: Quotas,
    /// Minimum time of every call.
    pub latency: Duration,
    /// Lag of reads of metadata, lists, `latest` and aliases. Access by number never lags.
    pub metadata_lag: Duration,
    /// Permissions that every caller lacks, such as `secretmanager.versions.access`.
    pub denied_permissions: BTreeSet<String>,
    /// The bearer token without which a call is UNAUTHENTICATED.
    pub required_token: Option<String>,
}

/// Limits a project and minute, counted over the last 60 s; none means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Calls that read metadata.
    pub reads_per_minute: Option<u32>,
    /// Calls that change something.
    pub writes_per_minute: Option<u32>,
    /// Calls that read content.
    pub accesses_per_minute: Option<u32>,
}

/// A call that was received. It never holds a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The resource's or parent's name as the caller wrote it.
    pub resource: String,
    /// The protocol.
    pub wire: Wire,
    /// The code that was answered; none while it waits, and for good if its connection was cut or it hung.
    pub outcome: Option<Code>,
}

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// HTTP with JSON.
    Rest,
    /// gRPC over HTTP/2 without TLS.
    Grpc,
}

// === impl Settings ===

impl Default for Settings {
    /// In memory on a free port of the loopback interface, with nothing that gets in the way.
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            data_dir: None,
            faults: Vec::new(),
            quotas: Quotas::default(),
            latency: Duration::ZERO,
            metadata_lag: Duration::ZERO,
            denied_permissions: BTreeSet::new(),
            required_token: None,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listen, data_dir, faults, quotas, latency, metadata_lag, denied_permissions, required_token } = self;
        formatter
            .debug_struct("Settings")
            .field("listen", listen)
            .field("data_dir", data_dir)
            .field("faults", faults)
            .field("quotas", quotas)
            .field("latency", latency)
            .field("metadata_lag", metadata_lag)
            .field("denied_permissions", denied_permissions)
            .field("required_token", &required_token.as_ref().map(|_| "redacted"))
            .finish()
    }
}
