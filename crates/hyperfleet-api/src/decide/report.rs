//! What becomes of an adapter's report: refused, discarded, or stored.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::body::{members, text};
use crate::problem::{FieldError, Problem, shown};
use crate::resource::{Metadata, Report, ReportedCondition, Resource, Status};

/// An adapter's clock may be ahead of ours by so much.
const MOST_AHEAD: Duration = Duration::from_mins(5);
/// A report older than this says nothing about now.
const MOST_BEHIND: Duration = Duration::from_mins(30);
/// What every report must speak of, in the order in which it is checked.
const MANDATORY: [&str; 3] = ["Available", "Applied", "Health"];

/// A report as it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct NewReport {
    /// Who reports.
    pub adapter: String,
    /// The generation that it looked at.
    pub observed_generation: i64,
    /// The adapter's time; `None` is now.
    pub observed_time: Option<Timestamp>,
    /// What it found.
    pub conditions: Vec<NewCondition>,
    /// Whatever else it tells.
    pub data: Map<String, Value>,
    /// About the run behind it.
    pub metadata: Option<Metadata>,
}

/// One finding as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// Its type.
    pub kind: String,
    /// `True`, `False` or `Unknown`, once it is checked.
    pub status: String,
    /// One word, for programs.
    pub reason: Option<String>,
    /// A sentence, for people.
    pub message: Option<String>,
}

/// What is done with a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing: it is answered with 204.
    Discarded(Discard),
    /// It is what is stored already; the answer shows what is.
    Repeated(Report),
    /// It takes the place of the adapter's last one; as it is stored.
    Stored(Report),
}

/// Why a report is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// It speaks of a generation that does not exist yet.
    FutureGeneration,
    /// The adapter has reported about a newer generation.
    StaleGeneration,
    /// The adapter has reported later than this.
    StaleTime,
    /// `Available` is `Unknown`, and there is a report that says more.
    NothingNew,
}

/// Takes a report's body apart. The members of 2025 (`observedGeneration`, `lastUpdated`, …) are taken as well.
pub fn parse(mut body: Map<String, Value>) -> Result<NewReport, Problem> {
    for (old, new) in [
        ("observedGeneration", "observed_generation"),
        ("observedTime", "observed_time"),
        ("lastUpdated", "observed_time"),
    ] {
        rename(&mut body, old, new);
    }
    Ok(NewReport {
        adapter: text(&mut body, "adapter")?.unwrap_or_default(),
        observed_generation: number(&mut body, "observed_generation")?.unwrap_or_default(),
        observed_time: time(&mut body, "observed_time")?,
        conditions: conditions(&mut body)?,
        data: members(&mut body, "data")?.unwrap_or_default(),
        metadata: members(&mut body, "metadata")?.map(metadata).transpose()?,
    })
}

/// Checks what can be checked of a report without looking at its resource, in the contract's order.
pub fn check(report: &NewReport, now: Timestamp) -> Result<(), Problem> {
    let fault = |field: &str, constraint, message: String| {
        Err(Problem::validation(message.clone()).at(vec![FieldError::new(field, constraint, message)]))
    };
    if report.adapter.is_empty() {
        return fault("adapter", "required", "adapter is required".to_owned());
    }
    if report.observed_generation < 1 {
        return fault("observed_generation", "min", "observed_generation must be >= 1".to_owned());
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in report.conditions.iter().enumerate() {
        let (kind, field) = (shown(&condition.kind), format!("conditions[{index}]"));
        if condition.kind.is_empty() {
            let message = format!("condition type cannot be empty at index {index}");
            return fault(&format!("{field}.type"), "required", message);
        }
        if !seen.insert(&condition.kind) {
            let message = format!("duplicate condition type '{kind}' at index {index}");
            return fault(&format!("{field}.type"), "unique", message);
        }
        if Status::parse(&condition.status).is_none() {
            let message = format!(
                "invalid status value '{}' for condition at index {index} (type: {kind}): must be 'True', 'False', or \
                 'Unknown'",
                shown(&condition.status)
            );
            return fault(&format!("{field}.status"), "enum", message);
        }
    }
    match report.observed_time.map(|observed| observed.duration_since(now)) {
        Some(ahead) if ahead > signed(MOST_AHEAD) => {
            fault("observed_time", "max", "observed_time must not be more than 5m0s in the future".to_owned())
        }
        Some(ahead) if ahead < -signed(MOST_BEHIND) => {
            fault("observed_time", "min", "observed_time must not be more than 30m0s in the past".to_owned())
        }
        _ => Ok(()),
    }
}

/// What is done with a checked report about that resource.
pub fn judge(new: &NewReport, resource: &Resource, now: Timestamp) -> Result<Verdict, Problem> {
    let observed = new.observed_time.unwrap_or(now);
    let stored = resource.state.reports.get(&new.adapter);
    if new.observed_generation > resource.generation {
        return Ok(Verdict::Discarded(Discard::FutureGeneration));
    }
    if let Some(stored) = stored {
        if new.observed_generation < stored.observed_generation {
            return Ok(Verdict::Discarded(Discard::StaleGeneration));
        }
        if new.observed_generation == stored.observed_generation && observed < stored.last_report_time {
            return Ok(Verdict::Discarded(Discard::StaleTime));
        }
    }
    if let Some(missing) = MANDATORY.iter().find(|kind| new.conditions.iter().all(|one| one.kind != **kind)) {
        let message =
            format!("missing mandatory condition '{missing}': all adapters must report Available, Applied, and Health");
        let error = FieldError::new("conditions", "required", message.clone());
        return Err(Problem::validation(message).at(vec![error]));
    }
    let report = merge(new, stored, observed);
    if stored.is_some() && report.status("Available") == Status::Unknown {
        return Ok(Verdict::Discarded(Discard::NothingNew));
    }
    if stored == Some(&report) {
        return Ok(Verdict::Repeated(report));
    }
    Ok(Verdict::Stored(report))
}

/// The report as it is stored, given the adapter's last one.
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

// === impl Discard ===

impl Discard {
    /// One word, for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FutureGeneration => "FutureGeneration",
            Self::StaleGeneration => "StaleGeneration",
            Self::StaleTime => "StaleTime",
            Self::NothingNew => "NothingNew",
        }
    }
}

fn conditions(body: &mut Map<String, Value>) -> Result<Vec<NewCondition>, Problem> {
    let given = match body.remove("conditions") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(given)) => given,
        Some(_) => return Err(Problem::malformed("conditions must be an array")),
    };
    let conditions = given.into_iter().map(|condition| {
        let Value::Object(mut condition) = condition else {
            return Err(Problem::malformed("each of conditions must be an object"));
        };
        Ok(NewCondition {
            kind: text(&mut condition, "type")?.unwrap_or_default(),
            status: text(&mut condition, "status")?.unwrap_or_default(),
            reason: text(&mut condition, "reason")?,
            message: text(&mut condition, "message")?,
        })
    });
    conditions.collect()
}

fn metadata(mut given: Map<String, Value>) -> Result<Metadata, Problem> {
    for (old, new) in [
        ("jobName", "job_name"),
        ("jobNamespace", "job_namespace"),
        ("startedTime", "started_time"),
        ("completedTime", "completed_time"),
    ] {
        rename(&mut given, old, new);
    }
    Ok(Metadata {
        job_name: text(&mut given, "job_name")?,
        job_namespace: text(&mut given, "job_namespace")?,
        attempt: number(&mut given, "attempt")?,
        started_time: time(&mut given, "started_time")?,
        completed_time: time(&mut given, "completed_time")?,
        duration: text(&mut given, "duration")?,
    })
}

/// Gives a member its name of today, unless that says something as well.
fn rename(body: &mut Map<String, Value>, old: &str, new: &str) {
    if let Some(value) = body.remove(old)
        && body.get(new).is_none_or(Value::is_null)
    {
        body.insert(new.to_owned(), value);
    }
}

fn number(body: &mut Map<String, Value>, name: &str) -> Result<Option<i64>, Problem> {
    match body.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_i64().map(Some).ok_or_else(|| Problem::malformed(format!("{name} must be a whole number")))
        }
    }
}

/// A time in whole microseconds, as the store keeps them. Go's zero time is as good as absent.
fn time(body: &mut Map<String, Value>, name: &str) -> Result<Option<Timestamp>, Problem> {
    let Some(given) = text(body, name)? else { return Ok(None) };
    if given == "0001-01-01T00:00:00Z" {
        return Ok(None);
    }
    let fault = || Problem::malformed(format!("{name} must be a time such as 2026-01-31T12:00:00.5Z (RFC 3339)"));
    let parsed: Timestamp = given.parse().map_err(|_quotes_the_input| fault())?;
    Timestamp::from_microsecond(parsed.as_microsecond()).map(Some).map_err(|_out_of_range| fault())
}

fn signed(duration: Duration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX)
}
