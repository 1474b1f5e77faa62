//! Authentication: the caller's identity, tenancy and permissions.

use daemon::host::is_loopback;
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};

use super::head::Head;
use super::jwt::Issuers;
use super::proxies::Proxies;
use super::tenant::{Origin, TenantHeaders};
use crate::authorization::{Grants, Identity, Permissions, SYSTEM_IDENTITY, Scope};
use crate::live::Live;
use crate::problem::{Code, Problem, Rejection};
use crate::service::Caller;
use crate::tenancy::{Reach, Tenancy};

/// Maximum length of an identity in the store, in characters.
const MAX_IDENTITY: usize = 256;

/// The authentication of callers and their permissions.
#[derive(Debug, Default)]
pub struct Authentication {
    /// The issuers of tokens; `None` where authentication is off.
    pub issuers: Option<Issuers>,
    /// The permissions of the issuers' identities.
    pub grants: Live<Grants>,
    /// The headers that name the tenant of a caller; `None` where tenants are not isolated.
    pub tenants: Option<TenantHeaders>,
    /// The peers whose headers about the caller are trusted.
    pub proxies: Proxies,
    /// A token that adds reading a pull secret, for components on the same machine; only where authentication is off.
    pub reader_token: Option<SecretString>,
}

// === impl Authentication ===

impl Authentication {
    /// Authenticates the caller of a request, or returns the problem that refuses it.
    pub(super) async fn authenticate(&self, head: Head<'_>, now: Timestamp) -> Result<Caller, Rejection> {
        let Some(issuers) = &self.issuers else {
            check_local(head)?;
            let identity = Identity { subject: SYSTEM_IDENTITY.to_owned(), ..Identity::default() };
            let permissions = Permissions::unauthenticated(self.holds_reader_token(head.headers));
            return Ok(Caller { identity, permissions, ..Caller::default() });
        };
        let identity = issuers.identity(head.headers, self.proxies.trust(head.peer), now).await?;
        let identity = identity.filter(|identity| is_identity(&identity.subject));
        let unusable = || Problem::new(Code::Unauthenticated, "the caller's token names no usable identity");
        let identity = identity.ok_or_else(unusable)?;
        let permissions = self.grants.get().of(&identity);
        Ok(Caller { identity, permissions, ..Caller::default() })
    }

    /// Limits the caller to the resources of its tenant, or refuses the request. `subject` are the kinds that it is about.
    pub(super) fn admit(&self, caller: &mut Caller, head: Head<'_>, subject: Scope<'_>) -> Result<(), Problem> {
        let origin = Origin {
            trust: self.proxies.trust(head.peer),
            has_all_tenants: caller.permissions.allow_all_tenants(subject).is_ok(),
            is_authenticated: self.issuers.is_some(),
        };
        (caller.tenancy, caller.reach) = match &self.tenants {
            None => (Tenancy::new(), Reach::Unlimited),
            Some(tenants) => tenants.admit(head, origin)?,
        };
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
    is_loopback(authority.host())
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
