//! Credentials of AMS and clusters, as the ledger has them.

use accounts_mgmt::{Ksuid, RegistryId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::credential::ClusterRef;
use crate::decide::ams::Difference;

fleet_model::reasons! {
    /// The origin of an entry of a pull secret.
    pub enum Finding {
        /// AMS has it: the same user with the same token.
        Ams,
        /// AMS has the user with another token.
        OtherToken,
        /// This service has made it.
        Own,
        /// Neither AMS nor the ledger knows it.
        Unknown,
        /// It holds no user and password.
        NoLogin,
    }
}

/// A credential of AMS, without its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmsCredential {
    /// Its id.
    pub id: Ksuid,
    /// The registry.
    pub registry: RegistryId,
    /// The user.
    pub username: String,
    /// The account that owns it.
    pub account: Option<String>,
    /// The resource that it was made for.
    pub resource: Option<String>,
    /// The last import that contained it.
    pub pass: i64,
    /// The beginning of its deletion.
    pub delete_started: Option<Timestamp>,
    /// Its deletion.
    pub deleted: Option<Timestamp>,
}

/// An entry of a pull secret, without its password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmsEntry {
    /// The key in `auths`.
    pub host: String,
    /// The user.
    pub username: Option<String>,
    /// Its origin.
    pub finding: Finding,
    /// The credential of AMS.
    pub credential: Option<Ksuid>,
}

/// A cluster as it was compared with AMS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmsCluster {
    /// The cluster.
    pub cluster: ClusterRef,
    /// The import that it was compared with last.
    pub pass: i64,
    /// The time of the last comparison.
    pub compared_at: Timestamp,
    /// The beginning of the time without a difference.
    pub clean_since: Option<Timestamp>,
    /// The differences of the last comparison that nothing explains.
    pub differences: Vec<HostDifference>,
    /// The entries of its pull secret.
    pub entries: Vec<AmsEntry>,
}

/// A difference at a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostDifference {
    /// The key in `auths`; empty if it is about the pull secret as a whole.
    pub host: String,
    /// The difference.
    pub difference: Difference,
}

/// The result of comparing one cluster's pull secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The entries.
    pub entries: Vec<AmsEntry>,
    /// The differences.
    pub differences: Vec<HostDifference>,
}

/// The numbers of a registry after an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryCount {
    /// Its id in AMS.
    pub registry: String,
    /// Its host.
    pub host: String,
    /// The credentials that AMS counts.
    pub total: u64,
    /// Those that were imported.
    pub imported: u64,
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportPass {
    /// Its number.
    pub pass: i64,
    /// Its beginning.
    pub started: Timestamp,
    /// Its end; `None` if it was cut off.
    pub finished: Option<Timestamp>,
    /// The numbers of each registry.
    pub counts: Vec<RegistryCount>,
}

// === impl RegistryCount ===

impl RegistryCount {
    /// Returns true if all credentials that AMS counts were imported, and no other ones.
    pub fn agrees(&self) -> bool {
        self.total == self.imported
    }
}

// === impl AmsEntry ===

impl AmsEntry {
    /// Returns true if the entry is neither of AMS nor of this service.
    pub fn is_unexplained(&self) -> bool {
        !matches!(self.finding, Finding::Ams | Finding::Own)
    }
}
