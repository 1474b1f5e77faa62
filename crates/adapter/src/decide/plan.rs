//! What is to be done about a resource, and told about it.

use std::time::Duration;

use hyperfleet_client::Status;
use kubernetes::ObservedJob;
use serde_json::{Map, Value};

use super::facts::{InputState, Purpose};
use crate::reason::Reason;

/// What is to be done about a resource, and told about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// To be done in this order.
    pub actions: Vec<Action>,
    /// To be told afterwards.
    pub findings: Vec<Finding>,
    /// The report's data.
    pub data: Map<String, Value>,
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub because: String,
    /// When to look again if nothing happens.
    pub next: Option<Duration>,
    /// The Job that it is about.
    pub job: Option<ObservedJob>,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Begin a run: input and Job.
    Begin(Box<Begin>),
    /// Delete a Job with its Pods.
    DeleteJob(ObservedJob),
    /// Let the input go with this Job.
    OwnInput(ObservedJob),
    /// Delete the input in the version that was observed.
    RemoveInput(InputState),
}

/// A run that is to begin.
#[derive(Clone, Debug, PartialEq)]
pub struct Begin {
    /// What for.
    pub purpose: Purpose,
    /// The Job of the same name that must go first.
    pub replaces: Option<ObservedJob>,
    /// Which attempt at this generation it is, from 1.
    pub attempt: u32,
    /// Why.
    pub because: String,
}

/// One condition of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `Applied`, `Available`, `Health` or `Finalized`.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Status,
    /// Why, in a word: ours, or the Job's.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

// === impl Plan ===

impl Plan {
    /// A plan without actions and findings.
    pub(super) fn new(reason: Reason, because: String, data: Map<String, Value>) -> Self {
        Self { actions: Vec::new(), findings: Vec::new(), data, reason, because, next: None, job: None }
    }

    /// The plan where nothing could be decided, as Kubernetes has refused to be looked at.
    pub fn of_failure(message: &str, data: Map<String, Value>, is_deleting: bool) -> Self {
        let mut plan = Self::new(Reason::KubernetesApiFailure, message.to_owned(), data);
        if is_deleting {
            plan.find("Finalized", Status::False, Reason::AdapterUnhealthy, message);
        }
        plan.refused(Reason::KubernetesApiFailure, message)
    }

    /// Adds a finding.
    pub(crate) fn find(&mut self, kind: &'static str, status: Status, reason: Reason, message: &str) {
        self.findings.push(Finding::new(kind, status, reason.to_string(), message.to_owned()));
    }

    /// The finding of that kind.
    pub fn finding(&self, kind: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.kind == kind)
    }

    /// The run that is to begin, if one is.
    pub fn begins(&self) -> Option<&Begin> {
        self.actions.iter().find_map(|action| match action {
            Action::Begin(begin) => Some(&**begin),
            _ => None,
        })
    }

    /// The plan where a run must wait for its project's quota.
    #[must_use]
    pub fn delayed(mut self, project: &str, wait: Duration) -> Self {
        let why = Reason::WaitingForQuota;
        let message = format!("a Job waits for its turn: the quota of project {project} is used up for the moment");
        self.actions.retain(|action| !matches!(action, Action::Begin(_)));
        self.replace("Applied", Status::False, why, &message);
        self.replace("Available", Status::False, why, &message);
        Self { reason: why, because: message, next: Some(wait), ..self }
    }

    /// The plan after an action was refused for good.
    #[must_use]
    pub fn refused(mut self, reason: Reason, message: &str) -> Self {
        self.replace("Applied", Status::False, reason, message);
        self.replace("Available", Status::False, reason, message);
        let health = if reason == Reason::NameConflict { Status::True } else { Status::False };
        let (health_reason, words) = match health {
            Status::True => (Reason::NoErrors, "the adapter works"),
            _ => (Reason::KubernetesApiFailure, message),
        };
        self.replace("Health", health, health_reason, words);
        if self.finding("Finalized").is_some() {
            self.replace("Finalized", Status::False, Reason::AdapterUnhealthy, message);
        }
        Self { actions: Vec::new(), reason, because: message.to_owned(), ..self }
    }

    fn replace(&mut self, kind: &'static str, status: Status, reason: Reason, message: &str) {
        self.findings.retain(|finding| finding.kind != kind);
        self.find(kind, status, reason, message);
    }
}

// === impl Finding ===

impl Finding {
    pub(super) fn new(kind: &'static str, status: Status, reason: String, message: String) -> Self {
        Self { kind, status, reason, message }
    }
}
