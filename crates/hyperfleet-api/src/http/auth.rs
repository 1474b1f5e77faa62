//! Authentication: the caller's identity, tenancy and permissions.

use std::collections::BTreeMap;
use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::jwt::Issuers;
use super::proxies::{Proxies, Trust};
use crate::authorization::{Grants, Identity, Permissions};
use crate::problem::{Code, Problem, Rejection};
use crate::service::Caller;

/// The identity of every caller while authentication is off.
pub const SYSTEM_IDENTITY: &str = "system@hyperfleet.local";

/// Maximum length of an identity in the store, in characters.
const MAX_IDENTITY: usize = 256;

/// The authentication of callers and their permissions.
#[derive(Debug, Default)]
pub struct Authentication {
    /// The issuers of tokens; `None` where authentication is off.
    pub issuers: Option<Issuers>,
    /// The permissions of the issuers' identities.
    pub grants: Grants,
    /// The tenancy of the resources that a caller creates.
    pub tenancy: Option<Tenancy>,
    /// The peers whose headers about the caller are believed.
    pub proxies: Proxies,
    /// A token that adds reading a pull secret, for components on the same machine; only where authentication is off.
    pub reader_token: Option<SecretString>,
}

/// The head of a request, as far as it says who calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) headers: &'a HeaderMap,
    /// The address of the connection's other end, if it has one.
    pub(super) peer: Option<IpAddr>,
    /// True if the request may change something.
    pub(super) writes: bool,
    /// True if the request is a report, which sets no tenancy.
    pub(super) reports: bool,
}

/// The headers that set the tenancy of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenancy {
    /// A header that marks the caller as a system component if its value is `true`.
    #[serde(default)]
    pub system_header: Option<String>,
    /// The dimensions of tenancy.
    #[serde(default)]
    pub dimensions: Vec<Dimension>,
}

/// One dimension of tenancy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dimension {
    /// The header that carries the value.
    pub header: String,
    /// The key in a resource's `tenancy`.
    pub key: String,
    /// True if a request without the header is refused.
    #[serde(default)]
    pub required: bool,
}

// === impl Authentication ===

impl Authentication {
    /// Authenticates the caller of a request, or returns the problem that refuses it.
    pub(super) async fn authenticate(&self, head: Head<'_>, now: Timestamp) -> Result<Caller, Rejection> {
        let Some(issuers) = &self.issuers else {
            check_local(head)?;
            let identity = Identity { subject: SYSTEM_IDENTITY.to_owned(), ..Identity::default() };
            let permissions = Permissions::unauthenticated(self.holds_reader_token(head.headers));
            return Ok(Caller { identity, permissions, tenancy: BTreeMap::new() });
        };
        let identity = issuers.identity(head.headers, self.proxies.trust(head.peer), now).await?;
        let identity = identity.filter(|identity| is_identity(&identity.subject));
        let unusable = || Problem::new(Code::Unauthenticated, "the caller's token names no usable identity");
        let identity = identity.ok_or_else(unusable)?;
        let permissions = self.grants.of(&identity);
        Ok(Caller { identity, permissions, tenancy: BTreeMap::new() })
    }

    /// Adds the tenancy that the request's headers set for what the caller creates, or refuses the request.
    pub(super) fn admit(&self, caller: &mut Caller, head: Head<'_>) -> Result<(), Problem> {
        if !head.writes || head.reports {
            return Ok(());
        }
        if self.is_system(head.headers) {
            let detail = "system identities may only write status and conditions";
            return Err(Problem::new(Code::PermissionDenied, detail));
        }
        if self.tenancy.is_some() && self.proxies.trust(head.peer) == Trust::Stranger {
            let detail = "the headers that set the tenancy are believed only from a proxy in server.proxies, and this request \
                          comes from another address";
            return Err(Problem::new(Code::PermissionDenied, detail));
        }
        caller.tenancy = self.tenancy(head.headers)?;
        Ok(())
    }

    /// True if the caller sends the token that adds reading pull secrets.
    fn holds_reader_token(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.reader_token else { return false };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        given.is_some_and(|given| {
            aws_lc_rs::constant_time::verify_slices_are_equal(given, token.expose_secret().as_bytes()).is_ok()
        })
    }

    fn is_system(&self, headers: &HeaderMap) -> bool {
        let header = self.tenancy.as_ref().and_then(|tenancy| tenancy.system_header.as_ref());
        header.and_then(|header| headers.get(header)).is_some_and(|value| value == "true")
    }

    fn tenancy(&self, headers: &HeaderMap) -> Result<BTreeMap<String, String>, Problem> {
        let dimensions = self.tenancy.iter().flat_map(|tenancy| &tenancy.dimensions);
        let mut values = BTreeMap::new();
        for Dimension { header, key, required } in dimensions {
            match headers.get(header).map(|value| value.to_str().unwrap_or("\0")).filter(|value| !value.is_empty()) {
                None if *required => {
                    let detail = format!("the header {header} is required: it sets the tenancy of the resource");
                    return Err(Problem::new(Code::PermissionDenied, detail));
                }
                None => {}
                Some(value) if is_tenant(value) => drop(values.insert(key.clone(), value.to_owned())),
                Some(_) => {
                    let detail =
                        format!("the header {header} must have 1 to 63 letters, digits, dots, underscores and hyphens");
                    return Err(Problem::new(Code::PermissionDenied, detail));
                }
            }
        }
        Ok(values)
    }
}

/// Refuses what a browser sends for a page of another origin.
///
/// Without authentication, any web page that a developer opens could otherwise use the API on the same machine: by a
/// request across origins, or by a name of its own that resolves to this machine.
fn check_local(head: Head<'_>) -> Result<(), Problem> {
    if !is_local_name(head.headers) {
        let detail = "without authentication this server is only served under the names of this machine: use localhost or \
                      127.0.0.1";
        return Err(Problem::new(Code::PermissionDenied, detail));
    }
    if head.writes && is_cross_origin(head.headers) {
        let detail = "a cross-origin request may not write: send it without an Origin header";
        return Err(Problem::new(Code::PermissionDenied, detail));
    }
    Ok(())
}

/// True unless the request names another host than this machine's, as a page does whose own name resolves to loopback.
fn is_local_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(authority) = host.to_str().unwrap_or_default().parse::<http::uri::Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    let is_loopback = name.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

fn is_cross_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
    let Some(origin) = text(header::ORIGIN) else { return false };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority != text(header::HOST)
}

fn is_identity(identity: &str) -> bool {
    (1..=MAX_IDENTITY).contains(&identity.chars().count()) && !identity.chars().any(char::is_control)
}

fn is_tenant(value: &str) -> bool {
    (1..=63).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
