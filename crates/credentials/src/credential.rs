//! A credential as the ledger knows it, without its password.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fleet_model::Generation;
use jiff::{SignedDuration, Timestamp};
use registry_account::name::{AccountName, CredentialId};
use serde::{Deserialize, Serialize};

use crate::reason::Reason;
use crate::state::State;

/// The longest chain of credentials of a cluster, each replacing the one before, that is followed.
pub(crate) const MAX_CHAIN: usize = 1000;

/// The longest name of a registry in the configuration, in bytes.
const LONGEST_REGISTRY: usize = 63;

/// The name of a registry in the configuration: a DNS label, such as `quay`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RegistryName(String);

/// A text that is no name of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 63 characters of a-z, 0-9 and '-', beginning and ending with a letter or digit")]
pub struct InvalidRegistryName;

/// A cluster in one incarnation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterRef {
    /// Its id.
    pub id: String,
    /// The time of its creation in microseconds since 1970, which distinguishes it from an earlier cluster with the id.
    pub incarnation: i64,
}

/// A credential: an account at a registry, and its place in the life of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Its id, also in the metadata of the account.
    pub id: CredentialId,
    /// The registry.
    pub registry: RegistryName,
    /// The name of the account; used once.
    pub account: AccountName,
    /// The state.
    pub state: State,
    /// The reason of the last decision.
    pub reason: Reason,
    /// The cluster that it belongs to; `None` in the pool.
    pub cluster: Option<ClusterRef>,
    /// The credential of the cluster that it replaces.
    pub replaces: Option<CredentialId>,
    /// True if its password is recorded.
    pub has_password: bool,
    /// Everything else.
    pub record: Record,
}

/// Facts of a credential: times, evidence, orders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Record {
    /// Failed attempts of the present step.
    pub attempts: u32,
    /// The failure of the last attempt.
    pub failure: Option<Reason>,
    /// The earliest time of the next attempt.
    pub retry_at: Option<Timestamp>,
    /// The name with which the account logs in.
    pub login: Option<String>,
    /// The generation of the cluster that names the credential.
    pub generation: Generation,
    /// Beginning of the last call that creates the account; the account may exist from it on.
    pub last_create: Option<Timestamp>,
    /// The answer with the password.
    pub created: Option<Timestamp>,
    /// End of the account or token, where the registry sets one.
    pub expires: Option<Timestamp>,
    /// The first probe that found the permission to pull.
    pub probed: Option<Timestamp>,
    /// Beginning of the last call that publishes it; a cluster may use it from it on.
    pub last_publish: Option<Timestamp>,
    /// The publication; of a token that is renewed, the first one since its last adoption.
    pub published: Option<Timestamp>,
    /// The adoption; of a token that is renewed, that of its first.
    pub adopted: Option<Timestamp>,
    /// The account was disabled.
    pub disabled: Option<Timestamp>,
    /// Beginning of the last call that deletes the account and was answered.
    pub last_delete: Option<Timestamp>,
    /// Beginning of the call after which the account does not exist, nor can any more.
    pub deleted: Option<Timestamp>,
    /// The registry refused the password.
    pub dead: Option<Timestamp>,
    /// The cause for which it is given up.
    pub given_up: Option<Reason>,
    /// True while it is kept from publication, beside the credential of AMS that its cluster has.
    pub held: bool,
    /// A person's order.
    pub order: Option<Order>,
    /// The order to revoke it that waits for another person's; see [`Approval::AnotherPerson`].
    pub revocation_request: Option<Order>,
    /// The evidence.
    pub evidence: Evidence,
}

/// The order of a person to retire a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The person.
    pub actor: String,
    /// The reason in their words.
    pub reason: String,
    /// The time.
    pub at: Timestamp,
    /// True to revoke at once, whatever uses the credential.
    pub break_glass: bool,
}

/// Evidence about the use of a credential; every part has the time at which it was had, and its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Evidence {
    /// The adapter reports the pull secret of the generation that names it, or a later one, as available.
    pub report: Option<Proof>,
    /// All nodes have the revision.
    pub nodes: Option<Proof>,
    /// A node has pulled with it since its publication.
    pub first_pull: Option<Proof>,
    /// It was not used for the quiet time, as a person attests.
    pub quiet: Option<Proof>,
    /// The last observation of the cluster; the stored name is an older one.
    #[serde(rename = "looked")]
    pub observed: Option<Timestamp>,
    /// The last observation of its usage.
    pub usage: Option<ObservedUsage>,
    /// The last observation of the cluster's pull secret.
    pub document: Option<ObservedDocument>,
}

/// A part of the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The time at which it was observed or attested.
    pub at: Timestamp,
    /// Its source: a system, a policy, or a person with the reason.
    pub source: String,
}

/// Usage as it was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedUsage {
    /// The time of the observation.
    pub at: Timestamp,
    /// The last pull in the observed time.
    pub last_pull: Option<Timestamp>,
    /// False if there is more than could be read.
    pub complete: bool,
}

/// The pull secret of the cluster as it was observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedDocument {
    /// The time of the observation.
    pub at: Timestamp,
    /// Its relation to the credential.
    pub naming: Naming,
}

/// The relation of a cluster's pull secret to a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Naming {
    /// It names the account.
    Named,
    /// It does not name the account.
    NotNamed,
    /// This incarnation of the cluster does not exist any more.
    ClusterGone,
}

/// The newer credential of the same cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Successor {
    /// Its id.
    pub id: CredentialId,
    /// Its state.
    pub state: State,
    /// Its publication; of a token that is renewed, the adoption stands for it.
    pub published: Option<Timestamp>,
    /// Its adoption.
    pub adopted: Option<Timestamp>,
}

/// The condition for the retirement of a quiet credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Retire {
    /// A person's approval.
    Manual,
    /// None beside the evidence.
    WhenAdopted,
}

/// The condition for a revocation at once, which takes a credential from the nodes that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// One person orders it.
    None,
    /// Another person orders it as well, within [`APPROVED_WITHIN`].
    AnotherPerson,
}

/// Time after which a request that was not approved has lapsed.
pub const APPROVED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// The source of the evidence about nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NodesEvidence {
    /// Nodes are reported; without it a credential is not adopted.
    Required,
    /// No system of the fleet reports nodes: the operator renounces this part, and the evidence says so.
    Renounced,
}

/// The rules for the credentials of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The condition for retirement.
    pub retire: Retire,
    /// The evidence about nodes.
    pub nodes: NodesEvidence,
    /// The condition for a revocation.
    pub revocation: Approval,
    /// Time without a pull after which an old credential counts as quiet.
    pub quiet: Duration,
    /// Time after the publication from which on missing evidence is named as such.
    pub deadline: Duration,
    /// Time between two observations of the same thing.
    pub interval: Duration,
    /// Greatest age of an observation that a retirement relies on.
    pub fresh: Duration,
    /// Time between two observations of a cluster that uses its credential.
    pub resync: Duration,
    /// Time after its beginning in which a lost request may still be carried out.
    pub late: Duration,
    /// Time for which an account stays disabled before it is deleted, where the registry can disable reversibly.
    pub disabled_for: Duration,
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_hours(1);
        const MINUTE: Duration = Duration::from_mins(1);
        Self {
            retire: Retire::Manual,
            nodes: NodesEvidence::Required,
            revocation: Approval::None,
            quiet: HOUR * 24,
            deadline: HOUR * 24,
            interval: MINUTE * 5,
            fresh: MINUTE * 15,
            resync: HOUR * 24,
            late: MINUTE * 15,
            disabled_for: Duration::ZERO,
        }
    }
}

// === impl Record ===

impl Record {
    /// Returns the request to revoke it that another person may still approve.
    pub fn waiting_request(&self, now: Timestamp) -> Option<&Order> {
        self.revocation_request.as_ref().filter(|request| now.duration_since(request.at) < APPROVED_WITHIN)
    }
}

// === impl Credential ===

impl Credential {
    /// Returns the text that its sealed password is bound to.
    pub fn binding(&self) -> String {
        format!("credentials/password/1\n{}\n{}\n{}", self.id, self.registry, self.account)
    }

    /// Returns true if its account may exist at the registry.
    pub fn may_exist(&self) -> bool {
        self.record.last_create.is_some() && !self.state.is_over()
    }

    /// Returns true if a pull secret may name it.
    pub fn may_be_named(&self) -> bool {
        self.record.last_publish.is_some()
    }
}

// === impl RegistryName ===

impl RegistryName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RegistryName {
    type Err = InvalidRegistryName;

    fn from_str(text: &str) -> Result<Self, InvalidRegistryName> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for RegistryName {
    type Error = InvalidRegistryName;

    fn try_from(text: String) -> Result<Self, InvalidRegistryName> {
        let fits = text.len() <= LONGEST_REGISTRY && fleet_model::id::is_dns_label(&text);
        if fits { Ok(Self(text)) } else { Err(InvalidRegistryName) }
    }
}

impl From<RegistryName> for String {
    fn from(name: RegistryName) -> Self {
        name.0
    }
}

impl fmt::Display for RegistryName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for ClusterRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.id)
    }
}
