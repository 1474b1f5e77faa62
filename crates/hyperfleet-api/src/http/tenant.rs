//! The tenant of a request: the headers that name it, and the resources that the caller therefore reaches.

use http::HeaderMap;
use serde::Deserialize;

use super::head::Head;
use super::proxies::Trust;
use crate::problem::{Code, Problem};
use crate::tenancy::{Reach, Tenancy};

/// The headers that name the tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantHeaders {
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

/// The caller of a request, as far as its tenant depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The trust in the request's headers.
    pub(super) trust: Trust,
    /// True if a grant lets the caller reach the resources of every tenant.
    pub(super) has_all_tenants: bool,
    /// True if the caller has an identity of its own.
    pub(super) is_authenticated: bool,
}

// === impl TenantHeaders ===

impl TenantHeaders {
    /// Returns the tenancy of what the caller creates and the resources that it reaches, or refuses the request.
    pub(super) fn admit(&self, head: Head<'_>, origin: Origin) -> Result<(Tenancy, Reach), Problem> {
        let is_system = self.is_system(head.headers);
        if is_system && head.writes && !head.reports {
            return Err(denied("system identities may only write status and conditions".to_owned()));
        }
        let names_tenant = self.dimensions.iter().any(|dimension| head.headers.contains_key(&dimension.header));
        if names_tenant && origin.trust == Trust::Stranger {
            let detail = "the headers that name the tenant are trusted only from a proxy in server.proxies, and this request \
                          comes from another address";
            return Err(denied(detail.to_owned()));
        }
        // Without authentication there are no grants, and the header of a proxy stands for them.
        let is_trusted_system = is_system && !origin.is_authenticated && origin.trust == Trust::Proxy;
        if origin.has_all_tenants || is_trusted_system {
            let creates = head.writes && !head.reports;
            let tenancy = if creates && names_tenant { self.tenancy(head.headers)? } else { Tenancy::new() };
            return Ok((tenancy, Reach::AllTenants));
        }
        let tenancy = self.tenancy(head.headers)?;
        if tenancy.is_empty() {
            let headers: Vec<&str> = self.dimensions.iter().map(|dimension| dimension.header.as_str()).collect();
            return Err(denied(format!(
                "the request names no tenant: send one of the headers {} through a proxy in server.proxies; only a grant with \
                 all_tenants needs none",
                headers.join(", ")
            )));
        }
        Ok((tenancy.clone(), Reach::Tenant(tenancy)))
    }

    fn is_system(&self, headers: &HeaderMap) -> bool {
        let values = self.system_header.iter().flat_map(|header| headers.get_all(header));
        values.into_iter().any(|value| value == "true")
    }

    fn tenancy(&self, headers: &HeaderMap) -> Result<Tenancy, Problem> {
        let mut tenancy = Tenancy::new();
        for Dimension { header, key, required } in &self.dimensions {
            let mut values = headers.get_all(header).iter();
            let (first, more) = (values.next(), values.next());
            match first.map(|value| value.to_str().unwrap_or("\0")).filter(|value| !value.is_empty()) {
                // A client may have sent one that the proxy did not remove.
                _ if more.is_some() => return Err(denied(format!("the header {header} is given twice"))),
                None if *required => {
                    return Err(denied(format!(
                        "the header {header} is required: it names the tenant; only a grant with all_tenants needs none"
                    )));
                }
                None => {}
                Some(value) if is_tenant(value) => drop(tenancy.insert(key.clone(), value.to_owned())),
                Some(_) => {
                    return Err(denied(format!(
                        "the header {header} must have 1 to 63 letters, digits, dots, underscores and hyphens"
                    )));
                }
            }
        }
        Ok(tenancy)
    }
}

fn denied(detail: String) -> Problem {
    Problem::new(Code::PermissionDenied, detail)
}

fn is_tenant(value: &str) -> bool {
    (1..=63).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
