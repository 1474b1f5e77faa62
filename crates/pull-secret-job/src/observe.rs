//! Observes the secret: its metadata once, its versions by number.
//!
//! Metadata and lists may lag; a version read by its number never does. So the recorded version is only where the
//! observation starts.

use std::collections::{BTreeMap, BTreeSet};

use docker_config::{Digest, Limits};
use fleet_model::{ClusterId, Owner};
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{ErrorKind, LiveVersion, Metadata, Records, SecretStore, Version, VersionNumber};

use crate::decide::{Observed, VersionState};
use crate::outcome::RunError;
use crate::record::Record;
use crate::session::Session;

/// The observed state, and the content of the live versions.
pub(crate) struct Observation {
    pub(crate) observed: Observed,
    pub(crate) contents: BTreeMap<VersionNumber, SecretSlice<u8>>,
}

impl Observation {
    /// An observation of nothing.
    pub(crate) fn empty() -> Self {
        Self { observed: Observed::default(), contents: BTreeMap::new() }
    }
}

impl<S: SecretStore> Session<'_, S> {
    /// Reads the secret's metadata.
    pub(crate) async fn find(&self) -> Result<Option<Metadata>, RunError> {
        let found = self.caller.call(async || self.store.find(self.secret).await).await?;
        Ok(found.map(|secret| secret.metadata))
    }

    /// Observes the versions from the recorded one up; `added` are the versions that this run has added.
    pub(crate) async fn observe(
        &self,
        secret: Option<Metadata>,
        added: &BTreeSet<VersionNumber>,
    ) -> Result<Observation, RunError> {
        let mut versions = Versions::default();
        if let Some(metadata) = &secret {
            let start = match Record::read(&metadata.annotations).version {
                Some(recorded) => recorded,
                None => self.highest_listed().await?,
            };
            // A version that this run has added must be observed, however old the record is.
            let start = added.first().map_or(start, |first| start.min(*first));
            self.read_upwards(start, &mut versions).await?;
            let is_kept = self.store.capabilities().versions_kept.is_none();
            if versions.states.is_empty() && (start > VersionNumber::FIRST || !is_kept) {
                // The record is damaged, the secret was recreated, or the store has removed its oldest versions: the list has
                // those that there are, if late.
                self.read_upwards(self.highest_listed().await?, &mut versions).await?;
            }
        }
        let Versions { states, contents, records } = versions;
        let place = self.store.capabilities().records;
        Ok(Observation {
            observed: Observed { secret, versions: states, added: added.clone(), place, records },
            contents,
        })
    }

    /// Observes what a deletion needs: the metadata, and the record where it is in the versions. Versions of a secret that is
    /// not this cluster's are not read.
    pub(crate) async fn observe_for_deletion(&self, cluster: &ClusterId) -> Result<Observed, RunError> {
        let secret = self.find().await?;
        let is_managed = secret.as_ref().is_some_and(|secret| Owner::of(&secret.labels).is(cluster));
        match self.store.capabilities().records {
            Records::WithVersion if is_managed => Ok(self.observe(secret, &BTreeSet::new()).await?.observed),
            _ => Ok(Observed { secret, ..Observed::default() }),
        }
    }

    async fn highest_listed(&self) -> Result<VersionNumber, RunError> {
        let list = async || match self.store.list_versions(self.secret).await {
            // Deleted concurrently, or lagging: the calls that follow handle both.
            Err(error) if error.kind == ErrorKind::NotFound => Ok(Vec::new()),
            listed => listed,
        };
        let listed = self.caller.call(list).await?;
        Ok(listed.iter().map(|version| version.number).max().unwrap_or(VersionNumber::FIRST))
    }

    async fn read_upwards(&self, start: VersionNumber, versions: &mut Versions) -> Result<(), RunError> {
        let mut number = start;
        while versions.take(number, self.read(number).await?) {
            number = number.next();
        }
        Ok(())
    }

    /// Returns true if a version of that number was ever added to the secret.
    pub(crate) async fn version_exists(&self, number: VersionNumber) -> Result<bool, RunError> {
        Ok(!matches!(self.read(number).await?, Version::Absent))
    }

    /// Reads a version.
    pub(crate) async fn read(&self, number: VersionNumber) -> Result<Version, RunError> {
        self.caller.call(async || self.store.read_version(self.secret, number).await).await
    }
}

#[derive(Default)]
struct Versions {
    states: BTreeMap<VersionNumber, VersionState>,
    contents: BTreeMap<VersionNumber, SecretSlice<u8>>,
    records: BTreeMap<VersionNumber, Record>,
}

impl Versions {
    /// Records a version; returns false if none has that number.
    fn take(&mut self, number: VersionNumber, version: Version) -> bool {
        let state = match version {
            Version::Absent => return false,
            Version::Disabled => VersionState::Disabled,
            Version::Destroyed => VersionState::Destroyed,
            Version::Live(LiveVersion { content, record }) => {
                let digest = content_digest(content.expose_secret());
                self.contents.insert(number, content);
                if !record.is_empty() {
                    self.records.insert(number, Record::read(&record));
                }
                VersionState::Live(digest)
            }
        };
        self.states.insert(number, state);
        true
    }
}

/// Digest of a stored document; for one that is no pull secret, that of its bytes.
fn content_digest(bytes: &[u8]) -> Digest {
    let limits = Limits { max_bytes: usize::MAX, ..Limits::default() };
    docker_config::parse(bytes, &limits).map_or_else(|_problems| Digest::of_bytes(bytes), |document| document.digest())
}
