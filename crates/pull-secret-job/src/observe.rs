//! Looking at the secret: its metadata once, its versions by number.
//!
//! Metadata and lists may lag; a version read by its number is always as it is. So the recorded version is only where
//! the look begins.

use std::collections::{BTreeMap, BTreeSet};

use docker_config::{Digest, Limits};
use secrecy::ExposeSecret as _;
use secret_store::{Metadata, SecretStore, Version, VersionNumber};

use crate::decide::{Observed, Seen};
use crate::ending::Stop;
use crate::record::Record;
use crate::session::Session;

/// What was seen, and the size of the content of each live version.
pub(crate) struct Look {
    pub(crate) observed: Observed,
    pub(crate) sizes: BTreeMap<VersionNumber, usize>,
}

impl<S: SecretStore> Session<'_, S> {
    /// The secret's metadata.
    pub(crate) async fn find(&self) -> Result<Option<Metadata>, Stop> {
        let found = self.call("getSecret", async || self.store.find(self.secret).await).await?;
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
            if versions.seen.is_empty() {
                self.read_downwards(start, &mut versions).await?;
            }
        }
        Ok(Look { observed: Observed { secret, versions: versions.seen, added: added.clone() }, sizes: versions.sizes })
    }

    async fn highest_listed(&self) -> Result<VersionNumber, Stop> {
        let listed = self.call("listVersions", async || self.store.list_versions(self.secret).await).await?;
        Ok(listed.iter().map(|version| version.number).max().unwrap_or(VersionNumber::FIRST))
    }

    async fn read_upwards(&self, start: VersionNumber, versions: &mut Versions) -> Result<(), Stop> {
        let mut number = start;
        while versions.take(number, self.read(number).await?) {
            number = number.next();
        }
        Ok(())
    }

    /// The record was written, but the version that it announces was never added: the one before it is the highest.
    async fn read_downwards(&self, start: VersionNumber, versions: &mut Versions) -> Result<(), Stop> {
        let mut below = start.previous();
        while let Some(number) = below
            && !versions.take(number, self.read(number).await?)
        {
            below = number.previous();
        }
        Ok(())
    }

    /// What a version is now.
    pub(crate) async fn read(&self, number: VersionNumber) -> Result<Version, Stop> {
        self.call("accessVersion", async || self.store.read_version(self.secret, number).await).await
    }
}

#[derive(Default)]
struct Versions {
    seen: BTreeMap<VersionNumber, Seen>,
    sizes: BTreeMap<VersionNumber, usize>,
}

impl Versions {
    /// Notes a version; `false` when there is none of that number.
    fn take(&mut self, number: VersionNumber, version: Version) -> bool {
        let seen = match version {
            Version::Absent => return false,
            Version::Disabled => Seen::Disabled,
            Version::Destroyed => Seen::Destroyed,
            Version::Live(content) => {
                let bytes = content.expose_secret();
                self.sizes.insert(number, bytes.len());
                Seen::Live(meaning(bytes))
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
