//! Numbers the attempts at a generation, also when the Job of the last one is gone.
//!
//! The Job's annotation has the number. A Job that is replaced is gone before the next one exists, and one that has ended is
//! deleted after its time to live, so the report's data have the number as well.

use std::time::Duration;

use hyperfleet_client::Generation;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::facts::{Facts, PullSecretSource, Purpose};
use super::retry::MAX_BACKOFF;
use crate::config::Checked;

/// The member of a report's data that has the last attempt.
const MEMBER: &str = "attempt";
/// Time without another attempt after which the numbers begin again.
const RESET_AFTER: Duration = MAX_BACKOFF.saturating_mul(2);

/// The last attempt that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attempt {
    /// The number, from 1.
    pub(super) number: u32,
    is_deletion: bool,
    generation: Generation,
    /// The revision of the referenced pull secret that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// The time at which its Job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<Timestamp>,
}

/// Returns the last attempt at the current generation: by its Job, or else as the last report has it.
pub(super) fn last(facts: &Facts<'_>, purpose: Purpose) -> Option<Attempt> {
    let source = match &facts.source {
        PullSecretSource::Revision(revision) if purpose == Purpose::Apply => Some(revision.clone()),
        _ => None,
    };
    let (is_deletion, generation) = (purpose == Purpose::Delete, facts.resource.generation);
    if let Some(run) = facts.run(purpose) {
        return Some(Attempt { number: run.attempt, is_deletion, generation, source, ended: run.job.ended });
    }
    let recorded = facts.last_report?.data.get(MEMBER)?.clone();
    let recorded: Attempt = serde_json::from_value(recorded).ok()?;
    let is_same = recorded == Attempt { is_deletion, generation, source, ..recorded.clone() };
    let is_recent = recorded.ended.is_none_or(|ended| {
        SignedDuration::try_from(RESET_AFTER).is_ok_and(|reset| facts.now.duration_since(ended) < reset)
    });
    (is_same && is_recent).then_some(recorded)
}

/// Returns the number of the next attempt at the current generation.
pub(super) fn next(facts: &Facts<'_>, purpose: Purpose) -> u32 {
    last(facts, purpose).map_or(1, |last| last.number.saturating_add(1))
}

/// Returns the end of the last attempt if the next one is subject to a back-off. A Job that is gone before its time to live was
/// deleted so that the next one starts: by a person, or by the pass before.
pub(super) fn backs_off_from(config: &Checked, facts: &Facts<'_>, purpose: Purpose) -> Option<Timestamp> {
    if let Some(run) = facts.run(purpose) {
        return run.job.ended.or(run.job.created);
    }
    let ended = last(facts, purpose)?.ended?;
    let kept = SignedDuration::try_from(config.given.spec.job_template.keep_finished).ok()?;
    (facts.now.duration_since(ended) >= kept).then_some(ended)
}

/// Records the last attempt in a report's data, where its Job does not suffice: another attempt starts, or has started before.
pub(super) fn record(facts: &Facts<'_>, purpose: Purpose, is_starting: bool, data: &mut Map<String, Value>) {
    data.remove(MEMBER);
    if let Some(last) = last(facts, purpose).filter(|last| is_starting || last.number > 1) {
        data.insert(MEMBER.to_owned(), json!(last));
    }
}
