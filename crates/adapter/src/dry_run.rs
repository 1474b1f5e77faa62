//! Decides about a resource without changing anything.

use hyperfleet_client::{Resource, View};
use jiff::Timestamp;
use message_broker::Event;
use serde_json::{Value, json};

use crate::config::Checked;
use crate::decide::{self, Action, Facts, OutputState, Plan, PullSecretSource};
use crate::manifest::{self, Trigger};
use crate::run::trigger;

/// The result of a dry run.
#[derive(Debug)]
pub struct DryRun {
    /// The resource's id.
    pub id: String,
    /// The event's id, if there was an event.
    pub event: Option<String>,
    /// The decision.
    pub plan: Plan,
    /// The preconditions and dependencies that are not met.
    pub unmet: Vec<decide::Unmet>,
    /// The Job that would be created.
    pub job: Option<Value>,
}

/// The failure of a dry run.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// The event is malformed, or about another kind of resource.
    #[error("the event is not for this adapter: {0}")]
    Event(String),
    /// The event and the resource do not belong together.
    #[error("the event is about {event}, the cluster given is {resource}")]
    Mismatch {
        /// The id that the event names.
        event: String,
        /// The id of the given resource.
        resource: String,
    },
    /// The configuration does not describe a valid Job.
    #[error("{0}")]
    Job(String),
}

/// Decides about a resource as it is in the file, without any Job; the last report is taken from the resource.
pub fn dry_run(
    config: &Checked,
    event: Option<&Event>,
    resource: &Resource,
    now: Timestamp,
) -> Result<DryRun, DryRunError> {
    let trigger = match event.map(|event| trigger::of(event, &config.resource_type)) {
        None => Trigger::default(),
        Some(Ok(Some((id, trigger)))) if id == resource.id => trigger,
        Some(Ok(Some((event, _)))) => return Err(DryRunError::Mismatch { event, resource: resource.id.clone() }),
        Some(Ok(None)) => return Err(DryRunError::Event("it is about another kind".to_owned())),
        Some(Err(problem)) => return Err(DryRunError::Event(problem.to_owned())),
    };
    let view = View::of(resource);
    let last_report = view.report(&config.adapter).and_then(|report| report.to_report(&config.adapter));
    let facts = Facts {
        resource,
        view: &view,
        last_report: last_report.as_ref(),
        runs: Vec::new(),
        source: PullSecretSource::Inline,
        output: OutputState::NotChecked("a dry run does not observe Kubernetes"),
        stored: None,
        input: None,
        now,
    };
    let plan = decide::decide(config, &facts);
    let job = plan.starts_run().map(|run| manifest::job(config, &facts, run, &trigger)).transpose();
    let job = job.map_err(DryRunError::Job)?.and_then(|job| serde_json::to_value(job).ok());
    Ok(DryRun { id: resource.id.clone(), event: trigger.event, unmet: decide::unmet(config, &view), plan, job })
}

// === impl DryRun ===

impl DryRun {
    /// Returns the result as JSON.
    pub fn json(&self) -> Value {
        let conditions = self.plan.conditions.iter().map(|condition| {
            json!({
                "type": condition.kind, "status": condition.status, "reason": condition.reason, "message": condition.message,
            })
        });
        let unmet = self.unmet.iter().map(|unmet| json!({"line": unmet.line, "detail": unmet.detail}));
        json!({
            "id": self.id,
            "event": self.event,
            "reason": self.plan.reason.as_str(),
            "because": self.plan.because,
            "actions": self.actions(),
            "conditions": conditions.collect::<Vec<_>>(),
            "unmet": unmet.collect::<Vec<_>>(),
            "job": self.job,
        })
    }

    /// Describes each action in one line.
    pub fn actions(&self) -> Vec<String> {
        let line = |action: &Action| match action {
            Action::RecordCopies => "report where the run stores the pull secret, before it does".to_owned(),
            Action::StartRun(run) => {
                let name = self.job.as_ref().and_then(|job| job.pointer("/metadata/name")?.as_str());
                format!("create Job {} and its input, because {}", name.unwrap_or("?"), run.because)
            }
            Action::DeleteJob(job) => format!("delete Job {}", job.name),
            Action::SetInputOwner(job) => format!("make Job {} the owner of the input", job.name),
            Action::RemoveInput(_) => "delete the input".to_owned(),
            Action::RevokeAccess => "withdraw the access to the Kubernetes Secret".to_owned(),
        };
        self.plan.actions.iter().map(line).collect()
    }
}
