//! Carrying a plan out, one action at a time, until it is done or the world turns out to be another one.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{Fault, Metadata, NewSecret, Replication, SecretStore, StoreError, Version, VersionNumber};
use tokio::time::Instant;
use tracing::info;

use crate::decide::{Action, Content, Plan};
use crate::ending::Stop;
use crate::session::Session;

/// Whether a plan was carried out to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Every action is done.
    Done,
    /// Something is not as it was seen: look and decide again.
    LookAgain(&'static str),
}

/// What a run has done so far.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The versions that this run has added.
    pub(crate) added: BTreeSet<VersionNumber>,
    /// How many versions it has destroyed.
    pub(crate) destroyed: u32,
    /// The content of the version that was added last, as it was read back.
    pub(crate) read_back: Option<SecretSlice<u8>>,
    /// The number from which a version of ours may be found whose addition was not answered.
    pub(crate) unanswered: Option<VersionNumber>,
    /// How often adding has failed.
    failed_additions: u32,
}

/// A run that has added so many versions, and none of them has stayed, ends: each one is billed.
const MOST_ADDITIONS: usize = 3;

/// Carries plans out for one run.
pub(crate) struct Performer<'a, S> {
    pub(crate) session: &'a Session<'a, S>,
    /// The pull secret of this run; `None` when it deletes.
    pub(crate) wanted: Option<&'a SecretSlice<u8>>,
    pub(crate) replication: Replication,
    pub(crate) done: Done,
}

impl<S: SecretStore> Performer<'_, S> {
    /// Carries `plan` out on the secret as it was seen at `etag`.
    pub(crate) async fn perform(&mut self, plan: &Plan, mut etag: String) -> Result<Progress, Stop> {
        for action in &plan.actions {
            let progress = match action {
                Action::Create { labels, annotations } => self.create(labels, annotations).await?,
                Action::Update { labels, annotations } => {
                    let (labels, annotations) = (labels.clone(), annotations.clone());
                    let metadata = Metadata { labels, annotations, etag: etag.clone() };
                    match self.update(&metadata).await? {
                        Ok(new_etag) => {
                            etag = new_etag;
                            Progress::Done
                        }
                        Err(again) => again,
                    }
                }
                Action::Add { content, number } => self.add(*content, *number).await?,
                Action::Destroy(number) => self.destroy(*number).await?,
                Action::Delete { etag } => self.delete(etag).await?,
            };
            if progress != Progress::Done {
                return Ok(progress);
            }
        }
        Ok(Progress::Done)
    }

    async fn create(
        &self,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Progress, Stop> {
        let Session { store, secret, .. } = self.session;
        info!(operation = "create-secret", "Creating new secret: {secret}");
        let start = Instant::now();
        let new = NewSecret {
            labels: labels.clone(),
            annotations: annotations.clone(),
            replication: self.replication.clone(),
        };
        let created = self
            .session
            .caller
            .call("createSecret", async || surprise(store.create(secret, &new).await, &[Fault::AlreadyExists]));
        if created.await?.is_none() {
            return Ok(Progress::LookAgain("another run, or an unanswered call of this one, has created the secret"));
        }
        info!(operation = "create-secret", duration_ms = elapsed(start), "Successfully created secret");
        Ok(Progress::Done)
    }

    /// The new etag.
    async fn update(&self, metadata: &Metadata) -> Result<Result<String, Progress>, Stop> {
        let Session { store, secret, .. } = self.session;
        let start = Instant::now();
        let updated = self.session.caller.call("updateSecret", async || {
            surprise(store.update(secret, metadata).await, &[Fault::Changed, Fault::NotFound])
        });
        let Some(etag) = updated.await? else {
            return Ok(Err(Progress::LookAgain("the secret was changed or deleted meanwhile")));
        };
        info!(operation = "update-secret", duration_ms = elapsed(start), "Updated labels and record of the secret");
        Ok(Ok(etag))
    }

    async fn add(&mut self, content: Content, expected: VersionNumber) -> Result<Progress, Stop> {
        let copied;
        let bytes = match (content, self.wanted) {
            (Content::Wanted, Some(wanted)) => wanted,
            (Content::Wanted, None) => return Ok(Progress::LookAgain("there is no pull secret to add")),
            (Content::CopyOf(source), _) => match self.session.read(source).await? {
                Version::Live(content) => {
                    copied = content;
                    &copied
                }
                _ => return Ok(Progress::LookAgain("the version to copy has gone meanwhile")),
            },
        };
        if self.done.added.len() >= MOST_ADDITIONS {
            return Err(Stop::contended(MOST_ADDITIONS));
        }
        info!(operation = "add-secret-version", "Adding secret version with pull secret data");
        let start = Instant::now();
        let adding = self.session.store.add_version(self.session.secret, bytes);
        let number = match self.session.caller.call_once("addVersion", adding).await? {
            Ok(number) => number,
            Err(error) => return self.look_into(error, expected).await,
        };
        self.done.added.insert(number);
        let version = self.session.version_path(number);
        let duration_ms = elapsed(start);
        info!(operation = "add-secret-version", duration_ms, version, "Successfully created secret version");
        self.verify(number, bytes).await.map(|progress| {
            let overtaken = Progress::LookAgain("another run has added a version meanwhile");
            if number == expected { progress } else { overtaken }
        })
    }

    /// Adding failed: unless the failure is final, what was asked may have been done.
    async fn look_into(&mut self, error: StoreError, expected: VersionNumber) -> Result<Progress, Stop> {
        if error.fault == Fault::NotFound {
            return Ok(Progress::LookAgain("the secret was deleted meanwhile, or does not show yet"));
        }
        self.done.failed_additions += 1;
        self.session.caller.pause_after(self.done.failed_additions, error).await?;
        self.done.unanswered.get_or_insert(expected);
        Ok(Progress::LookAgain("the addition was not answered; it may have been done"))
    }

    /// Reads an added version back: the same bytes, by its number.
    async fn verify(&mut self, number: VersionNumber, written: &SecretSlice<u8>) -> Result<Progress, Stop> {
        let start = Instant::now();
        match self.session.read(number).await? {
            Version::Live(read) if read.expose_secret() == written.expose_secret() => {
                self.session.tell_verified(number, read.expose_secret().len(), elapsed(start));
                self.done.read_back = Some(read);
                Ok(Progress::Done)
            }
            Version::Live(_) => Err(Stop::unverified(number)),
            Version::Disabled | Version::Destroyed | Version::Absent => {
                Ok(Progress::LookAgain("another run has taken the version away meanwhile"))
            }
        }
    }

    async fn destroy(&mut self, number: VersionNumber) -> Result<Progress, Stop> {
        let Session { store, secret, .. } = self.session;
        let destroyed = self
            .session
            .caller
            .call("destroyVersion", async || surprise(store.destroy_version(secret, number).await, &[Fault::NotFound]));
        if destroyed.await?.is_some() {
            self.done.destroyed += 1;
            let version = self.session.version_path(number);
            info!(operation = "prune-versions", version, "Destroyed version {number}");
        }
        Ok(Progress::Done)
    }

    async fn delete(&self, etag: &str) -> Result<Progress, Stop> {
        let Session { store, secret, .. } = self.session;
        let start = Instant::now();
        let deleted = self
            .session
            .caller
            .call("deleteSecret", async || surprise(store.delete(secret, etag).await, &[Fault::Changed]));
        if deleted.await?.is_none() {
            return Ok(Progress::LookAgain("the secret was changed meanwhile"));
        }
        info!(operation = "delete-secret", duration_ms = elapsed(start), "Deleted secret: {secret}");
        Ok(Progress::Done)
    }
}

/// `None` where the call found what means that the secret is not as it was seen.
fn surprise<T>(result: Result<T, StoreError>, surprising: &[Fault]) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if surprising.contains(&error.fault) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Milliseconds since `start`.
pub(crate) fn elapsed(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}
