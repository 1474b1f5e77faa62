//! Checks all stored pull secrets against what was reported, on a schedule.
//!
//! The replica that holds the Lease checks; without a Lease each replica does. A check lists the clusters of the API and the
//! secrets of their places (projects at Google, folders elsewhere), one page a call. No list shows the state of versions, and a change of it does
//! not change the secret's etag: a rotation reads the newest version of one secret after the other, a limited number a minute. A
//! secret that is missing in a list is read before it counts as missing, within the same limit. What differs is confirmed, as the
//! cluster may have been reconciled since it was listed, and repaired by a run, a limited number a minute.

pub(crate) mod findings;
mod pace;
pub mod record;
mod round;

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_client::Resource;
use jiff::{SignedDuration, Timestamp};
use secret_store::StoreError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::decide::{Reported, StoreFinding, StoredDrift};
use crate::run::context::Context;
use crate::store::Stores;
use pace::Pace;
use record::Record;
use round::{Checked, Read, Repair, Round};

/// Time until a check is repeated that could not read the API or every place.
const RETRY_AFTER: Duration = Duration::from_mins(5);

/// Maximum time to read a cluster again before a finding about it counts.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);

/// The periodic check.
pub(crate) struct StoreCheck {
    context: Arc<Context>,
    stores: Stores,
    /// The resources whose repair is due.
    repairs: mpsc::Sender<String>,
    round: Round,
    record: Record,
    /// True if the record has findings that are not written yet.
    is_unwritten: bool,
    pace: Pace,
}

impl StoreCheck {
    pub(crate) fn new(context: Arc<Context>, stores: Stores, repairs: mpsc::Sender<String>) -> Self {
        let settings = &context.config.given.spec.store_check;
        let pace = Pace::new(settings.reads_per_minute, settings.repairs_per_minute);
        Self { context, stores, repairs, round: Round::default(), record: Record::default(), is_unwritten: false, pace }
    }

    /// Checks while this replica leads; never returns.
    pub(crate) async fn run(mut self, mut leads: watch::Receiver<bool>) {
        loop {
            // The sender lives as long as the adapter.
            if leads.wait_for(|leads| *leads).await.is_err() {
                std::future::pending::<()>().await;
            }
            let mut lost = leads.clone();
            tokio::select! {
                () = self.lead() => {}
                _ = lost.wait_for(|leads| !*leads) => {}
            }
        }
    }

    async fn lead(&mut self) {
        let interval = self.context.config.given.spec.store_check.interval;
        self.round = Round::default();
        self.record = self.read_record().await;
        let mut next_check = Instant::now() + first_wait(interval, self.record.finished, Timestamp::now());
        loop {
            tokio::select! {
                () = sleep_until(next_check) => {
                    let is_complete = self.check().await;
                    let wait = if is_complete { interval } else { interval.min(RETRY_AFTER) };
                    next_check = Instant::now() + jittered(wait, rand::random());
                }
                () = sleep_until(self.pace.next_read()), if self.round.has_reads() => self.read_next().await,
                () = sleep_until(self.pace.next_write()), if self.is_unwritten => self.write_record().await,
                () = sleep_until(self.pace.next_repair()), if self.round.has_repairs() => self.repair_next().await,
            }
        }
    }

    /// Compares all secrets with the lists of their places; returns true if all could be read.
    async fn check(&mut self) -> bool {
        let (started, clock) = (Timestamp::now(), Instant::now());
        let checked = match self.reported(started).await {
            Ok(reported) => round::compare(&self.stores, reported).await,
            Err(error) => {
                self.context.metrics.store_checked(false, None);
                tracing::warn!(operation = "check_stores", %error, "cannot list the clusters; the check is repeated");
                return false;
            }
        };
        let Checked { clusters, pages, found, failures, .. } = &checked;
        let is_complete = failures.is_empty();
        self.context.metrics.store_called("list", *pages);
        self.context.metrics.store_checked(is_complete, is_complete.then_some(started));
        for (place, error) in failures {
            tracing::warn!(operation = "check_stores", place, error, "cannot list the secrets of a place");
        }
        let is_news = (*clusters, found.len(), failures.len()) != (self.record.clusters, 0, self.record.failures.len());
        let duration_ms = u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (differ, unread) = (found.len(), failures.len());
        let message = "compared all stored pull secrets with what was reported";
        if is_news {
            tracing::info!(operation = "check_stores", clusters, pages, differ, unread, duration_ms, message);
        } else {
            tracing::debug!(operation = "check_stores", clusters, pages, differ, unread, duration_ms, message);
        }
        self.record.started = Some(started);
        self.record.finished = Some(Timestamp::now());
        (self.record.clusters, self.record.pages) = (*clusters, *pages);
        self.record.failures.clear();
        for (place, why) in failures {
            self.record.fail(place, why);
        }
        let expiry = started.checked_sub(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MIN);
        self.findings(|findings| findings.expire(expiry));
        self.round.begin(checked, &mut self.record.rotation, started);
        self.write_record().await;
        is_complete
    }

    /// Reads a single secret or version: one that was missing in a list, or the next of the rotation.
    async fn read_next(&mut self) {
        self.pace.read();
        let now = Timestamp::now();
        let Some((read, reported)) = self.round.next_read(&mut self.record.rotation, now) else { return };
        match self.read(read, &reported).await {
            Ok(Some(finding)) => self.round.add_repair(Repair { reported, finding, read: now }),
            Ok(None) => {}
            Err(error) => {
                let place = reported.copy.place();
                tracing::warn!(operation = "check_stores", place, %error, "cannot read a stored pull secret");
                self.record.fail(&place, &error.to_string());
            }
        }
    }

    async fn read(&self, read: Read, reported: &Reported) -> Result<Option<StoreFinding>, StoreError> {
        let store = self.stores.open(&reported.copy).await?;
        match read {
            Read::Secret => {
                self.context.metrics.store_called("find", 1);
                Ok(reported.compare(store.find(&reported.secret).await?.as_ref()))
            }
            Read::Version => {
                self.context.metrics.store_called("newest_version", 1);
                Ok(reported.compare_version(store.newest_version(&reported.secret).await?.as_ref()))
            }
        }
    }

    /// Confirms the next finding and has it repaired. What was reported meanwhile is compared at the next check.
    async fn repair_next(&mut self) {
        self.pace.repair();
        let Some(Repair { reported: compared, finding, read }) = self.round.next_repair() else { return };
        let id = compared.cluster.as_str();
        let (config, budget) = (&self.context.config, Budget::new(CONFIRM_TIMEOUT, CancellationToken::new()));
        let current = match self.context.client.within(&budget).get(&config.resource_type, id).await {
            Ok(found) => found.map(|resource| self.reported_of(&resource, Timestamp::now())).unwrap_or_default(),
            Err(error) => {
                tracing::warn!(operation = "check_stores", resource_id = id, %error, "cannot confirm a finding");
                return;
            }
        };
        if !current.contains(&compared) {
            let current = current.into_iter().find(|current| current.key() == compared.key());
            self.round.replace(&compared, current);
            return;
        }
        self.note(id, &finding, read);
        // It fails only at shutdown.
        let _stopped = self.repairs.send(id.to_owned()).await;
    }

    /// Counts, logs and records a finding of a store that was read from `read` on.
    fn note(&mut self, id: &str, finding: &StoreFinding, read: Timestamp) {
        let StoreFinding { kind, message } = finding;
        self.context.metrics.store_differs(*kind);
        self.record.add(id, Timestamp::now(), message);
        self.is_unwritten = true;
        tracing::warn!(
            operation = "check_stores",
            resource_id = id,
            finding = kind.as_str(),
            detail = message,
            "a stored pull secret is not as reported"
        );
        self.findings(|findings| findings.insert(id, StoredDrift { message: message.clone(), read }));
    }

    /// Returns the secrets that the adapter has reported as available.
    async fn reported(&self, now: Timestamp) -> Result<Vec<Reported>, hyperfleet_client::Error> {
        let config = &self.context.config;
        round::reported(&self.context.client, &config.resource_type, |resource| self.reported_of(resource, now)).await
    }

    fn reported_of(&self, resource: &Resource, now: Timestamp) -> Vec<Reported> {
        let config = &self.context.config;
        let settle = SignedDuration::try_from(config.given.spec.store_check.settle).unwrap_or(SignedDuration::MAX);
        Reported::of(resource, &config.adapter, now, settle)
    }

    fn findings<T>(&self, use_findings: impl FnOnce(&mut findings::Findings) -> T) -> T {
        use_findings(&mut self.context.findings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn read_record(&self) -> Record {
        let config = &self.context.config;
        let read = Record::read(&self.context.cluster, &config.namespace, &config.adapter).await;
        let read = read.inspect_err(|error| {
            tracing::warn!(operation = "check_stores", %error, "cannot read the time of the last check of the stores");
        });
        read.ok().flatten().unwrap_or_default()
    }

    async fn write_record(&mut self) {
        self.pace.write();
        self.is_unwritten = false;
        let config = &self.context.config;
        if let Err(error) = self.record.write(&self.context.cluster, &config.namespace, &config.adapter).await {
            tracing::warn!(operation = "check_stores", %error, "cannot write the record of the check of the stores");
        }
    }
}

/// Time until the first check: the rest of the interval since the last one, whichever replica made it; without one, up to a tenth of
/// the interval.
fn first_wait(interval: Duration, last: Option<Timestamp>, now: Timestamp) -> Duration {
    let Some(last) = last else { return interval.mul_f64(0.1 * rand::random::<f64>()) };
    let passed = Duration::try_from(now.duration_since(last)).unwrap_or_default();
    interval.saturating_sub(passed)
}

/// The wait with a jitter of a tenth: `random` is from 0 to 1.
fn jittered(wait: Duration, random: f64) -> Duration {
    wait.mul_f64(0.9 + 0.2 * random.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_neither_repeats_nor_postpones_a_check() {
        let hour = Duration::from_hours(1);
        let (last, now): (Timestamp, Timestamp) =
            ("2026-01-01T12:00:00Z".parse().unwrap(), "2026-01-01T12:45:00Z".parse().unwrap());
        assert_eq!(first_wait(hour, Some(last), now), Duration::from_mins(15));
        assert_eq!(first_wait(hour, Some(last), now + SignedDuration::from_hours(9)), Duration::ZERO);
        assert_eq!(first_wait(hour, Some(now), last), hour, "a clock that is behind does not check at once");
        assert!(first_wait(hour, None, now) <= Duration::from_mins(6));
        assert_eq!((jittered(hour, 0.0), jittered(hour, 1.0)), (Duration::from_mins(54), Duration::from_mins(66)));
    }
}
