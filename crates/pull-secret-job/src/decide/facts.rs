//! The facts that a decision is made from: the desired and the observed secret.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use docker_config::Digest;
use fleet_model::{ClusterId, Generation, Incarnation, Owner};
use secret_store::{Metadata, Records, VersionNumber};

use crate::record::Record;

/// The cluster that a run acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Id of the cluster.
    pub cluster: ClusterId,
    /// Incarnation of the cluster, if known.
    pub incarnation: Option<Incarnation>,
    /// Generation of the cluster's specification that the run acts for, if known.
    pub generation: Option<Generation>,
}

/// The desired secret.
#[derive(Clone, Debug)]
pub struct Desired {
    /// Cluster that it belongs to.
    pub identity: Identity,
    /// Labels that must be on the secret; others may be too.
    pub labels: BTreeMap<String, String>,
    /// Take over a secret of another incarnation of the cluster.
    pub adopt: bool,
    /// Digest of the content.
    pub content: Digest,
    /// Keyed digest for annotations and results, if there is a key.
    pub published_digest: Option<String>,
    /// Number of versions of this project that are kept, the current one included; 0 keeps all.
    pub retain: usize,
    /// Add a version even if the newest one holds the content.
    pub always_add: bool,
}

/// The observed secret.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Metadata of the secret; `None` if it does not exist.
    pub secret: Option<Metadata>,
    /// The versions from the recorded one up to the highest.
    pub versions: BTreeMap<VersionNumber, VersionState>,
    /// The versions that this run has added.
    pub added: BTreeSet<VersionNumber>,
    /// Place of the record in this store.
    pub place: Records,
    /// The records of observed versions, where they are kept there.
    pub records: BTreeMap<VersionNumber, Record>,
}

// === impl Observed ===

impl Observed {
    /// The record in force. The annotations' one is a copy where versions have one: it may be of an older version, or announce
    /// a number that another run was faster to get. A copy of the same run knows also what was destroyed since.
    pub fn record(&self) -> Record {
        let annotations = self.secret.as_ref().map(|secret| &secret.annotations);
        let noted = annotations.map(Record::read).unwrap_or_default();
        let Some((number, written)) = self.records.last_key_value() else { return noted };
        let is_of_same_run = noted.generation == written.generation && noted.incarnation == written.incarnation;
        match noted.version.cmp(&Some(*number)) {
            Ordering::Greater => noted,
            Ordering::Equal if is_of_same_run => noted,
            Ordering::Equal | Ordering::Less => written.clone(),
        }
    }

    /// Returns the owner that the newest version with a record names, if it is another one than this cluster. Where metadata has
    /// no condition, two creators of a secret may both have written its labels.
    pub fn other_owner(&self, cluster: &ClusterId) -> Option<Owner> {
        let (_, written) = self.records.last_key_value()?;
        written.owner.clone().filter(|owner| !owner.is(cluster))
    }
}

// === impl Identity ===

impl Identity {
    /// Returns true if a secret of this recorded incarnation belongs to another cluster with the same id. An incarnation
    /// that is not known differs from none.
    pub(crate) fn differs_from(&self, recorded: Option<&Incarnation>) -> bool {
        self.incarnation.as_ref().zip(recorded).is_some_and(|(own, recorded)| own != recorded)
    }

    /// Returns the recorded generation if it is newer than this run's.
    pub(crate) fn newer_generation(&self, recorded: Option<Generation>) -> Option<Generation> {
        recorded.filter(|recorded| self.generation.is_some_and(|own| *recorded > own))
    }
}

/// State of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionState {
    /// It can be read and has this digest.
    Live(Digest),
    /// It is disabled.
    Disabled,
    /// It is destroyed.
    Destroyed,
}
