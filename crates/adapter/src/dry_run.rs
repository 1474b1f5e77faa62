//! What would be decided about a resource, without touching anything.

use hyperfleet_client::{Resource, View};
use jiff::Timestamp;
use message_broker::Event;
use serde_json::{Value, json};

use crate::config::Plan as Config;
use crate::decide::{self, Action, Facts, OutputState, Plan, Source};
use crate::manifest::{self, Occasion};
use crate::run::occasion;

/// What would be decided, and upon what.
#[derive(Debug)]
pub struct DryRun {
    /// The resource's id.
    pub id: String,
    /// The event's id, if there was an event.
    pub event: Option<String>,
    /// What would be done and told.
    pub plan: Plan,
    /// What is not met, each with all parts of its expression.
    pub unmet: Vec<decide::Unmet>,
    /// The Job that would be created.
    pub job: Option<Value>,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// The event is none, or about something else.
    #[error("the event is not for this adapter: {0}")]
    Event(String),
    /// Event and resource are two.
    #[error("the event is about {event}, the cluster given is {resource}")]
    Apart {
        /// Whom the event is about.
        event: String,
        /// Who was given.
        resource: String,
    },
    /// The configuration makes no Job.
    #[error("{0}")]
    Job(String),
}

/// Decides about a resource as it is in the file, as if nothing had ever run for it and its last report were in it.
pub fn dry_run(
    config: &Config,
    event: Option<&Event>,
    resource: &Resource,
    now: Timestamp,
) -> Result<DryRun, DryRunError> {
    let occasion = match event.map(|event| occasion::of(event, &config.resource_type)) {
        None => Occasion::default(),
        Some(Ok(Some((id, occasion)))) if id == resource.id => occasion,
        Some(Ok(Some((event, _)))) => return Err(DryRunError::Apart { event, resource: resource.id.clone() }),
        Some(Ok(None)) => return Err(DryRunError::Event("it is about another kind".to_owned())),
        Some(Err(words)) => return Err(DryRunError::Event(words.to_owned())),
    };
    let view = View::of(resource);
    let told = view.adapter(&config.adapter).and_then(|report| {
        let mut item = report.clone();
        item.as_object_mut()?.insert("adapter".to_owned(), json!(config.adapter));
        serde_json::from_value(item).ok()
    });
    let facts = Facts {
        resource,
        view: &view,
        told: told.as_ref(),
        runs: Vec::new(),
        source: Source::Inline,
        output: OutputState::NotLooked("a dry run looks at nothing"),
        input: None,
        now,
    };
    let plan = decide::decide(config, &facts);
    let job = plan.begins().map(|begin| manifest::job(config, &facts, begin, &occasion)).transpose();
    let job = job.map_err(DryRunError::Job)?.and_then(|job| serde_json::to_value(job).ok());
    Ok(DryRun { id: resource.id.clone(), event: occasion.event, unmet: decide::unmet(config, &view), plan, job })
}

// === impl DryRun ===

impl DryRun {
    /// For programs.
    pub fn json(&self) -> Value {
        let findings = self.plan.findings.iter().map(|finding| {
            json!({
                "type": finding.kind, "status": finding.status, "reason": finding.reason, "message": finding.message,
            })
        });
        let unmet = self.unmet.iter().map(|unmet| json!({"line": unmet.line, "detail": unmet.detail}));
        json!({
            "id": self.id,
            "event": self.event,
            "reason": self.plan.reason.as_str(),
            "because": self.plan.because,
            "actions": self.actions(),
            "conditions": findings.collect::<Vec<_>>(),
            "unmet": unmet.collect::<Vec<_>>(),
            "job": self.job,
        })
    }

    /// What would be done, a line each.
    pub fn actions(&self) -> Vec<String> {
        let line = |action: &Action| match action {
            Action::Begin(begin) => {
                let name = self.job.as_ref().and_then(|job| job.pointer("/metadata/name")?.as_str());
                format!("create Job {} and its input, because {}", name.unwrap_or("?"), begin.because)
            }
            Action::DeleteJob(job) => format!("delete Job {}", job.name),
            Action::OwnInput(job) => format!("let the input go with Job {}", job.name),
            Action::RemoveInput(_) => "delete the input".to_owned(),
        };
        self.plan.actions.iter().map(line).collect()
    }
}
