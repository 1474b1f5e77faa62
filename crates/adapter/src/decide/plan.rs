//! The result of a decision: actions, and the conditions to report.

use std::time::Duration;

use fleet_model::{StoredCopy, names};
use hyperfleet_client::Status;
use kubernetes::ObservedJob;
use serde_json::{Map, Value};

use super::attempts;
use super::facts::{Facts, InputState, Purpose, Run};
use crate::reason::Reason;

/// The message of the `Health` condition without errors.
pub(super) const ADAPTER_WORKS: &str = "the adapter works";

/// The actions for a resource, and the conditions to report afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The actions, in order.
    pub actions: Vec<Action>,
    /// The conditions of the report.
    pub conditions: Vec<PlannedCondition>,
    /// The report's data.
    pub data: Map<String, Value>,
    /// The reason of the decision.
    pub reason: Reason,
    /// The reason as a sentence.
    pub because: String,
    /// Time until the next pass if no event arrives.
    pub requeue_after: Option<Duration>,
    /// The Job that the report refers to.
    pub job: Option<ObservedJob>,
}

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Report the copies that the run of this plan writes, before it writes them.
    RecordCopies,
    /// Create the input and the Job of a run.
    StartRun(Box<StartRun>),
    /// Delete a Job with its Pods.
    DeleteJob(ObservedJob),
    /// Make this Job the owner of the input, so that both are deleted together.
    SetInputOwner(ObservedJob),
    /// Delete the input in the version that was observed.
    RemoveInput(InputState),
    /// Withdraw the access to the applied Secret, now deleted.
    RevokeAccess,
}

/// A run that is to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct StartRun {
    /// Its purpose.
    pub purpose: Purpose,
    /// The Job of the same name that is deleted first.
    pub replaces: Option<ObservedJob>,
    /// The number of the attempt at this generation, from 1.
    pub attempt: u32,
    /// The reason as a sentence.
    pub because: String,
    /// The copy that a clean-up deletes.
    pub copy: Option<StoredCopy>,
}

/// One condition of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCondition {
    /// Its type: `Applied`, `Available`, `Health` or `Finalized`.
    pub kind: &'static str,
    /// Its status.
    pub status: Status,
    /// Its reason: one of [`Reason`], or the Job's own.
    pub reason: String,
    /// Its message.
    pub message: String,
}

// === impl Plan ===

impl Plan {
    /// Creates a plan without actions and conditions.
    pub(super) fn new(reason: Reason, because: String, data: Map<String, Value>) -> Self {
        Self { actions: Vec::new(), conditions: Vec::new(), data, reason, because, requeue_after: None, job: None }
    }

    /// Creates the plan that starts a run.
    pub(super) fn starting(facts: &Facts<'_>, run: StartRun) -> Self {
        let because = run.because.clone();
        let mut plan = Self::new(Reason::ResourcesCreated, because.clone(), facts.reported_data());
        plan.set_condition(
            names::condition::APPLIED,
            Status::True,
            Reason::ResourcesCreated,
            "the Job and its input were created",
        );
        plan.set_condition(
            names::condition::AVAILABLE,
            Status::False,
            Reason::WorkloadInProgress,
            &format!("a Job was created, as {because}"),
        );
        plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
        plan.actions.push(Action::StartRun(Box::new(run)));
        plan
    }

    /// Creates the plan for a pass that could not observe Kubernetes.
    pub fn of_failure(message: &str, data: Map<String, Value>, is_deleting: bool) -> Self {
        let mut plan = Self::new(Reason::KubernetesApiFailure, message.to_owned(), data);
        if is_deleting {
            plan.set_condition(names::condition::FINALIZED, Status::False, Reason::AdapterUnhealthy, message);
        }
        plan.refused(Reason::KubernetesApiFailure, message)
    }

    /// Adds a condition.
    pub(crate) fn set_condition(&mut self, kind: &'static str, status: Status, reason: Reason, message: &str) {
        self.conditions.push(PlannedCondition::new(kind, status, reason.to_string(), message.to_owned()));
    }

    /// Returns the condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&PlannedCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Returns the run that is to be started, if any.
    pub fn starts_run(&self) -> Option<&StartRun> {
        self.actions.iter().find_map(|action| match action {
            Action::StartRun(run) => Some(&**run),
            _ => None,
        })
    }

    /// Changes the plan so that its run waits for its project's quota.
    #[must_use]
    pub fn delayed(mut self, project: &str, wait: Duration) -> Self {
        let why = Reason::WaitingForQuota;
        let message = format!("a run waits for the quota of {project}, which is exhausted at the moment");
        self.actions.retain(|action| !matches!(action, Action::StartRun(_) | Action::RecordCopies));
        self.replace(names::condition::APPLIED, Status::False, why, &message);
        self.replace(names::condition::AVAILABLE, Status::False, why, &message);
        Self { reason: why, because: message, requeue_after: Some(wait), ..self }
    }

    /// Returns the plan as it is reported before its run starts.
    #[must_use]
    pub fn announced(&self) -> Self {
        let message = format!("a Job is about to be created, as {}", self.because);
        let mut plan = Self::new(Reason::DestinationsRecorded, message.clone(), self.data.clone());
        plan.set_condition(names::condition::APPLIED, Status::False, Reason::DestinationsRecorded, &message);
        plan.set_condition(names::condition::AVAILABLE, Status::False, Reason::DestinationsRecorded, &message);
        plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
        plan
    }

    /// Changes the plan so that it reports an action as refused.
    #[must_use]
    pub fn refused(mut self, reason: Reason, message: &str) -> Self {
        self.replace(names::condition::APPLIED, Status::False, reason, message);
        self.replace(names::condition::AVAILABLE, Status::False, reason, message);
        let health = if reason == Reason::NameConflict { Status::True } else { Status::False };
        let (health_reason, health_message) = match health {
            Status::True => (Reason::NoErrors, ADAPTER_WORKS),
            _ => (Reason::KubernetesApiFailure, message),
        };
        self.replace(names::condition::HEALTH, health, health_reason, health_message);
        if self.condition(names::condition::FINALIZED).is_some() {
            self.replace(names::condition::FINALIZED, Status::False, Reason::AdapterUnhealthy, message);
        }
        Self { actions: Vec::new(), reason, because: message.to_owned(), ..self }
    }

    pub(super) fn replace(&mut self, kind: &'static str, status: Status, reason: Reason, message: &str) {
        self.conditions.retain(|condition| condition.kind != kind);
        self.set_condition(kind, status, reason, message);
    }
}

// === impl StartRun ===

impl StartRun {
    /// Creates the next attempt after a run, whose Job it replaces.
    pub(super) fn after(run: &Run<'_>, because: String) -> Self {
        let attempt = run.attempt.saturating_add(1);
        Self { purpose: run.purpose, replaces: Some(run.job.clone()), attempt, because, copy: run.copy.clone() }
    }

    /// Creates the next attempt at a purpose, which replaces no Job.
    pub(super) fn next(facts: &Facts<'_>, purpose: Purpose, because: String) -> Self {
        Self { purpose, replaces: None, attempt: attempts::next(facts, purpose), because, copy: None }
    }

    /// Creates the first attempt at deleting a copy.
    pub(super) fn clean_up(copy: StoredCopy, because: String) -> Self {
        Self { purpose: Purpose::CleanUp, replaces: None, attempt: 1, because, copy: Some(copy) }
    }
}

// === impl PlannedCondition ===

impl PlannedCondition {
    pub(super) fn new(kind: &'static str, status: Status, reason: String, message: String) -> Self {
        Self { kind, status, reason, message }
    }
}
