//! Compares the copy in the mirror with that in the first store: as the last run has reported them, and as the last check of
//! the stores has found them since.

use adapter::config::StoreKind;
use adapter::store_check::record::Record;
use fleet_model::condition::known_time;
use fleet_model::{StoredCopy, copy, names};
use hyperfleet_client::Status;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::copies::{Copies, CopyView, Parity, ParityReason};
use crate::facts::Facts;

/// Returns both copies; `None` if the pull secret is not mirrored.
pub(super) fn copies(facts: &Facts) -> Option<Copies> {
    let data = &facts.report.as_ref()?.data;
    let of_mirror = copy::mirror(data)?;
    let (in_first, in_mirror) = (StoredCopy::written(data)?, StoredCopy::of_mirror(data)?);
    let (first, mirror) = (view(&in_first, data), view(&in_mirror, of_mirror));
    let checked = checked(facts, &in_first, &in_mirror);
    let parity = checked.unwrap_or_else(|| reported(&first, &mirror));
    Some(Copies { first, mirror, parity })
}

fn view(copy: &StoredCopy, data: &Map<String, Value>) -> CopyView {
    let text = |member: &str| data.get(member).and_then(Value::as_str).map(str::to_owned);
    CopyView {
        store: StoreKind::of(copy).map_or(names::STORE_GOOGLE, StoreKind::name),
        secret: copy.to_string(),
        version: data.get(copy::VERSION).and_then(Value::as_u64),
        generation: text("generation"),
        digest: text("digest"),
    }
}

/// Returns what the last check of the stores has found that the last run does not know.
fn checked(facts: &Facts, first: &StoredCopy, mirror: &StoredCopy) -> Option<Parity> {
    let record = facts.store_check.found()?.as_ref()?;
    let available = facts.report.as_ref()?.condition(names::condition::AVAILABLE)?;
    let stored = known_time(available.last_transition_time).filter(|_| available.status == Status::True);
    let is_since = |time: Option<Timestamp>| stored.is_none_or(|stored| time.is_some_and(|time| time > stored));
    let Record { findings, failures, finished, .. } = record;
    let failure = |copy: &StoredCopy| failures.get(&copy.place()).filter(|_| is_since(*finished));
    if let Some(why) = failure(mirror) {
        return Some(parity(ParityReason::MirrorUnread, format!("mirror could not be read: {why}")));
    }
    if let Some(why) = failure(first) {
        return Some(parity(ParityReason::FirstStoreUnread, format!("first store could not be read: {why}")));
    }
    let found = findings.iter().find(|found| found.cluster == facts.id && is_since(Some(found.found)))?;
    let names = |copy: &StoredCopy| found.message.contains(&copy.to_string());
    (names(mirror) || names(first)).then(|| parity(ParityReason::Changed, format!("changed since: {}", found.message)))
}

/// Compares the copies as they were reported.
fn reported(first: &CopyView, mirror: &CopyView) -> Parity {
    let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    if mirror.generation.is_none() && mirror.version.is_none() {
        return parity(ParityReason::NotMirrored, "mirror holds nothing that was read back yet".to_owned());
    }
    if mirror.generation != first.generation {
        let (held, first) = (shown(&mirror.generation), shown(&first.generation));
        return parity(ParityReason::OtherGeneration, format!("mirror holds generation {held}, first store {first}"));
    }
    if mirror.digest != first.digest {
        let (held, first) = (shown(&mirror.digest), shown(&first.digest));
        return parity(ParityReason::OtherContent, format!("mirror holds other content: {held}, first store {first}"));
    }
    parity(ParityReason::SameContent, "mirror holds the same content".to_owned())
}

fn parity(reason: ParityReason, message: String) -> Parity {
    Parity { reason, message }
}
