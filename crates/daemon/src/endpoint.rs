//! Addresses of services to which credentials may be sent.

use std::fmt;
use std::str::FromStr;

use crate::environment::Environment;
use crate::host::{host_of, is_loopback};

/// An address to which tokens may be sent: `https://…`, or `http://` to this machine. It is kept in its normal form: scheme and
/// host in lower case, without the scheme's own port and without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl(String);

/// A text that is no [`EndpointUrl`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an https:// address (or http:// to this machine), without user, query or fragment")]
pub struct InvalidEndpoint;

/// Returns the first of these variables of an environment whose address is not one to which tokens may be sent.
pub fn unsafe_variable<'a>(environment: &impl Environment, names: &[&'a str]) -> Option<&'a str> {
    let is_unsafe = |name: &str| match environment.text(name) {
        Ok(address) => address.is_some_and(|address| address.parse::<EndpointUrl>().is_err()),
        Err(_not_utf8) => true,
    };
    names.iter().copied().find(|name| is_unsafe(name))
}

// === impl EndpointUrl ===

impl EndpointUrl {
    /// Returns the address in its normal form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host, if requests to it are not encrypted.
    pub fn plain_host(&self) -> Option<&str> {
        host_of(self.0.strip_prefix("http://")?)
    }
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for EndpointUrl {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let uri: http::Uri = text.parse().map_err(|_error| InvalidEndpoint)?;
        let host = uri.host().ok_or(InvalidEndpoint)?;
        let is_encrypted = uri.scheme_str() == Some("https");
        let is_plain_loopback = uri.scheme_str() == Some("http") && is_loopback(host);
        let is_bare = !text.contains(['@', '?', '#']);
        if !(is_encrypted || is_plain_loopback) || !is_bare {
            return Err(InvalidEndpoint);
        }
        let (scheme, usual_port) = if is_encrypted { ("https", 443) } else { ("http", 80) };
        let port = uri.port_u16().filter(|port| *port != usual_port).map(|port| format!(":{port}")).unwrap_or_default();
        let (host, path) = (host.to_ascii_lowercase(), uri.path().trim_end_matches('/'));
        Ok(Self(format!("{scheme}://{host}{port}{path}")))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://secretmanager.europe-west1.rep.googleapis.com", true)]
    #[case("https://secretmanager.example.com:8443/", true)]
    #[case("http://127.0.0.1:9000", true)]
    #[case("http://[::1]:9000", true)]
    #[case("http://localhost:9000", true)]
    #[case("http://10.0.0.7:9000", false)]
    #[case("http://localhost.example.com", false)]
    #[case("https://user:word@example.com", false)]
    #[case("https://example.com?x=1", false)]
    #[case("127.0.0.1:9000", false)]
    #[case("ftp://127.0.0.1", false)]
    #[case("", false)]
    fn tokens_are_sent_only_over_tls_or_loopback(#[case] url: &str, #[case] allowed: bool) {
        assert_eq!(url.parse::<EndpointUrl>().is_ok(), allowed);
    }

    #[rstest]
    #[case("https://Vault.Example.com:8200/", "https://vault.example.com:8200")]
    #[case("HTTPS://vault.example.com:443", "https://vault.example.com")]
    #[case("https://vault.example.com/Proxy//", "https://vault.example.com/Proxy")]
    #[case("http://LOCALHOST:80", "http://localhost")]
    #[case("http://[::1]:8200/", "http://[::1]:8200")]
    fn an_address_has_one_form(#[case] url: &str, #[case] expected: &str) {
        let normal = url.parse::<EndpointUrl>().unwrap();
        assert_eq!(normal.as_str(), expected);
        assert_eq!(expected.parse::<EndpointUrl>().unwrap(), normal);
    }

    #[rstest]
    #[case::none(&[], None)]
    #[case::safe(&[("A", "https://a.example"), ("B", "http://localhost:1")], None)]
    #[case::blank(&[("A", " ")], None)]
    #[case::plain(&[("A", "https://a.example"), ("B", "http://10.0.0.1")], Some("B"))]
    #[case::of_another(&[("C", "http://10.0.0.1")], None)]
    fn an_unsafe_address_of_the_environment_is_named(
        #[case] variables: &[(&str, &str)],
        #[case] expected: Option<&str>,
    ) {
        let environment: std::collections::BTreeMap<&str, &str> = variables.iter().copied().collect();
        assert_eq!(unsafe_variable(&environment, &["A", "B"]), expected);
    }
}
