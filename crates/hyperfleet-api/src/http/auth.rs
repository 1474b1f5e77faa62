//! Who calls: identity, tenancy, and what they allow.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::jwt::Issuers;
use crate::problem::{Code, Problem, Rejection};
use crate::service::Caller;

/// The identity of whoever writes while authentication is off.
pub const SYSTEM_IDENTITY: &str = "system@hyperfleet.local";

/// The longest identity that the store takes.
const LONGEST_IDENTITY: usize = 256;

/// How callers prove who they are, and what follows from it.
#[derive(Debug, Default)]
pub struct Authentication {
    /// The issuers of tokens; `None` where authentication is off.
    pub issuers: Option<Issuers>,
    /// Whose resources a caller creates.
    pub tenancy: Option<Tenancy>,
    /// The identities that may read pull secrets.
    pub pull_secret_readers: Vec<String>,
    /// A token that may read pull secrets and nothing more than everybody else; for one machine's own parts.
    pub pull_secret_token: Option<SecretString>,
}

/// Which headers say whose a resource is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenancy {
    /// A header that marks a caller as part of the system when it is `true`.
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
    /// The header that says it.
    pub header: String,
    /// Its name in a resource's `tenancy`.
    pub key: String,
    /// Whether a caller without it is refused.
    #[serde(default)]
    pub required: bool,
}

// === impl Authentication ===

impl Authentication {
    /// The caller of a request, or why it is not admitted.
    pub async fn admit(
        &self,
        headers: &HeaderMap,
        writes: bool,
        reports: bool,
        now: Timestamp,
    ) -> Result<Caller, Rejection> {
        if writes && self.issuers.is_none() && is_foreign_page(headers) {
            let detail = "a page of another origin may not write here";
            return Err(Problem::new(Code::PermissionDenied, detail).into());
        }
        let own_part = self.is_own_part(headers);
        let identity = match &self.issuers {
            None => Some(SYSTEM_IDENTITY.to_owned()),
            Some(_) if own_part => Some(SYSTEM_IDENTITY.to_owned()),
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
        let reads_pull_secrets = own_part || self.pull_secret_readers.contains(&identity) && self.issuers.is_some();
        Ok(Caller { identity, tenancy, reads_pull_secrets })
    }

    /// Whether the caller has the token of this machine's own parts.
    fn is_own_part(&self, headers: &HeaderMap) -> bool {
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
                    let detail = format!("the header {header} is required: it says whose the resource is");
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

/// Whether a browser says that a page of another origin asks. Where nobody has to say who he is, any page that a developer
/// looks at could otherwise write to the API on his machine.
fn is_foreign_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default());
    let Some(origin) = text(header::ORIGIN) else { return false };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority != text(header::HOST)
}

fn is_identity(identity: &str) -> bool {
    (1..=LONGEST_IDENTITY).contains(&identity.chars().count()) && !identity.chars().any(char::is_control)
}

fn is_tenant(value: &str) -> bool {
    (1..=63).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
