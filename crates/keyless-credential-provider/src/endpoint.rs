//! The address at which tokens are exchanged.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An address to which tokens may be sent: `https://…`, or `http://` to this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name or address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_encrypted: bool,
    /// Begins with a slash.
    pub(crate) path: String,
    /// Host and port as they were written.
    authority: String,
}

/// A text that is no [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an https:// address (or http:// to this machine), without user, query or fragment")]
pub struct InvalidEndpoint;

// === impl Endpoint ===

impl Endpoint {
    /// Returns host and port for a proxy.
    pub(crate) fn target(&self) -> String {
        let host = &self.host;
        if host.contains(':') { format!("[{host}]:{}", self.port) } else { format!("{host}:{}", self.port) }
    }

    /// Returns host and port for the header `Host`.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}", self.authority, self.path)
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidEndpoint)?;
        let is_encrypted = scheme.eq_ignore_ascii_case("https");
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = host_and_port(authority).ok_or(InvalidEndpoint)?;
        let is_plain_loopback = scheme.eq_ignore_ascii_case("http") && is_loopback(host);
        let is_clean = path.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#'));
        if !(is_encrypted || is_plain_loopback) || !is_clean {
            return Err(InvalidEndpoint);
        }
        Ok(Self {
            host: host.to_owned(),
            port: port.unwrap_or(if is_encrypted { 443 } else { 80 }),
            is_encrypted,
            path: path.to_owned(),
            authority: authority.to_owned(),
        })
    }
}

/// Returns host, without brackets, and port of `HOST[:PORT]`.
pub(crate) fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
    } else {
        let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
        (!host.is_empty() && host.bytes().all(is_name)).then_some((host, port))?
    };
    let Some(port) = port else { return Some((host, None)) };
    // A sign would be parsed as a part of the number.
    let number = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((host, Some(number.parse().ok().filter(|port| *port != 0)?)))
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://quay.io", Some(("quay.io", 443, "/")))]
    #[case("HTTPS://quay.example.com:8443/a/b", Some(("quay.example.com", 8443, "/a/b")))]
    #[case("http://127.0.0.1:9000/x", Some(("127.0.0.1", 9000, "/x")))]
    #[case("http://[::1]:9000", Some(("::1", 9000, "/")))]
    #[case("http://[::ffff:127.0.0.1]", Some(("::ffff:127.0.0.1", 80, "/")))]
    #[case("http://localhost/", Some(("localhost", 80, "/")))]
    #[case("https://[2001:db8::1]/", Some(("2001:db8::1", 443, "/")))]
    #[case("http://10.0.0.7:9000", None)]
    #[case("http://localhost.example.com", None)]
    #[case("http://127.0.0.1.example.com", None)]
    #[case("http://0.0.0.0", None)]
    #[case("http://127.0.0.1@example.com/", None)]
    #[case("https://user:word@example.com", None)]
    #[case("https://example.com/?x=1", None)]
    #[case("https://example.com?x=1", None)]
    #[case("https://example.com/#x", None)]
    #[case("https://example.com/a b", None)]
    #[case("https://example.com/\r\nX: y", None)]
    #[case("https://example.com:/", None)]
    #[case("https://example.com:0", None)]
    #[case("https://example.com:+1", None)]
    #[case("https://example.com:65536", None)]
    #[case("https://[::1", None)]
    #[case("https://[quay.io]", None)]
    #[case("https:///x", None)]
    #[case("ftp://127.0.0.1", None)]
    #[case("quay.io", None)]
    #[case("", None)]
    fn tokens_are_sent_only_over_tls_or_loopback(#[case] url: &str, #[case] expected: Option<(&str, u16, &str)>) {
        let endpoint = url.parse::<Endpoint>().ok();
        let parts = endpoint.as_ref().map(|endpoint| (endpoint.host.as_str(), endpoint.port, endpoint.path.as_str()));
        assert_eq!(parts, expected);
    }
}
