//! Quay's documents.

use fleet_model::names::METADATA_CREDENTIAL;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::settings::OrganizationName;
use crate::client::Answer;
use crate::contract::{Account, ListedAccount};
use crate::name::{AccountName, CredentialId};

/// A robot.
#[derive(Deserialize)]
pub(super) struct Robot {
    /// `ORGANIZATION+NAME`.
    pub(super) name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    created: Option<String>,
    #[serde(default)]
    last_accessed: Option<String>,
    #[serde(default)]
    token: Option<SecretString>,
    #[serde(default)]
    unstructured_metadata: Option<Value>,
}

/// All robots of an organization.
#[derive(Deserialize)]
struct Robots {
    robots: Vec<Robot>,
}

// === impl Robot ===

impl Robot {
    /// Returns our id of its credential.
    pub(super) fn credential(&self) -> Option<CredentialId> {
        self.unstructured_metadata.as_ref()?.get(METADATA_CREDENTIAL)?.as_str()?.parse().ok()
    }

    /// Returns the account and its password, if Quay shows it.
    pub(super) fn into_account(self, name: &AccountName) -> (Account, Option<SecretString>) {
        let account = Account {
            name: name.clone(),
            credential: self.credential(),
            description: self.description.unwrap_or_default(),
            created: self.created.as_deref().and_then(time),
            last_access: self.last_accessed.as_deref().and_then(time),
            expires: None,
            disabled: false,
            login: self.name,
        };
        (account, self.token)
    }
}

/// Returns the metadata of a robot.
pub(super) fn metadata(credential: CredentialId) -> Value {
    Value::Object(Map::from_iter([(METADATA_CREDENTIAL.to_owned(), Value::String(credential.to_string()))]))
}

/// Returns the listed robots whose names could be of this service.
pub(super) fn listed(answer: &Answer, organization: &OrganizationName) -> Option<Vec<ListedAccount>> {
    let Robots { robots } = answer.parse()?;
    let account = |robot: Robot| {
        let short = robot.name.strip_prefix(organization.as_str())?.strip_prefix('+')?;
        let created = robot.created.as_deref().and_then(time);
        Some(ListedAccount { name: short.parse().ok()?, credential: robot.credential(), created })
    };
    Some(robots.into_iter().filter_map(account).collect())
}

/// Returns a time as Quay writes it: RFC 2822.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    const PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_quay_writes_them() {
        let expected = "2026-11-22T10:40:14Z".parse().unwrap();
        assert_eq!(time("Sun, 22 Nov 2026 10:40:14 -0000"), Some(expected));
        assert_eq!(time("2026-11-22"), None);
    }
}
