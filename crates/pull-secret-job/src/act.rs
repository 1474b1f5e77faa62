//! Carries a plan out, one action at a time, until it is done or the state differs from the observed one.

use std::collections::{BTreeMap, BTreeSet};

use daemon::log::SPANS;
use fleet_model::names::trace::{
    ADD_VERSION, CREATE_SECRET, DELETE_SECRET, DESTROY_VERSION, READ_BACK, UPDATE_RECORD, VERSION,
};
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{
    ErrorKind, LiveVersion, Metadata, NewSecret, NewVersion, Replication, SecretStore, StoreError, Version,
    VersionNumber,
};
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, info, info_span};

use crate::decide::{Action, Content, Plan};
use crate::outcome::RunError;
use crate::session::Session;

/// Span of a step that consists of calls of the store.
macro_rules! step {
    ($name:expr) => {
        tracing::info_span!(target: daemon::log::SPANS, $name, otel.kind = "client")
    };
}
pub(crate) use step;

/// Result of an action or a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Every action is done.
    Done,
    /// The state differs from the observed one: observe and decide again.
    ObserveAgain(&'static str),
}

/// Effects of a run so far.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The versions that this run has added.
    pub(crate) added: BTreeSet<VersionNumber>,
    /// Number of versions that it has destroyed.
    pub(crate) destroyed: u32,
    /// The content of the version that was added last, as it was read back.
    pub(crate) read_back: Option<SecretSlice<u8>>,
    /// First number that a version may have whose addition was not answered.
    pub(crate) unanswered: Option<VersionNumber>,
    /// Number of failed additions.
    failed_additions: u32,
}

/// Maximum number of versions that a run adds if none of them persists: each one is billed.
const MAX_ADDITIONS: usize = 3;

/// Carries plans out for one run.
pub(crate) struct Performer<'a, S> {
    pub(crate) session: &'a Session<'a, S>,
    /// The pull secret of this run; `None` when it deletes.
    pub(crate) content: Option<&'a SecretSlice<u8>>,
    pub(crate) replication: Replication,
    pub(crate) done: Done,
}

impl<S: SecretStore> Performer<'_, S> {
    /// Carries `plan` out on the secret as it was observed at `etag`.
    pub(crate) async fn perform(&mut self, plan: &Plan, mut etag: String) -> Result<Progress, RunError> {
        for action in &plan.actions {
            let progress = match action {
                Action::Create { labels, annotations } => {
                    self.create(labels, annotations).instrument(step!(CREATE_SECRET)).await?
                }
                Action::Update { labels, annotations } => {
                    let (labels, annotations) = (labels.clone(), annotations.clone());
                    let metadata = Metadata { labels, annotations, etag: etag.clone() };
                    match self.update(&metadata).instrument(step!(UPDATE_RECORD)).await? {
                        Ok(new_etag) => {
                            etag = new_etag;
                            Progress::Done
                        }
                        Err(again) => again,
                    }
                }
                Action::Add { content, number, record } => self.add(*content, *number, record).await?,
                Action::Destroy(number) => self.destroy(*number).instrument(step!(DESTROY_VERSION)).await?,
                Action::Delete { etag } => self.delete(etag).instrument(step!(DELETE_SECRET)).await?,
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
    ) -> Result<Progress, RunError> {
        let Session { store, secret, .. } = self.session;
        info!(operation = "create-secret", "Creating new secret: {secret}");
        let start = Instant::now();
        let new = NewSecret {
            labels: labels.clone(),
            annotations: annotations.clone(),
            replication: self.replication.clone(),
        };
        let created =
            self.session.caller.call(async || unless(store.create(secret, &new).await, &[ErrorKind::AlreadyExists]));
        if created.await?.is_none() {
            return Ok(Progress::ObserveAgain(
                "another run, or an unanswered call of this one, has created the secret",
            ));
        }
        info!(operation = "create-secret", duration_ms = elapsed(start), "Successfully created secret");
        Ok(Progress::Done)
    }

    /// Updates the metadata and returns the new etag.
    async fn update(&self, metadata: &Metadata) -> Result<Result<String, Progress>, RunError> {
        let Session { store, secret, .. } = self.session;
        let start = Instant::now();
        let updated = self
            .session
            .caller
            .call(async || unless(store.update(secret, metadata).await, &[ErrorKind::Changed, ErrorKind::NotFound]));
        let Some(etag) = updated.await? else {
            return Ok(Err(Progress::ObserveAgain("the secret was changed or deleted concurrently")));
        };
        info!(operation = "update-secret", duration_ms = elapsed(start), "Updated labels and record of the secret");
        Ok(Ok(etag))
    }

    async fn add(
        &mut self,
        content: Content,
        expected: VersionNumber,
        record: &BTreeMap<String, String>,
    ) -> Result<Progress, RunError> {
        let copied;
        let bytes = match (content, self.content) {
            (Content::Desired, Some(desired)) => desired,
            (Content::Desired, None) => return Ok(Progress::ObserveAgain("there is no pull secret to add")),
            (Content::CopyOf(source), _) => match self.session.read(source).await? {
                Version::Live(LiveVersion { content, .. }) => {
                    copied = content;
                    &copied
                }
                _ => return Ok(Progress::ObserveAgain("the version to copy was destroyed concurrently")),
            },
        };
        if self.done.added.len() >= MAX_ADDITIONS {
            return Err(RunError::contended(MAX_ADDITIONS));
        }
        info!(operation = "add-secret-version", "Adding secret version with pull secret data");
        let start = Instant::now();
        let traced = info_span!(target: SPANS, ADD_VERSION, otel.kind = "client", { VERSION } = Empty);
        let new = NewVersion { number: expected, content: bytes, record };
        let adding = self.session.store.add_version(self.session.secret, &new).instrument(traced.clone());
        let number = match self.session.caller.call_once(adding).await? {
            Ok(number) => number,
            Err(error) => return self.after_failed_addition(error, expected).await,
        };
        traced.record(VERSION, number.get());
        drop(traced);
        self.done.added.insert(number);
        let version = self.session.version_path(number);
        let duration_ms = elapsed(start);
        info!(operation = "add-secret-version", duration_ms, version, "Successfully created secret version");
        let traced = info_span!(target: SPANS, READ_BACK, otel.kind = "client", { VERSION } = number.get());
        self.verify(number, bytes).instrument(traced).await.map(|progress| {
            let overtaken = Progress::ObserveAgain("another run has added a version concurrently");
            if number == expected { progress } else { overtaken }
        })
    }

    /// Handles a failed addition: unless the failure is permanent, the version may have been added.
    async fn after_failed_addition(
        &mut self,
        error: StoreError,
        expected: VersionNumber,
    ) -> Result<Progress, RunError> {
        if error.kind == ErrorKind::NotFound {
            return Ok(Progress::ObserveAgain("the secret was deleted concurrently, or its metadata lags"));
        }
        if error.kind == ErrorKind::Changed {
            return Ok(Progress::ObserveAgain("another run has added a version concurrently"));
        }
        self.done.failed_additions += 1;
        self.session.caller.pause_after(self.done.failed_additions, error).await?;
        self.done.unanswered.get_or_insert(expected);
        Ok(Progress::ObserveAgain("the addition was not answered; it may have been done"))
    }

    /// Verifies an added version: reads it by its number and compares the bytes.
    async fn verify(&mut self, number: VersionNumber, written: &SecretSlice<u8>) -> Result<Progress, RunError> {
        let start = Instant::now();
        match self.session.read(number).await? {
            Version::Live(read) if read.content.expose_secret() == written.expose_secret() => {
                self.session.log_verified(number, read.content.expose_secret().len(), elapsed(start));
                self.done.read_back = Some(read.content);
                Ok(Progress::Done)
            }
            Version::Live(_) => Err(RunError::unverified(number)),
            Version::Disabled | Version::Destroyed | Version::Absent => {
                Ok(Progress::ObserveAgain("another run has destroyed the version concurrently"))
            }
        }
    }

    async fn destroy(&mut self, number: VersionNumber) -> Result<Progress, RunError> {
        let Session { store, secret, .. } = self.session;
        let destroyed = self
            .session
            .caller
            .call(async || unless(store.destroy_version(secret, number).await, &[ErrorKind::NotFound]));
        if destroyed.await?.is_some() {
            self.done.destroyed += 1;
            let version = self.session.version_path(number);
            info!(operation = "prune-versions", version, "Destroyed version {number}");
        }
        Ok(Progress::Done)
    }

    async fn delete(&self, etag: &str) -> Result<Progress, RunError> {
        let Session { store, secret, .. } = self.session;
        let start = Instant::now();
        let deleted =
            self.session.caller.call(async || unless(store.delete(secret, etag).await, &[ErrorKind::Changed]));
        if deleted.await?.is_none() {
            return Ok(Progress::ObserveAgain("the secret was changed concurrently"));
        }
        info!(operation = "delete-secret", duration_ms = elapsed(start), "Deleted secret: {secret}");
        Ok(Progress::Done)
    }
}

/// Returns `None` for a failure that shows that the secret differs from the observed one.
fn unless<T>(result: Result<T, StoreError>, concurrent: &[ErrorKind]) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if concurrent.contains(&error.kind) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Milliseconds since `start`.
pub(crate) fn elapsed(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)
}
