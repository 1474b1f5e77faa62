//! Service accounts.

use fleet_model::id::{is_dns_label, is_dns_subdomain};

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Account {
    /// Parses `NAMESPACE/NAME`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        let is_valid = is_dns_label(namespace) && is_dns_subdomain(name);
        is_valid.then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}
