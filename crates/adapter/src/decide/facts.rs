//! What a decision looks at.

use hyperfleet_client::{Generation, Report, ReportedCondition, Resource, Status, View};
use jiff::Timestamp;
use kubernetes::ObservedJob;
use serde_json::{Map, Value};

use super::SOURCE;
use crate::binding::{Named, Required};
use crate::config::Plan as Config;
use crate::outcome::Outcome;

/// What a decision looks at.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The resource, its pull secret but a mark.
    pub resource: &'a Resource,
    /// The same, as expressions see it.
    pub view: &'a View,
    /// This adapter's last report, as the API has it.
    pub told: Option<&'a Report>,
    /// The adapter's runs for this resource, whatever their generation.
    pub runs: Vec<Run<'a>>,
    /// What is known of the pull secret.
    pub source: Source,
    /// What is known of what a run leaves behind.
    pub output: OutputState,
    /// The input of the resource's runs; `None` if there is none.
    pub input: Option<InputState>,
    /// Now.
    pub now: Timestamp,
}

/// A run: its Job, and what it has said.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// The Job.
    pub job: &'a ObservedJob,
    /// For which generation.
    pub generation: Generation,
    /// What for.
    pub purpose: Purpose,
    /// Which attempt at this generation it is, from 1.
    pub attempt: u32,
    /// Which edition of a referenced pull secret it was given.
    pub source: Option<String>,
    /// What it has said, where it was asked.
    pub outcome: Option<Outcome>,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To make or to repair.
    Apply,
    /// To remove.
    Delete,
}

/// What is known of the pull secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// It is in the resource: another one is another generation.
    Inline,
    /// It is in a Secret, and this is its edition.
    Edition(String),
    /// It is not there yet, for this reason.
    Missing(String),
}

/// The Secret that the resource's runs read the pull secret from, as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputState {
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion: it is removed only in this version, since another one may feed a newer run.
    pub resource_version: String,
    /// True if a Job owns it, so that it is deleted with that Job.
    pub has_owner: bool,
}

/// What is known of what a run leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputState {
    /// It holds what it should.
    Same,
    /// It is not there.
    Gone(String),
    /// It holds something else.
    Changed(String),
    /// It is another's.
    Foreign(String),
    /// It was not looked at, for this reason.
    NotLooked(&'static str),
}

// === impl Facts ===

impl Facts<'_> {
    /// The run of that purpose for this generation and this edition; the newest where there are several.
    pub fn run(&self, purpose: Purpose) -> Option<&Run<'_>> {
        let edition = match &self.source {
            Source::Edition(edition) if purpose == Purpose::Apply => Some(edition.as_str()),
            _ => None,
        };
        let is_it = |run: &&Run<'_>| {
            run.purpose == purpose
                && run.generation == self.resource.generation
                && (edition.is_none() || run.source.as_deref() == edition)
        };
        self.runs.iter().filter(is_it).max_by_key(|run| run.job.created)
    }

    /// The generation that was last reported about.
    pub fn told_generation(&self) -> Option<Generation> {
        self.told.map(|told| told.observed_generation)
    }

    /// The data that was last reported: what is stored stays known.
    pub fn told_data(&self) -> Map<String, Value> {
        self.told.map(|told| told.data.clone()).unwrap_or_default()
    }

    /// What was last reported, if it was that this generation and edition are available.
    pub fn last_success(&self) -> Option<&ReportedCondition> {
        let told = self.told.filter(|told| told.observed_generation == self.resource.generation)?;
        let edition = told.data.get(SOURCE).and_then(Value::as_str);
        let is_same = match &self.source {
            Source::Edition(now) => edition == Some(now),
            Source::Inline => edition.is_none(),
            // Whatever it was: it is stored, and what replaces it has not come yet.
            Source::Missing(_) => true,
        };
        told.condition("Available").filter(|available| is_same && available.status == Status::True)
    }

    /// What a run of that purpose cannot do without and the resource does not have.
    pub fn missing(&self, config: &Config, purpose: Purpose) -> Option<String> {
        let named = self.named(config);
        let lacks = config.bindings.iter().filter(|binding| match binding.required {
            Required::No => false,
            Required::ToApply => purpose == Purpose::Apply,
            Required::Always => true,
        });
        let lacks: Vec<_> = lacks.filter(|binding| binding.resolve(self.view, named).is_none()).collect();
        let lines = lacks.iter().map(|binding| format!("waiting for {}: it has no value yet", binding.shown()));
        Some(lines.collect::<Vec<_>>().join("; ")).filter(|lines| !lines.is_empty())
    }

    /// What placeholders stand for.
    pub fn named<'b>(&'b self, config: &'b Config) -> Named<'b> {
        Named {
            id: &self.resource.id,
            name: &self.resource.name,
            generation: self.resource.generation,
            adapter: &config.adapter,
        }
    }
}

// === impl Run ===

impl Run<'_> {
    /// What it has found, for the report.
    pub fn data(&self) -> Option<Map<String, Value>> {
        self.outcome.as_ref().map(Outcome::data).filter(|data| !data.is_empty())
    }
}
