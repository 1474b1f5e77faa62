//! The identity in the claims of a verified token.

use http::HeaderMap;
use regex::Regex;
use serde_json::{Map, Value};

use super::proxies::Trust;
use crate::authorization::Identity;

/// The claim that only a verified address gives an identity.
const EMAIL: &str = "email";

/// A verified token, with the request that carries it.
pub(super) struct Verified<'a> {
    pub(super) issuer: &'a str,
    /// The name of the identity claim.
    pub(super) claim: &'a str,
    /// Matches the whole identity claim.
    pub(super) pattern: Option<&'a Regex>,
    /// The header that a trusted proxy sets instead of the claim.
    pub(super) header: Option<&'a str>,
    pub(super) claims: Map<String, Value>,
    pub(super) headers: &'a HeaderMap,
    pub(super) trust: Trust,
}

impl Verified<'_> {
    /// The identity: from the header that a trusted proxy sets, else from the claim. A token without either has none.
    pub(super) fn identity(self) -> Option<Identity> {
        let subject = self.header_text().or_else(|| self.claim_text())?;
        Some(Identity { issuer: self.issuer.to_owned(), subject, claims: self.claims })
    }

    fn header_text(&self) -> Option<String> {
        let name = self.header.filter(|_| self.trust == Trust::Proxy)?;
        let mut values = self.headers.get_all(name).iter();
        let (first, more) = (values.next()?, values.next());
        first.to_str().ok().filter(|value| !value.is_empty() && more.is_none()).map(str::to_owned)
    }

    fn claim_text(&self) -> Option<String> {
        let claim = self.claims.get(self.claim)?.as_str()?;
        // An account can be registered with the address of another person, until the issuer verifies it.
        let unverified = self.claim == EMAIL && !matches!(self.claims.get("email_verified"), Some(Value::Bool(true)));
        let matches = self.pattern.is_none_or(|pattern| pattern.is_match(claim));
        (matches && !unverified).then(|| claim.to_owned())
    }
}
