//! Entries of the pull secrets of all clusters, of this service and of others: known by host, digest, age and expiry, never by content.

mod validity;

use docker_config::Digest;
use fleet_model::Generation;
use jiff::Timestamp;
use registry_account::name::CredentialId;
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::credential::ClusterRef;

pub use validity::Validity;

/// An entry as a pull secret has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedEntry {
    /// Its key, without a credential that was put there by mistake.
    pub host: String,
    /// Its digest under the key of digests, and the id of that key: equal ones have the same credential.
    pub digest: EntryDigest,
    /// The user that it logs in with, to find the credential of the ledger; it is not stored.
    pub user: Option<String>,
    /// The times that the credential itself states.
    pub validity: Validity,
}

/// A digest of an entry that reveals nothing without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryDigest {
    /// The id of the key of digests; digests under different keys cannot be compared.
    pub key: String,
    /// The digest.
    pub digest: String,
}

/// Makes digests of entries.
#[derive(Clone, Debug)]
pub struct EntryDigests {
    key: SecretSlice<u8>,
    key_id: String,
}

/// The pull secret of a cluster as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedPullSecret {
    /// The cluster.
    pub cluster: ClusterRef,
    /// The generation that has it.
    pub generation: Generation,
    /// Its entries; `None` if it is by reference, hidden from this service, or no credential document.
    pub entries: Option<Vec<ObservedEntry>>,
}

/// An entry as the ledger knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownEntry {
    /// The cluster's id.
    pub cluster: String,
    /// The key of the entry.
    pub host: String,
    /// The credential of the ledger that it has; `None` if it was made elsewhere.
    pub credential: Option<CredentialId>,
    /// The time since which the credential exists.
    pub since: Since,
    /// The end of its validity, if it states one.
    pub expires: Option<Timestamp>,
}

/// The time since which a credential exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It was made then.
    Made(Timestamp),
    /// It was first observed then, and may be older.
    FirstObserved(Timestamp),
}

/// The age and the expiry of all entries that the ledger knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// Entries with a credential of the ledger.
    pub service: Group,
    /// Entries that were made elsewhere.
    pub elsewhere: Group,
    /// Clusters whose pull secret cannot be read.
    pub unread: u64,
}

/// The entries of one maker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Their number.
    pub number: u64,
    /// The time since which the oldest exists, at least.
    pub oldest: Option<Timestamp>,
    /// Those whose validity has ended.
    pub expired: u64,
    /// Those whose validity ends within [`SOON`].
    pub soon: u64,
}

/// Time before its end in which a validity counts as ending soon.
pub const SOON: jiff::SignedDuration = jiff::SignedDuration::from_hours(7 * 24);

// === impl Since ===

impl Since {
    /// Returns the time.
    pub fn time(self) -> Timestamp {
        match self {
            Self::Made(time) | Self::FirstObserved(time) => time,
        }
    }

    /// Returns the time since which the credential of an entry exists, as far as is known at a read: a credential that is known
    /// already keeps its time.
    pub(crate) fn at_read(entry: &ObservedEntry, made: Option<Timestamp>, known: Option<Self>, now: Timestamp) -> Self {
        match (made.or(entry.validity.issued), known) {
            (Some(made), _) => Self::Made(made),
            (None, Some(known)) => known,
            (None, None) => Self::FirstObserved(now),
        }
    }
}

// === impl EntryDigests ===

impl EntryDigests {
    /// Returns digests under a key.
    pub fn new(key: SecretSlice<u8>) -> Self {
        let key_id = Digest::of_bytes(b"credentials/entries/1").keyed(key.expose_secret()).to_string();
        Self { key, key_id }
    }

    /// Returns the id of the key, which follows from it and does not reveal it.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    pub(crate) fn of(&self, entry: &Digest) -> EntryDigest {
        EntryDigest { key: self.key_id.clone(), digest: entry.keyed(self.key.expose_secret()).to_string() }
    }
}

// === impl EntryDigest ===

impl EntryDigest {
    /// Returns true unless the credential is certainly another one: after a change of the key that is not known.
    pub fn may_be(&self, other: &Self) -> bool {
        self.key != other.key || self.digest == other.digest
    }
}
