//! The service itself: secrets in memory, and what a request would do to them at an instant. No clock, no disk, no network.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::names::{Key, Which};
use super::status::Status;
use super::wire::values::instant;
use super::wire::{Request, Response, Secret, SecretPayload, SecretVersion};

mod filter;
mod pages;
mod secrets;
#[cfg(test)]
mod tests;
mod validate;
mod versions;

/// All secrets of all projects.
///
/// Requests are decided without changing anything ([`State::decide`]); the owner of the durable state stores the decision's
/// [`Write`] first and lets it happen afterwards ([`State::apply`]).
#[derive(Debug, Default)]
pub(crate) struct State {
    secrets: BTreeMap<Key, Arc<Record>>,
    /// The states that eventually consistent reads still see; empty unless they lag.
    past: BTreeMap<Key, History>,
    deadlines: BTreeSet<(Timestamp, Key)>,
    lag: SignedDuration,
    revision: u64,
}

/// The states of one secret, oldest first; none where it was gone.
type History = Vec<(Timestamp, Option<Arc<Record>>)>;

/// A secret with its versions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) secret: Secret,
    pub(crate) versions: BTreeMap<u64, Version>,
}

/// A version with its content, which is gone once it is destroyed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version {
    pub(crate) meta: SecretVersion,
    pub(crate) payload: Option<Arc<SecretPayload>>,
}

/// The answer to a request, and the writes that come before it.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) response: Response,
    pub(crate) write: Option<Write>,
}

/// A secret's new state; none if it is gone.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) record: Option<Arc<Record>>,
    revision: u64,
}

impl State {
    /// An empty state whose eventually consistent reads are `lag` behind.
    pub(crate) fn new(lag: SignedDuration) -> Self {
        Self { lag, ..Self::default() }
    }

    /// Takes over a stored secret, visible to every read at once.
    pub(crate) fn load(&mut self, key: Key, record: Record) {
        let etags = record.versions.values().map(|version| &version.meta.etag).chain([&record.secret.etag]);
        let revision = etags.filter_map(|etag| revision_of(etag)).max().unwrap_or_default();
        self.apply(Timestamp::MIN, Write { key, record: Some(Arc::new(record)), revision });
    }

    /// Decides `request` at `now`.
    pub(crate) fn decide(&self, now: Timestamp, request: &Request) -> Result<Decision, Status> {
        match request {
            Request::ListSecrets(list) => self.list_secrets(now, list).map(read),
            Request::ListVersions(list) => self.list_versions(now, list).map(read),
            Request::GetSecret(named) => self.get_secret(now, &named.name).map(read),
            Request::GetVersion(named) => self.get_version(now, &named.name).map(read),
            Request::AccessVersion(named) => self.access_version(now, &named.name).map(read),
            Request::TestIamPermissions(test) => self.test_permissions(test).map(read),
            Request::CreateSecret(create) => self.create_secret(now, create),
            Request::UpdateSecret(update) => self.update_secret(now, update),
            Request::DeleteSecret(tagged) => self.delete_secret(now, tagged),
            Request::AddVersion(add) => self.add_version(now, add),
            Request::ChangeVersion(change, tagged) => self.change_version(now, *change, tagged),
            Request::Unserved(method, _) => {
                let message = format!("{method} is not implemented by this emulator.");
                Err(Status::unimplemented(message))
            }
        }
    }

    /// Lets a decided write happen.
    pub(crate) fn apply(&mut self, now: Timestamp, write: Write) {
        let Write { key, record, revision } = write;
        self.revision = self.revision.max(revision);
        if let Some(deadline) = self.secrets.get(&key).and_then(|old| old.deadline()) {
            self.deadlines.remove(&(deadline, key.clone()));
        }
        if let Some(deadline) = record.as_ref().and_then(|new| new.deadline()) {
            self.deadlines.insert((deadline, key.clone()));
        }
        if self.lag > SignedDuration::ZERO {
            self.remember(now, key.clone(), record.clone());
        }
        match record {
            Some(record) => self.secrets.insert(key, record),
            None => self.secrets.remove(&key),
        };
    }

    /// Changes by time alone until `now`: expired secrets, delayed destructions.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<Write> {
        let due = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        let records = due.filter_map(|(_, key)| Some((key, self.secrets.get(key)?)));
        let numbered = records.zip(self.next_revision(now)..);
        numbered
            .map(|((key, record), revision)| Write { key: key.clone(), record: record.aged(now, revision), revision })
            .collect()
    }

    /// Decides and lets it happen: for tests, and wherever nothing has to be stored.
    #[cfg(test)]
    pub(crate) fn handle(&mut self, now: Timestamp, request: &Request) -> Result<Response, Status> {
        for write in self.due(now) {
            self.apply(now, write);
        }
        let Decision { response, write } = self.decide(now, request)?;
        if let Some(write) = write {
            self.apply(now, write);
        }
        Ok(response)
    }

    /// The secret as it is.
    fn current(&self, key: &Key) -> Result<&Arc<Record>, Status> {
        self.secrets.get(key).ok_or_else(|| secret_not_found(key))
    }

    /// The secret as eventually consistent reads see it.
    fn seen(&self, now: Timestamp, key: &Key) -> Option<&Arc<Record>> {
        if self.lag <= SignedDuration::ZERO {
            return self.secrets.get(key);
        }
        let horizon = now.checked_sub(self.lag).unwrap_or(Timestamp::MIN);
        let past = self.past.get(key)?;
        past.iter().rev().find(|(at, _)| *at <= horizon).and_then(|(_, record)| record.as_ref())
    }

    /// Keeps a new state for lagging reads, and of the old ones only what such a read can still see.
    fn remember(&mut self, now: Timestamp, key: Key, record: Option<Arc<Record>>) {
        let horizon = now.checked_sub(self.lag).unwrap_or(Timestamp::MIN);
        let past = self.past.entry(key).or_default();
        let seen = past.iter().rposition(|(at, _)| *at <= horizon).unwrap_or_default();
        past.drain(..seen);
        past.push((now, record));
    }

    /// A number that no earlier etag was made of.
    fn next_revision(&self, now: Timestamp) -> u64 {
        let microseconds = u64::try_from(now.as_microsecond()).unwrap_or_default();
        microseconds.max(self.revision.saturating_add(1))
    }
}

impl Record {
    /// The time of the next change of this secret by time alone.
    fn deadline(&self) -> Option<Timestamp> {
        let scheduled =
            self.versions.values().filter_map(|version| instant(version.meta.scheduled_destroy_time.as_ref()));
        scheduled.chain(instant(self.secret.expire_time.as_ref())).min()
    }

    /// The secret at `now`.
    fn aged(&self, now: Timestamp, revision: u64) -> Option<Arc<Self>> {
        let due = |at: Option<&prost_types::Timestamp>| instant(at).is_some_and(|at| at <= now);
        if due(self.secret.expire_time.as_ref()) {
            return None;
        }
        let mut record = self.clone();
        for version in record.versions.values_mut() {
            let at = version.meta.scheduled_destroy_time;
            if due(at.as_ref()) {
                version.destroy(instant(at.as_ref()).unwrap_or(now));
                version.meta.etag = etag(revision);
            }
        }
        Some(Arc::new(record))
    }

    /// The number that `which` stands for in this secret.
    fn resolve(&self, which: &Which) -> Option<u64> {
        let number = match which {
            Which::Number(number) => *number,
            Which::Latest => *self.versions.last_key_value()?.0,
            Which::Alias(alias) => u64::try_from(*self.secret.version_aliases.get(alias)?).ok()?,
        };
        self.versions.contains_key(&number).then_some(number)
    }
}

/// A decision that changes nothing.
fn read(response: Response) -> Decision {
    Decision { response, write: None }
}

/// An etag as Google writes them: quotes are part of it.
fn etag(revision: u64) -> String {
    format!("\"{revision:x}\"")
}

fn revision_of(etag: &str) -> Option<u64> {
    u64::from_str_radix(etag.trim_matches('"'), 16).ok()
}

/// Refuses an etag that was given and is not the current one.
fn check_etag(given: &str, current: &str, what: &str) -> Result<(), Status> {
    if given.is_empty() || given == current {
        return Ok(());
    }
    let message = format!("The etag in the request does not match the current etag of {what}.");
    Err(Status::precondition(message))
}

fn secret_not_found(key: &Key) -> Status {
    Status::not_found(format!("Secret [{key}] not found."))
}
