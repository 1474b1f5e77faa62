//! The facts that a decision is based on.

use std::collections::BTreeSet;

use fleet_model::{StoredCopy, copy, job, names};
use hyperfleet_client::{Generation, Report, ReportedCondition, Resource, Status, View};
use jiff::{SignedDuration, Timestamp};
use kubernetes::ObservedJob;
use serde_json::{Map, Value};

use crate::binding::{Placeholders, Required};
use crate::config::{Checked, JobStore};
use crate::outcome::Outcome;

/// The member of a report's data that names the revision of the referenced pull secret.
pub const SOURCE: &str = "source";

/// The precision of the times that Kubernetes writes into a Job.
const JOB_TIME_PRECISION: SignedDuration = SignedDuration::from_secs(1);

/// The observed state of a resource and its runs.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The resource; its pull secret is a redacted placeholder.
    pub resource: &'a Resource,
    /// The resource as preconditions see it.
    pub view: &'a View,
    /// This adapter's last report, as the API stores it.
    pub last_report: Option<&'a Report>,
    /// The adapter's runs for this resource, whatever their generation.
    pub runs: Vec<Run<'a>>,
    /// The location of the pull secret.
    pub source: PullSecretSource,
    /// The state of the Secret that runs apply.
    pub output: OutputState,
    /// A difference between the secret store and the last report that was found by a check, if any.
    pub stored: Option<StoredDrift>,
    /// The input of the resource's runs; `None` if there is none.
    pub input: Option<InputState>,
    /// The time of the decision.
    pub now: Timestamp,
}

/// A run: its Job and its outcome.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The Job.
    pub job: &'a ObservedJob,
    /// The generation that it applies.
    pub generation: Generation,
    /// Its purpose.
    pub purpose: Purpose,
    /// The number of the attempt at this generation, from 1.
    pub attempt: u32,
    /// The revision of the referenced pull secret that it was given.
    pub source: Option<String>,
    /// The copy that it deletes, if it is a clean-up.
    pub copy: Option<StoredCopy>,
    /// Its termination message, if it has ended or some of its Pods have failed.
    pub outcome: Option<Outcome>,
}

/// The purpose of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To store and apply the pull secret, or to repair it.
    Apply,
    /// To remove everything that other runs have created.
    Delete,
    /// To delete a single copy of the pull secret.
    CleanUp,
}

/// The location of the pull secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullSecretSource {
    /// In the resource itself: a change increments the generation.
    Inline,
    /// In a Secret of this revision (uid and resourceVersion).
    Revision(String),
    /// Not available, for this reason.
    Missing(String),
}

/// The Secret that the resource's runs read the pull secret from, as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputState {
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion: it is removed only in this version, since another one may feed a newer run.
    pub resource_version: String,
    /// The uid of the Job that owns it and is deleted with it, if any.
    pub owner: Option<String>,
}

/// The state of the Secret that runs apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputState {
    /// It holds the desired pull secret.
    InSync,
    /// It does not exist.
    Missing(String),
    /// It holds another pull secret.
    Changed(String),
    /// It belongs to another owner.
    Unmanaged(String),
    /// It was not observed, for this reason.
    NotChecked(&'static str),
}

/// A difference between the secret store and the last report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDrift {
    /// The difference in a sentence.
    pub message: String,
    /// The time just before the store was read. A run that ended later has repaired the difference, or has said why not.
    pub read: Timestamp,
}

// === impl Facts ===

impl Facts<'_> {
    /// Returns the newest run of this purpose for the current generation and revision.
    pub fn run(&self, purpose: Purpose) -> Option<&Run<'_>> {
        let revision = match &self.source {
            PullSecretSource::Revision(revision) if purpose == Purpose::Apply => Some(revision.as_str()),
            _ => None,
        };
        let matches = |run: &&Run<'_>| {
            run.purpose == purpose
                && run.generation == self.resource.generation
                && (revision.is_none() || run.source.as_deref() == revision)
        };
        self.runs.iter().filter(matches).max_by_key(|run| run.job.created)
    }

    /// Returns the newest run of the current generation that deletes this copy.
    pub fn clean_up_run(&self, copy: &StoredCopy) -> Option<&Run<'_>> {
        let is_of_copy = |run: &&Run<'_>| {
            run.purpose == Purpose::CleanUp
                && run.generation == self.resource.generation
                && run.copy.as_ref() == Some(copy)
        };
        self.runs.iter().filter(is_of_copy).max_by_key(|run| run.job.created)
    }

    /// Returns the difference in the secret store that no run has observed yet. Kubernetes cuts the end of a Job to whole seconds: a
    /// store that was read within that second may have been read before the end.
    pub fn stored_drift(&self) -> Option<&StoredDrift> {
        let ended = self.run(Purpose::Apply).and_then(|run| run.job.ended);
        let is_since =
            |drift: &&StoredDrift| ended.is_none_or(|ended| drift.read.duration_since(ended) >= JOB_TIME_PRECISION);
        self.stored.as_ref().filter(is_since)
    }

    /// Returns the copies that the last report lists.
    pub fn recorded_copies(&self) -> BTreeSet<StoredCopy> {
        let listed = self.last_report.and_then(|report| report.data.get(copy::MEMBER)).and_then(Value::as_array);
        let copies = listed.into_iter().flatten();
        copies.filter_map(|listed| serde_json::from_value(listed.clone()).ok()).collect()
    }

    /// Returns the entries of that list that this version cannot read: a newer one has written them, for a store that this one
    /// does not know.
    pub fn unread_copies(&self) -> Vec<Value> {
        let listed = self.last_report.and_then(|report| report.data.get(copy::MEMBER)).and_then(Value::as_array);
        let is_unread = |listed: &&Value| serde_json::from_value::<StoredCopy>((*listed).clone()).is_err();
        listed.into_iter().flatten().filter(is_unread).cloned().collect()
    }

    /// Returns the input if it may be removed.
    pub fn removable_input(&self) -> Option<InputState> {
        self.input.clone().filter(|input| input.is_removable(&self.runs))
    }

    /// Returns the generation of the last report.
    pub fn reported_generation(&self) -> Option<Generation> {
        self.last_report.map(|report| report.observed_generation)
    }

    /// Returns the data of the last report; it is reported again until a run replaces it.
    pub fn reported_data(&self) -> Map<String, Value> {
        self.last_report.map(|report| report.data.clone()).unwrap_or_default()
    }

    /// Returns the last reported `Available` condition if it is true for the current generation and revision.
    pub fn last_success(&self) -> Option<&ReportedCondition> {
        let report = self.last_report.filter(|report| report.observed_generation == self.resource.generation)?;
        let revision = report.data.get(SOURCE).and_then(Value::as_str);
        let is_same = match &self.source {
            PullSecretSource::Revision(now) => revision == Some(now),
            PullSecretSource::Inline => revision.is_none(),
            // The reported one is stored, and nothing replaces it yet.
            PullSecretSource::Missing(_) => true,
        };
        report.condition(names::condition::AVAILABLE).filter(|available| is_same && available.status == Status::True)
    }

    /// Names the values that a run of this purpose requires and the resource does not have.
    pub fn missing(&self, config: &Checked, purpose: Purpose) -> Option<String> {
        let placeholders = self.placeholders(config);
        let store = config.stores.of(self.view).ok().map(JobStore::kind);
        let mirror = config.mirror.as_ref().filter(|_| purpose == Purpose::Apply).map(JobStore::kind);
        let missing = config.bindings_at(store, mirror).filter(|binding| match binding.required {
            Required::No => false,
            Required::ToApply => purpose == Purpose::Apply,
            Required::Always => true,
        });
        let missing: Vec<_> = missing.filter(|binding| binding.resolve(self.view, placeholders).is_none()).collect();
        let lines = missing.iter().map(|binding| format!("waiting for {}: it has no value yet", binding.describe()));
        Some(lines.collect::<Vec<_>>().join("; ")).filter(|lines| !lines.is_empty())
    }

    /// Returns the values of placeholders.
    pub fn placeholders<'b>(&'b self, config: &'b Checked) -> Placeholders<'b> {
        Placeholders {
            id: &self.resource.id,
            name: &self.resource.name,
            generation: self.resource.generation,
            adapter: &config.adapter,
        }
    }
}

// === impl InputState ===

impl InputState {
    /// Returns true unless the input belongs to a run that was not observed to have ended, and may still need it.
    fn is_removable(&self, runs: &[Run<'_>]) -> bool {
        let Some(owner) = &self.owner else { return true };
        runs.iter().any(|run| run.job.uid == *owner && run.job.end.is_some())
    }
}

// === impl Run ===

impl Run<'_> {
    /// Returns true if none of its Pods runs any more.
    pub fn has_stopped(&self) -> bool {
        self.job.end.is_some() && !self.job.is_terminating
    }

    /// Returns true if it has ended without an effect, as the stored secret is of a newer generation.
    pub fn is_superseded(&self) -> bool {
        let reason = self.outcome.as_ref().and_then(|outcome| outcome.reason.as_deref());
        reason.and_then(job::Reason::parse) == Some(job::Reason::Superseded)
    }

    /// Returns the data of its termination message, for the report.
    pub fn data(&self) -> Option<Map<String, Value>> {
        self.outcome.as_ref().map(Outcome::data).filter(|data| !data.is_empty())
    }
}
