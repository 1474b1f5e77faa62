//! Inputs and answers of the ledger.

use jiff::Timestamp;
use registry_account::name::{AccountName, CredentialId};
use secrecy::SecretString;

use crate::credential::{ClusterRef, Credential, Record, RegistryName};
use crate::decide::Budget;
use crate::reason::Reason;
use crate::rotation::{Candidate, RotationName, RotationPlan};
use crate::state::{Action, Lane, State};

fleet_model::reasons! {
    /// The outcome of an action, or the change of the ledger that an event records.
    pub enum Outcome {
        /// An outward action is about to begin.
        Started,
        /// It succeeded.
        Succeeded,
        /// It failed and had no effect.
        Failed,
        /// It may have had its effect.
        Unknown,
        /// The state changed without an outward action.
        Changed,
        /// An id and a name were recorded.
        Recorded,
    }
}

/// The place in the life of a cluster that one credential has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The registry.
    pub registry: RegistryName,
    /// The cluster.
    pub cluster: ClusterRef,
    /// The credential to replace; `None` for the first one of the cluster.
    pub replaces: Option<CredentialId>,
}

/// An id and a name that were never used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fresh {
    /// The id.
    pub id: CredentialId,
    /// The name of the account.
    pub account: AccountName,
}

/// A credential to be reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Id and name.
    pub fresh: Fresh,
    /// The registry.
    pub registry: RegistryName,
    /// Its slot; `None` for the pool.
    pub slot: Option<Slot>,
}

/// A row that this replica works on until its lease ends.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The credential.
    pub credential: Credential,
    /// The version of the row: a write with an older one changes nothing.
    pub(crate) version: i64,
}

/// The claim of a due row.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The replica.
    pub worker: &'a str,
    /// The registry.
    pub registry: &'a RegistryName,
    /// The least urgent lane that has a call; `None` claims a row whose next step calls no registry.
    pub lane: Option<Lane>,
    /// The time.
    pub now: Timestamp,
    /// The end of the lease.
    pub until: Timestamp,
}

/// An outward action that is about to begin.
#[derive(Clone, Debug)]
pub struct Start<'a> {
    /// The action.
    pub action: Action,
    /// The reason.
    pub reason: Reason,
    /// The lane and the rate of the registry, for an action that calls it.
    pub call: Option<Call>,
    /// The record with the time of the attempt.
    pub record: Record,
    /// The replica.
    pub actor: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// A call of a registry that needs a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The lane.
    pub lane: Lane,
    /// The rate of the registry.
    pub per_minute: u32,
}

/// The answer to a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// The action is recorded and may begin.
    Recorded,
    /// The rate of the registry is exhausted until then; nothing is recorded.
    NoCall(Timestamp),
    /// Another replica has gone on with the row.
    Overtaken,
}

/// The change of a password.
#[derive(Clone, Debug)]
pub enum Password {
    /// It stays.
    Keep,
    /// It is this one.
    Set(SecretString),
    /// It is erased.
    Erase,
}

/// The result of a step, written as one transaction.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The action; `None` if only the state has changed.
    pub action: Option<Action>,
    /// The outcome.
    pub outcome: Outcome,
    /// The state from now on.
    pub state: State,
    /// The record from now on.
    pub record: Record,
    /// The reason of the event.
    pub reason: Reason,
    /// The reason for which it is where it is from now on.
    pub standing: Reason,
    /// The password.
    pub password: Password,
    /// The lane of the next step.
    pub lane: Option<Lane>,
    /// The time of the next step.
    pub due: Option<Timestamp>,
    /// Another credential to be reserved in place of this one, which loses its slot.
    pub instead: Option<Fresh>,
    /// The replica.
    pub actor: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// The number of credentials without a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Those that wait for a cluster.
    pub ready: u64,
    /// Those on their way.
    pub in_progress: u64,
}

/// A refill of the pool of a registry.
#[derive(Clone, Copy, Debug)]
pub struct Refill<'a> {
    /// The registry.
    pub registry: &'a RegistryName,
    /// Credentials that should be ready.
    pub target: u64,
    /// The rate of the registry.
    pub per_minute: u32,
    /// The replica.
    pub actor: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The credential.
    pub credential: CredentialId,
    /// The cluster's id.
    pub cluster: Option<String>,
    /// The replica or person.
    pub actor: String,
    /// The action.
    pub action: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The reason.
    pub reason: String,
    /// The words of a person.
    pub remark: Option<String>,
    /// The time.
    pub time: Timestamp,
}

/// An account as the ledger knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAccount {
    /// The name.
    pub account: AccountName,
    /// The id of the credential.
    pub credential: CredentialId,
    /// The state.
    pub state: State,
}

/// The effect of an order to revoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// The credential is revoked before all other work.
    Ordered,
    /// It is revoked when another person orders it as well.
    Requested,
}

/// A part of the evidence that a person attests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attested {
    /// The report of the adapter.
    Report,
    /// The nodes.
    Nodes,
    /// The first pull.
    FirstPull,
    /// The silence of an old credential.
    Quiet,
}

/// The statement of a person.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    /// The person.
    pub actor: &'a str,
    /// Their reason.
    pub reason: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// A rotation that is about to start.
#[derive(Clone, Copy, Debug)]
pub struct NewRotation<'a> {
    /// Its name.
    pub name: &'a RotationName,
    /// The registry.
    pub registry: &'a RegistryName,
    /// Its rules.
    pub plan: &'a RotationPlan,
    /// The clusters of each group.
    pub groups: &'a [Vec<Candidate>],
}

/// A request of a person about a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationRequest {
    /// Begin no further cluster.
    Pause,
    /// Go on, and tolerate the clusters that have failed.
    Resume,
    /// Give it up.
    Abort {
        /// True to give clusters on their way their old credential back.
        put_back: bool,
    },
}

/// An advance of the rotation of a registry.
#[derive(Clone, Copy, Debug)]
pub struct Advance<'a> {
    /// The registry.
    pub registry: &'a RegistryName,
    /// The time.
    pub now: Timestamp,
}

/// The result of an advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advanced {
    /// Number of clusters that were begun or skipped.
    pub begun: u64,
    /// Number of clusters that have ended.
    pub ended: u64,
    /// True if the rotation itself has moved on.
    pub moved: bool,
}

// === impl RotationRequest ===

impl RotationRequest {
    /// Returns the request as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Abort { put_back: false } => "abort",
            Self::Abort { put_back: true } => "abort and put back",
        }
    }
}

/// The budget of a registry that has none yet.
pub(crate) const UNUSED: Budget = Budget { next: Timestamp::UNIX_EPOCH, blocked_until: Timestamp::UNIX_EPOCH };
