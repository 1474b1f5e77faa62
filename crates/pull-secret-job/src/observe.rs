//! Looking at the secret: its metadata once, its versions by number.
//!
//! Metadata and lists may lag; a version read by its number is always as it is. So the recorded version is only where
//! the look begins.

use std::collections::{BTreeMap, BTreeSet};

use docker_config::{Digest, Limits};
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{Fault, Metadata, SecretStore, Version, VersionNumber};

use crate::decide::{Observed, Seen};
use crate::ending::Stop;
use crate::record::Record;
use crate::session::Session;

/// What was seen, and what the live versions hold.
pub(crate) struct Look {
    pub(crate) observed: Observed,
    pub(crate) contents: BTreeMap<VersionNumber, SecretSlice<u8>>,
}

impl Look {
    /// Nothing was looked at.
    pub(crate) fn of_nothing() -> Self {
        Self { observed: Observed::default(), contents: BTreeMap::new() }
    }
}

impl<S: SecretStore> Session<'_, S> {
    /// The secret's metadata.
    pub(crate) async fn find(&self) -> Result<Option<Metadata>, Stop> {
        let found = self.caller.call("getSecret", async || self.store.find(self.secret).await).await?;
        Ok(found.map(|secret| secret.metadata))
    }

    /// The secret and its versions from the recorded one up; `added` are the versions that this run has added.
    pub(crate) async fn look(&self, secret: Option<Metadata>, added: &BTreeSet<VersionNumber>) -> Result<Look, Stop> {
        let mut versions = Versions::default();
        if let Some(metadata) = &secret {
            let start = match Record::read(&metadata.annotations).version {
                Some(recorded) => recorded,
                None => self.highest_listed().await?,
            };
            // A version that this run knows to exist must be seen, however old the record is.
            let start = added.first().map_or(start, |first| start.min(*first));
            self.read_upwards(start, &mut versions).await?;
            if versions.seen.is_empty() && start > VersionNumber::FIRST {
                // The record is damaged, or the secret was made anew: the list knows, if late, where its versions end.
                self.read_upwards(self.highest_listed().await?, &mut versions).await?;
            }
        }
        Ok(Look {
            observed: Observed { secret, versions: versions.seen, added: added.clone() },
            contents: versions.contents,
        })
    }

    async fn highest_listed(&self) -> Result<VersionNumber, Stop> {
        let list = async || match self.store.list_versions(self.secret).await {
            // Deleted meanwhile, or not shown yet: whatever follows will meet that too.
            Err(error) if error.fault == Fault::NotFound => Ok(Vec::new()),
            listed => listed,
        };
        let listed = self.caller.call("listVersions", list).await?;
        Ok(listed.iter().map(|version| version.number).max().unwrap_or(VersionNumber::FIRST))
    }

    async fn read_upwards(&self, start: VersionNumber, versions: &mut Versions) -> Result<(), Stop> {
        let mut number = start;
        while versions.take(number, self.read(number).await?) {
            number = number.next();
        }
        Ok(())
    }

    /// Whether a version of that number has ever been added to the secret as it is now.
    pub(crate) async fn read_exists(&self, number: VersionNumber) -> Result<bool, Stop> {
        Ok(!matches!(self.read(number).await?, Version::Absent))
    }

    /// What a version is now.
    pub(crate) async fn read(&self, number: VersionNumber) -> Result<Version, Stop> {
        self.caller.call("accessVersion", async || self.store.read_version(self.secret, number).await).await
    }
}

#[derive(Default)]
struct Versions {
    seen: BTreeMap<VersionNumber, Seen>,
    contents: BTreeMap<VersionNumber, SecretSlice<u8>>,
}

impl Versions {
    /// Notes a version; `false` when there is none of that number.
    fn take(&mut self, number: VersionNumber, version: Version) -> bool {
        let seen = match version {
            Version::Absent => return false,
            Version::Disabled => Seen::Disabled,
            Version::Destroyed => Seen::Destroyed,
            Version::Live(content) => {
                let meaning = meaning(content.expose_secret());
                self.contents.insert(number, content);
                Seen::Live(meaning)
            }
        };
        self.seen.insert(number, seen);
        true
    }
}

/// The digest of a stored document; of one that is no pull secret, that of its bytes.
fn meaning(bytes: &[u8]) -> Digest {
    let limits = Limits { max_bytes: usize::MAX, ..Limits::default() };
    docker_config::parse(bytes, &limits).map_or_else(|_problems| Digest::of_bytes(bytes), |document| document.digest())
}
