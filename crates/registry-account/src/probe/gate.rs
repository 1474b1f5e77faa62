//! The hosts and addresses that may be probed.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use daemon::host::{host_of, is_loopback};
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address;
use super::finding::Cause;

/// The hosts and addresses that may be probed.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// Hosts, with all subdomains, that are never probed.
    pub deny: Vec<String>,
    /// True if loopback and private addresses may be probed; link-local and metadata addresses never are.
    pub allow_private: bool,
    /// True if this machine is probed without TLS, as an emulator on it is; no other host ever is.
    pub plain_loopback: bool,
}

/// The error for an address that may not be probed.
#[derive(Debug, thiserror::Error)]
#[error("the address is not allowed")]
pub(super) struct NotAllowed;

/// The resolver of a gate: the client connects to its results, so only to checked addresses.
pub(super) struct GatedResolver(pub(super) Arc<Gate>);

/// Returns true if the host is on the list, or a subdomain of one that is.
pub fn is_denied(host: &str, deny: &[String]) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    deny.iter().any(|denied| {
        let above = host.strip_suffix(denied.as_str());
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    })
}

// === impl Gate ===

impl Gate {
    /// Returns the scheme for a host with or without a port.
    pub(super) fn scheme(&self, host: &str) -> &'static str {
        if self.plain_loopback && host_of(host).is_some_and(is_loopback) { "http" } else { "https" }
    }

    /// Checks the URL before its name is resolved.
    pub(super) fn admits(&self, url: &Url) -> Result<(), Cause> {
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else { return Err(Cause::NoHost) };
        let is_plain = self.plain_loopback && url.scheme() == "http" && is_loopback(host);
        if url.scheme() != "https" && !is_plain {
            return Err(Cause::NotHttps);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Cause::HasUser);
        }
        if is_denied(host, &self.deny) {
            return Err(Cause::Denied);
        }
        // The client takes an address as it is, without its resolver.
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if literal.is_ok_and(|address| !address::is_allowed(address, self.allow_private)) {
            return Err(Cause::NotAllowed);
        }
        Ok(())
    }

    async fn addresses(self: Arc<Self>, name: String) -> Result<Addrs, Box<dyn std::error::Error + Send + Sync>> {
        let found: Vec<SocketAddr> = tokio::net::lookup_host((name, 0)).await?.collect();
        // One address that is not allowed rejects the name: a mix of both is an attack.
        if found.is_empty() || found.iter().any(|one| !address::is_allowed(one.ip(), self.allow_private)) {
            return Err(Box::new(NotAllowed));
        }
        Ok(Box::new(found.into_iter()))
    }
}

impl Resolve for GatedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(Arc::clone(&self.0).addresses(name.as_str().to_owned()))
    }
}
