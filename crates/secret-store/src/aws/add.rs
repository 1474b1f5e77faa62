//! Adds a version: put it aside, read it back, lead readers to it.
//!
//! | step | a run that ends after it leaves | the next run |
//! |---|---|---|
//! | make room: take the labels of the oldest versions | fewer old versions | goes on |
//! | put the version, with its record | a version above the current one, which no reader gets | completes it, if it adds the same; else adds the next one |
//! | read it back | the same | the same |
//! | move `AWSCURRENT` from the version that was seen | the version that readers get | has nothing to do |
//! | take the labels of what others have left above the former current version | labels | takes them to make room |
//! | put back what others have taken of its record, to make room | the version that readers get | has nothing to do |
//!
//! The first version of a secret is the current one at once; AWS has it so.
//!
//! A caller that decides to pass over a version that is not current yet does so without its record. If its writer completes it
//! meanwhile, the addition on top fails: it must be decided anew.

use std::time::Duration;

use aws_sdk_secretsmanager::primitives::Blob;
use secrecy::ExposeSecret as _;
use tokio::time::{Instant, sleep};

use super::AwsStore;
use super::client::{Call, kind};
use super::errors::{EXISTS, INVALID_PARAMETER};
use super::labels::{self, CURRENT, LABELS_OF_RECORD, MAX_LABELS};
use super::view::{Current, Found, Versions};
use crate::contract::NewVersion;
use crate::error::{ErrorKind, Operation};
use crate::{AwsSettings, Permission, SecretId, StoreError, VersionNumber};

/// First wait for a version that does not show yet; each is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

impl AwsStore {
    pub(super) async fn added(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        new: &NewVersion<'_>,
        record: Vec<String>,
    ) -> Result<VersionNumber, StoreError> {
        let view = self.describe(call, secret).await?.ok_or_else(|| call.failed(ErrorKind::NotFound))?;
        if view.is_scheduled_for_deletion {
            return Err(call.pending_deletion());
        }
        let seen = view.versions;
        if !self.passed_over.still_holds(secret, seen.current_id().as_deref()) {
            return Err(call.failed(ErrorKind::Changed));
        }
        if seen.newest().is_some_and(|newest| new.number <= newest) {
            return self.added_before(call, secret, new, &seen).await;
        }
        // A version without a number counts as the one after the newest.
        let first_free = match seen.current() {
            Current::Unnumbered(_) => new.number.previous(),
            Current::Nothing | Current::Numbered(_) => Some(new.number),
        };
        let is_next = match first_free {
            Some(number) => self.is_next(call, secret, &seen, number).await?,
            None => false,
        };
        if !is_next {
            return Err(call.failed(ErrorKind::Changed));
        }
        self.make_room(call, secret, &seen, record.len()).await?;
        let written = self.put(call, secret, new, record.clone()).await?;
        // The first version is the current one at once, unless another program's version was faster.
        if seen.current_id().is_none() && !written.labels.iter().any(|label| label == CURRENT) {
            return Err(call.failed(ErrorKind::Changed));
        }
        self.lead_readers(call, secret, new, &seen).await?;
        self.keep_record(call, secret, new, &record).await?;
        Ok(new.number)
    }

    /// Puts the labels of the record back, which a writer that needed room may have taken before the version became current.
    async fn keep_record(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        new: &NewVersion<'_>,
        record: &[String],
    ) -> Result<(), StoreError> {
        let Some(found) = self.get(call, secret, new.number).await? else { return Ok(()) };
        for label in record.iter().filter(|label| !found.labels.contains(label)) {
            self.move_label(call, secret, label, None, Some(labels::id(new.number))).await?;
        }
        Ok(())
    }

    /// Returns the result of adding a number that is taken: it is a success for the same version, which is completed if its
    /// writer was not.
    async fn added_before(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        new: &NewVersion<'_>,
        seen: &Versions,
    ) -> Result<VersionNumber, StoreError> {
        let taken = self.get(call, secret, new.number).await?;
        if !taken.is_some_and(|taken| is_same(&taken, new)) {
            return Err(call.failed(ErrorKind::Changed));
        }
        match seen.current() {
            Current::Numbered(current) if new.number <= current => Ok(new.number),
            Current::Numbered(_) if seen.newest() == Some(new.number) => {
                self.lead_readers(call, secret, new, seen).await?;
                Ok(new.number)
            }
            Current::Unnumbered(_) | Current::Numbered(_) | Current::Nothing => Err(call.failed(ErrorKind::Changed)),
        }
    }

    /// Takes the labels of the oldest versions, so that one more version can be kept. The current one has its labels always.
    async fn make_room(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        seen: &Versions,
        needed: usize,
    ) -> Result<(), StoreError> {
        let mut count = seen.count_labels();
        let mut kept = seen.kept();
        let is_current = |number: &VersionNumber| seen.current() == Current::Numbered(*number);
        // The first version gets AWSCURRENT too, a later one makes AWSPREVIOUS.
        let further = needed.max(LABELS_OF_RECORD) + 1;
        while kept.len() >= AwsSettings::VERSIONS_KEPT || count + further > MAX_LABELS {
            let Some(oldest) = kept.iter().position(|number| !is_current(number)).map(|oldest| kept.remove(oldest))
            else {
                // What is left is of people: AWS says how many there are.
                return Ok(());
            };
            let labels = seen.labels(oldest);
            self.take_labels(call, secret, oldest, labels).await?;
            count -= labels.len();
        }
        Ok(())
    }

    /// Takes all labels of a version. Another run may have taken some of them.
    pub(super) async fn take_labels(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        number: VersionNumber,
        labels: &[String],
    ) -> Result<(), StoreError> {
        for label in labels {
            match self.move_label(call, secret, label, Some(labels::id(number)), None).await {
                Err(fault) if fault.code != INVALID_PARAMETER => return Err(fault.error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts the version and reads it back: what is there afterwards is this version, or the number is another one's.
    async fn put(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        new: &NewVersion<'_>,
        record: Vec<String>,
    ) -> Result<Found, StoreError> {
        let bytes = new.content.expose_secret();
        let request = self.session.client.put_secret_value().secret_id(self.name(secret));
        let request = request.client_request_token(labels::id(new.number)).set_version_stages(Some(record));
        let request = match std::str::from_utf8(bytes) {
            Ok(text) => request.secret_string(text),
            Err(_error) => request.secret_binary(Blob::new(bytes)),
        };
        match call.send(kind(Operation::AddVersion, Permission::AddVersion), Box::pin(request.send())).await {
            Err(fault) if fault.code == EXISTS => return Err(call.failed(ErrorKind::Changed)),
            put => put.map(drop)?,
        }
        let written = self.shown(call, secret, new.number).await?;
        if is_same(&written, new) { Ok(written) } else { Err(call.failed(ErrorKind::Changed)) }
    }

    /// Reads a version that exists, and waits while it does not show.
    async fn shown(&self, call: &Call<'_>, secret: &SecretId, number: VersionNumber) -> Result<Found, StoreError> {
        let mut wait = FIRST_WAIT;
        loop {
            if let Some(found) = self.get(call, secret, number).await? {
                return Ok(found);
            }
            if Instant::now() + wait > call.deadline {
                return Err(call.failed(ErrorKind::TimedOut).with_detail("the version does not show yet"));
            }
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Makes the version the current one, if the current one is still the one that was seen.
    async fn lead_readers(
        &self,
        call: &Call<'_>,
        secret: &SecretId,
        new: &NewVersion<'_>,
        seen: &Versions,
    ) -> Result<(), StoreError> {
        let Some(from) = seen.current_id() else { return Ok(()) };
        match self.move_label(call, secret, CURRENT, Some(from), Some(labels::id(new.number))).await {
            Err(fault) if fault.code == INVALID_PARAMETER => return self.led_before(call, secret, new).await,
            moved => moved?,
        }
        // What lies between was never current, and now never will be. A failure costs labels until the next addition.
        let between = |number: &VersionNumber| match seen.current() {
            Current::Numbered(current) => *number > current && *number < new.number,
            Current::Nothing | Current::Unnumbered(_) => false,
        };
        for stray in seen.kept().into_iter().filter(between) {
            let _best_effort = self.take_labels(call, secret, stray, seen.labels(stray)).await;
        }
        Ok(())
    }

    /// Another call of the same addition may have been faster; else another writer was.
    async fn led_before(&self, call: &Call<'_>, secret: &SecretId, new: &NewVersion<'_>) -> Result<(), StoreError> {
        let found = self.get(call, secret, new.number).await?;
        let is_current = found.is_some_and(|found| found.labels.iter().any(|label| label == CURRENT));
        if is_current { Ok(()) } else { Err(call.failed(ErrorKind::Changed)) }
    }
}

/// Returns true if this version is what `new` would add.
fn is_same(found: &Found, new: &NewVersion<'_>) -> bool {
    labels::read(new.number, &found.labels).as_ref() == Some(new.record)
        && found.content.expose_secret() == new.content.expose_secret()
}
