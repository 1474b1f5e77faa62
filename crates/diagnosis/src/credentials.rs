//! The registry credentials of a cluster, as the ledger of the credentials service knows them.

use std::time::Duration;

use credentials::credential::{Credential, Proof};
use credentials::ledger::Filter;
use credentials::server::open_existing;
use credentials::settings::Checked;
use credentials::state::State;
use daemon::environment::Environment;
use daemon::log::causes;
use fleet_model::Generation;
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::timeout;

/// Maximum time to read the ledger.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The registry credentials of a cluster.
#[derive(Debug, Serialize)]
pub struct CredentialsView {
    /// The error of the observation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Those whose account exists, or may exist; the oldest first.
    pub credentials: Vec<CredentialView>,
}

/// A registry credential, without its password.
#[derive(Debug, Serialize)]
pub struct CredentialView {
    /// Its id.
    pub id: String,
    /// The name of the registry.
    pub registry: String,
    /// The name with which the account logs in, or its own as long as that is not known.
    pub account: String,
    /// The state.
    pub state: &'static str,
    /// The reason of the last decision.
    pub reason: &'static str,
    /// The meaning of the reason.
    pub meaning: &'static str,
    /// True if a person has to see to it.
    pub needs_a_person: bool,
    /// Time at which it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// End of the account or token, where the registry sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Time at which the registry was first observed to let it pull.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probed: Option<Timestamp>,
    /// Time at which the pull secret was given it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The generation of the cluster that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// Time from which on the cluster uses it for certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopted: Option<Timestamp>,
    /// The first pull with it since its publication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_pull: Option<Proof>,
    /// Time of the last observed pull with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_pull: Option<Timestamp>,
    /// Time at which the registry's usage log was last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_read: Option<Timestamp>,
}

/// Reads the credentials of a cluster from the ledger that a configuration names.
///
/// # Errors
///
/// A line for the page; the faults of the configuration are one.
pub async fn observe(
    checked: &Result<Checked, String>,
    environment: &impl Environment,
    cluster: &str,
) -> Result<Vec<Credential>, String> {
    let checked = checked.as_ref().map_err(String::clone)?;
    let read = async {
        let ledger = open_existing(checked, environment).await.map_err(|error| causes(&error))?;
        let filter = Filter { cluster: Some(cluster.to_owned()), ..Filter::default() };
        ledger.list(&filter).await.map_err(|error| causes(&error))
    };
    timeout(READ_TIMEOUT, read).await.unwrap_or_else(|_elapsed| Err("the ledger does not answer in time".to_owned()))
}

// === impl CredentialsView ===

impl CredentialsView {
    pub(crate) fn failed(why: &str) -> Self {
        Self { failure: Some(why.to_owned()), credentials: Vec::new() }
    }

    pub(crate) fn of(found: &[Credential]) -> Self {
        let living = found.iter().filter(|credential| credential.state < State::Dead);
        Self { failure: None, credentials: living.map(CredentialView::of).collect() }
    }
}

// === impl CredentialView ===

impl CredentialView {
    fn of(credential: &Credential) -> Self {
        let Credential { id, registry, account, state, reason, record, .. } = credential;
        let usage = record.evidence.usage.as_ref();
        Self {
            id: id.to_string(),
            registry: registry.to_string(),
            account: record.login.clone().unwrap_or_else(|| account.to_string()),
            state: state.as_str(),
            reason: reason.as_str(),
            meaning: reason.meaning(),
            needs_a_person: reason.needs_a_person(),
            created: record.created,
            expires: record.expires,
            probed: record.probed,
            published: record.published,
            generation: record.generation.known(),
            adopted: record.adopted,
            first_pull: record.evidence.first_pull.clone(),
            last_pull: usage.and_then(|usage| usage.last_pull),
            usage_read: usage.map(|usage| usage.at),
        }
    }
}

#[cfg(test)]
mod tests {
    use credentials::reason::Reason;

    use super::*;

    fn credential(state: State) -> Credential {
        Credential {
            id: "01932b5c-9f3e-7c2a-8e1d-000000000001".parse().unwrap(),
            registry: "quay".parse().unwrap(),
            account: "hf-1".parse().unwrap(),
            state,
            reason: Reason::InUse,
            cluster: None,
            replaces: None,
            has_password: true,
            record: credentials::credential::Record::default(),
        }
    }

    #[test]
    fn what_the_registry_refuses_is_not_shown() {
        let found = [State::Adopted, State::Retiring, State::Dead, State::WaitedOut].map(credential);
        let shown: Vec<&str> = CredentialsView::of(&found).credentials.iter().map(|one| one.state).collect();
        assert_eq!(shown, ["Adopted", "Retiring"]);
    }
}
