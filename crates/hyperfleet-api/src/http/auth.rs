//! Authentication: the caller's identity and tenancy, and the requests that they permit.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::jwt::Issuers;
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
    /// The tenancy of the resources that a caller creates.
    pub tenancy: Option<Tenancy>,
    /// The identities that may read pull secrets.
    pub pull_secret_readers: Vec<String>,
    /// A token for components on the same machine. It permits reading pull secrets in addition to what any caller may do.
    pub pull_secret_token: Option<SecretString>,
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
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        writes: bool,
        reports: bool,
        now: Timestamp,
    ) -> Result<Caller, Rejection> {
        if writes && self.issuers.is_none() && is_cross_origin(headers) {
            let detail = "a cross-origin request may not write: send it without an Origin header";
            return Err(Problem::new(Code::PermissionDenied, detail).into());
        }
        let is_local = self.is_local_component(headers);
        let identity = match &self.issuers {
            None => Some(SYSTEM_IDENTITY.to_owned()),
            Some(_) if is_local => Some(SYSTEM_IDENTITY.to_owned()),
            Some(issuers) => issuers.identity(headers, now).await?,
        };
        let identity = identity.filter(|identity| is_identity(identity));
        let Some(identity) = identity.or_else(|| (!writes).then(String::new)) else {
            return Err(Problem::new(Code::Unauthenticated, "the caller's token names no usable identity").into());
        };
        let is_system = self.is_system(headers);
        if writes && !reports && is_system {
            let detail = "system identities may only write status and conditions";
            return Err(Problem::new(Code::PermissionDenied, detail).into());
        }
        let tenancy = if writes && !reports { self.tenancy(headers)? } else { BTreeMap::new() };
        let reads_pull_secrets = is_local || self.pull_secret_readers.contains(&identity) && self.issuers.is_some();
        Ok(Caller { identity, tenancy, reads_pull_secrets })
    }

    /// True if the caller sends the token of the components on this machine.
    fn is_local_component(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.pull_secret_token else { return false };
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

/// True if a browser sends the request for a page of another origin.
///
/// Without authentication, any web page that a developer opens could otherwise write to the API on the same machine.
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
