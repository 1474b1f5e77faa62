//! Decisions about an adapter's report: it is refused, discarded, or stored.

use std::collections::BTreeSet;
use std::time::Duration;

use fleet_model::names::condition::{APPLIED, AVAILABLE, FINALIZED, HEALTH};
use fleet_model::{Generation, Report, ReportMetadata, ReportedCondition, Status};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::body::{BodyError, JsonType, item, items, members, take, text};
use crate::excerpt::excerpt;
use crate::resource::Resource;

/// Maximum size of a report's body, in bytes.
pub const MAX_REPORT: usize = 64 * 1024;
/// Maximum length of an adapter's name, in characters.
pub const MAX_ADAPTER: usize = 63;
/// Maximum number of adapters that report about one resource.
pub const MAX_ADAPTERS: usize = 64;
/// Maximum size of all reports about one resource, in bytes of JSON.
pub const MAX_REPORTS: usize = 512 * 1024;

/// Maximum time by which an adapter's clock may be ahead of this server's.
const MAX_AHEAD: Duration = Duration::from_mins(5);
/// Time ahead of this server's clock from which an adapter's clock is taken for wrong.
const SKEW: Duration = Duration::from_secs(10);
/// Maximum age of a report.
const MAX_AGE: Duration = Duration::from_mins(30);
/// Conditions that every report must have, in the order in which they are checked.
const MANDATORY: [&str; 3] = [AVAILABLE, APPLIED, HEALTH];

/// A report as it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct NewReport {
    /// The adapter's name.
    pub adapter: String,
    /// The generation that the adapter observed.
    pub observed_generation: Generation,
    /// The adapter's time; `None` is the time of the request.
    pub observed_time: Option<Timestamp>,
    /// True if the report must not be old. The contract of 2025, with `lastUpdated`, has no such rule.
    pub is_age_bounded: bool,
    /// The conditions that the adapter reports.
    pub conditions: Vec<NewCondition>,
    /// Further data of the adapter.
    pub data: Map<String, Value>,
    /// Details of the run behind the report.
    pub metadata: Option<ReportMetadata>,
}

/// One condition of a report as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// The condition's type.
    pub kind: String,
    /// `True`, `False` or `Unknown`, once it is checked.
    pub status: String,
    /// One word, for programs.
    pub reason: Option<String>,
    /// A sentence, for people.
    pub message: Option<String>,
}

/// A report that breaks a rule of the contract. The text is the answer's detail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// The report names no adapter.
    #[error("adapter is required")]
    AdapterMissing,
    /// The generation is missing or less than 1.
    #[error("observed_generation must be >= 1")]
    GenerationTooSmall,
    /// A condition has no type.
    #[error("condition type cannot be empty at index {index}")]
    TypeMissing {
        /// The condition's index.
        index: usize,
    },
    /// Two conditions have the same type.
    #[error("duplicate condition type '{}' at index {index}", excerpt(.kind))]
    DuplicateType {
        /// The index of the second one.
        index: usize,
        /// The type.
        kind: String,
    },
    /// A condition's status is none of the three.
    #[error(
        "invalid status value '{}' for condition at index {index} (type: {}): must be 'True', 'False', or 'Unknown'",
        excerpt(.status),
        excerpt(.kind)
    )]
    InvalidStatus {
        /// The condition's index.
        index: usize,
        /// The condition's type.
        kind: String,
        /// The status in the request.
        status: String,
    },
    /// The adapter's name is too long.
    #[error("adapter must be at most {MAX_ADAPTER} characters")]
    AdapterTooLong,
    /// The resource has reports of as many adapters as it may.
    #[error("the resource has reports of {MAX_ADAPTERS} adapters, which is the maximum")]
    TooManyAdapters,
    /// The reports of all adapters together are too large.
    #[error("the reports of all adapters of the resource would be larger than {MAX_REPORTS} bytes: report less data")]
    TooMuch,
    /// The adapter's time lies too far ahead.
    #[error("observed_time must not be more than 5m0s in the future")]
    TooFarAhead,
    /// The report is too old.
    #[error("observed_time must not be more than 30m0s in the past")]
    TooOld,
    /// A mandatory condition is missing.
    #[error("missing mandatory condition '{0}': all adapters must report Available, Applied, and Health")]
    ConditionMissing(&'static str),
}

/// The decision about a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The report is not stored; the answer is 204.
    Discard(DiscardReason),
    /// The report has the time of the stored one, which stays and is the answer.
    Unchanged(Report),
    /// The report replaces the adapter's previous one.
    Store(Report),
}

fleet_model::reasons! {
    /// Reason why a report is not stored.
    pub enum DiscardReason {
        /// The observed generation does not exist yet.
        FutureGeneration,
        /// The adapter has reported a newer generation.
        StaleGeneration,
        /// The adapter has reported at a later time.
        StaleTime,
        /// `Available` is `Unknown`, and the stored report says more.
        NothingNew,
    }
}

/// Parses a report's body. The members of 2025 (`observedGeneration`, `lastUpdated`, …) are accepted as well.
pub fn parse(mut body: Map<String, Value>) -> Result<NewReport, BodyError> {
    let is_age_bounded =
        ["observed_time", "observedTime"].iter().any(|name| body.get(*name).is_some_and(|time| !time.is_null()));
    for (old, new) in [
        ("observedGeneration", "observed_generation"),
        ("observedTime", "observed_time"),
        ("lastUpdated", "observed_time"),
    ] {
        rename(&mut body, old, new);
    }
    Ok(NewReport {
        adapter: text(&mut body, "adapter")?.unwrap_or_default(),
        observed_generation: generation(&mut body)?,
        observed_time: time(&mut body, "observed_time")?,
        is_age_bounded,
        conditions: conditions(&mut body)?,
        data: members(&mut body, "data")?.unwrap_or_default(),
        metadata: members(&mut body, "metadata")?.map(metadata).transpose()?,
    })
}

/// Checks a report as far as is possible without its resource, in the contract's order.
pub fn check(report: &NewReport, now: Timestamp) -> Result<(), ReportError> {
    if report.adapter.chars().nth(MAX_ADAPTER).is_some() {
        return Err(ReportError::AdapterTooLong);
    }
    if report.adapter.is_empty() {
        return Err(ReportError::AdapterMissing);
    }
    if report.observed_generation.is_none() {
        return Err(ReportError::GenerationTooSmall);
    }
    let mut types = BTreeSet::new();
    for (index, NewCondition { kind, status, .. }) in report.conditions.iter().enumerate() {
        if kind.is_empty() {
            return Err(ReportError::TypeMissing { index });
        }
        if !types.insert(kind) {
            return Err(ReportError::DuplicateType { index, kind: kind.clone() });
        }
        if Status::parse(status).is_none() {
            return Err(ReportError::InvalidStatus { index, kind: kind.clone(), status: status.clone() });
        }
    }
    match report.observed_time.map(|observed| observed.duration_since(now)) {
        Some(ahead) if ahead > signed(MAX_AHEAD) => Err(ReportError::TooFarAhead),
        Some(ahead) if ahead < -signed(MAX_AGE) && report.is_age_bounded => Err(ReportError::TooOld),
        _ => Ok(()),
    }
}

/// Decides about a checked report of that resource.
pub fn decide(new: &NewReport, resource: &Resource, now: Timestamp) -> Result<Decision, ReportError> {
    let observed = new.observed_time.unwrap_or(now);
    let stored = resource.state.reports.get(&new.adapter);
    if new.observed_generation > resource.generation {
        return Ok(Decision::Discard(DiscardReason::FutureGeneration));
    }
    if let Some(stored) = stored {
        if new.observed_generation < stored.observed_generation {
            return Ok(Decision::Discard(DiscardReason::StaleGeneration));
        }
        // A clock that is ahead must not silence the ones that are right, until they have caught up with it.
        let is_wrong = stored.last_report_time.duration_since(now) > signed(SKEW) && observed <= now;
        let is_older = observed < stored.last_report_time && !is_wrong;
        if new.observed_generation == stored.observed_generation && is_older {
            return Ok(Decision::Discard(DiscardReason::StaleTime));
        }
    }
    if let Some(missing) = MANDATORY.iter().find(|kind| new.conditions.iter().all(|one| one.kind != **kind)) {
        return Err(ReportError::ConditionMissing(missing));
    }
    let report = merge(new, stored, observed);
    if stored.is_some() && report.status(AVAILABLE) == Status::Unknown {
        return Ok(Decision::Discard(DiscardReason::NothingNew));
    }
    match stored {
        Some(stored)
            if (stored.observed_generation, stored.last_report_time) == (report.observed_generation, observed) =>
        {
            Ok(Decision::Unchanged(stored.clone()))
        }
        _ => Ok(Decision::Store(report)),
    }
}

/// Returns true if the report says that the adapter has finalized the resource.
pub fn finalizes(new: &NewReport) -> bool {
    new.conditions.iter().any(|condition| condition.kind == FINALIZED && condition.status == Status::True.as_str())
}

/// Checks the room that a resource has for its reports. Whatever became too large earlier may still shrink.
pub fn check_room(before: &Resource, after: &Resource) -> Result<(), ReportError> {
    let (old, new) = (&before.state.reports, &after.state.reports);
    if new.len() > MAX_ADAPTERS && new.len() > old.len() {
        return Err(ReportError::TooManyAdapters);
    }
    // Values with string keys always serialise.
    let size = |reports| serde_json::to_vec(reports).map_or(usize::MAX, |bytes| bytes.len());
    let size_after = size(new);
    if size_after > MAX_REPORTS && size_after > size(old) { Err(ReportError::TooMuch) } else { Ok(()) }
}

/// Returns the report as it is stored, with transition times kept from the adapter's previous report.
fn merge(new: &NewReport, stored: Option<&Report>, observed: Timestamp) -> Report {
    let conditions = new.conditions.iter().map(|condition| {
        let status = Status::parse(&condition.status).unwrap_or(Status::Unknown);
        let before = stored.and_then(|stored| stored.condition(&condition.kind));
        let kept = before.filter(|before| before.status == status).map(|before| before.last_transition_time);
        ReportedCondition {
            kind: condition.kind.clone(),
            status,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            last_transition_time: kept.unwrap_or(observed),
        }
    });
    Report {
        adapter: new.adapter.clone(),
        observed_generation: new.observed_generation,
        conditions: conditions.collect(),
        data: new.data.clone(),
        metadata: new.metadata.clone(),
        created_time: stored.map_or(observed, |stored| stored.created_time),
        last_report_time: observed,
    }
}

fn conditions(body: &mut Map<String, Value>) -> Result<Vec<NewCondition>, BodyError> {
    let given = items(body, "conditions")?.unwrap_or_default();
    let conditions = given.into_iter().map(|condition| {
        let mut condition = item(condition, "conditions")?;
        Ok(NewCondition {
            kind: text(&mut condition, "conditions.type")?.unwrap_or_default(),
            status: text(&mut condition, "conditions.status")?.unwrap_or_default(),
            reason: text(&mut condition, "conditions.reason")?,
            message: text(&mut condition, "conditions.message")?,
        })
    });
    conditions.collect()
}

fn metadata(mut given: Map<String, Value>) -> Result<ReportMetadata, BodyError> {
    for (old, new) in [
        ("jobName", "job_name"),
        ("jobNamespace", "job_namespace"),
        ("startedTime", "started_time"),
        ("completedTime", "completed_time"),
    ] {
        rename(&mut given, old, new);
    }
    Ok(ReportMetadata {
        job_name: text(&mut given, "metadata.job_name")?,
        job_namespace: text(&mut given, "metadata.job_namespace")?,
        attempt: number(&mut given, "metadata.attempt")?,
        started_time: time(&mut given, "metadata.started_time")?,
        completed_time: time(&mut given, "metadata.completed_time")?,
        duration: text(&mut given, "metadata.duration")?,
    })
}

/// Renames a member to its name of today, unless the body has a member of that name as well.
fn rename(body: &mut Map<String, Value>, old: &str, new: &str) {
    if let Some(value) = body.remove(old)
        && body.get(new).is_none_or(Value::is_null)
    {
        body.insert(new.to_owned(), value);
    }
}

/// Takes the observed generation; absent and negative numbers are none, which [`check`] refuses.
fn generation(body: &mut Map<String, Value>) -> Result<Generation, BodyError> {
    let number = number(body, "observed_generation")?;
    Ok(number.and_then(|number| Generation::try_from(number).ok()).unwrap_or_default())
}

/// Takes a whole number of at most 32 bits.
fn number(body: &mut Map<String, Value>, path: &'static str) -> Result<Option<i64>, BodyError> {
    let number = |value: Value| value.as_i64().and_then(|number| i32::try_from(number).ok()).map(i64::from);
    let wrong = BodyError::WrongType { path, expected: JsonType::Number };
    take(body, path).map(|value| number(value).ok_or(wrong)).transpose()
}

/// Takes a time in whole microseconds, the store's precision. Go's zero time counts as absent.
fn time(body: &mut Map<String, Value>, path: &'static str) -> Result<Option<Timestamp>, BodyError> {
    let wrong = || BodyError::Time(path);
    let given = match take(body, path) {
        None => return Ok(None),
        Some(Value::String(given)) if given == "0001-01-01T00:00:00Z" => return Ok(None),
        Some(Value::String(given)) => given,
        // Malformed like a text that is no time, unlike every other wrong type: Go's decoder parses times itself.
        Some(_) => return Err(wrong()),
    };
    let parsed: Timestamp = given.parse().map_err(|_quotes_the_input| wrong())?;
    Timestamp::from_microsecond(parsed.as_microsecond()).map(Some).map_err(|_out_of_range| wrong())
}

fn signed(duration: Duration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX)
}
