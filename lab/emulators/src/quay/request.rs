//! A call as it was read: its target, its query, its body.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::operation::Operation;
use super::refusal::Refusal;
use crate::basic::Basic;

/// A call. It holds credentials, and is never printed.
pub(crate) struct Request {
    pub(crate) operation: Operation,
    /// The organization, or the first part of a repository's name; empty where there is none.
    pub(crate) organization: String,
    /// The robot without the organization, the team, the repository, or the id that the call is about.
    pub(crate) name: String,
    /// The team's member, the permission's holder, or the manifest's reference.
    pub(crate) member: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) authorization: Option<String>,
    /// The caller's address.
    pub(crate) address: String,
    /// The caller's `User-Agent`.
    pub(crate) agent: String,
}

// === impl Request ===

impl Request {
    /// The first value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub(crate) fn parameters<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(parameter, _)| parameter == name).map(|(_, value)| value.as_str())
    }

    /// The body in a form that a caller cannot do without.
    pub(crate) fn document<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_slice(&self.body).map_err(|error| Refusal::invalid(error.to_string()))
    }

    /// The body; null if it is no JSON.
    pub(crate) fn lenient(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The name of the robot that the call is about, with the organization's.
    pub(crate) fn robot(&self) -> String {
        format!("{}+{}", self.organization, self.name)
    }

    /// Credentials behind `Basic`; none if nothing is shown.
    pub(crate) fn basic(&self) -> Option<Basic> {
        self.authorization.as_deref().map(Basic::read)
    }

    /// The token behind `Bearer`.
    pub(crate) fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.authorization.as_deref()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Request({})", self.operation)
    }
}
