//! What is to be done about one resource, and what is to be told about it.
//!
//! Whatever woke the adapter, the whole state is looked at: the resource, its runs, the last report. A run is made once for
//! each generation and each edition of the pull secret; what has been stored stays stored when a precondition fails later.

mod criteria;
mod deletion;
mod facts;
mod plan;
#[cfg(test)]
mod tests;

use std::time::Duration;

use daemon::backoff::Backoff;
use fleet_model::job;
use hyperfleet_client::{Condition, Status};
use kubernetes::job::JobEnd;
use serde_json::{Map, Value, json};

use crate::config::Plan as Config;
use crate::outcome::Outcome;
use crate::reason::Reason;

pub use criteria::{Unmet, unmet};
pub use facts::{Facts, InputState, OutputState, Purpose, Run, Source};
pub use plan::{Action, Begin, Finding, Plan};

/// No run that failed waits longer for the next one.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// So many runs are made for words that nobody has heard: a Job's Pods, with all that they said, may go before it.
const MOST_UNHEARD: u32 = 3;
/// The member of a report's data that says which edition of a referenced pull secret it is about.
pub const SOURCE: &str = "source";

/// What is to be done about a resource, and told about it.
pub fn decide(config: &Config, facts: &Facts<'_>) -> Plan {
    if facts.resource.is_deleting() {
        return deletion::decide(config, facts);
    }
    let purpose = Purpose::Apply;
    let run = facts.run(purpose);
    let mut plan = match run.map(|run| (run, run.job.end.as_ref())) {
        Some((run, None)) => running(config, facts, run),
        Some((run, Some(JobEnd::Failed { reason, message }))) => failed(config, facts, run, reason, message),
        Some((run, Some(JobEnd::Complete | JobEnd::Gone))) => succeeded(config, facts, run),
        None => without_run(config, facts),
    };
    if run.is_some() || facts.last_success().is_some() {
        stop_older(&mut plan, facts);
    }
    plan
}

/// Ends runs for older generations once this one has its own: the input is not theirs any more, and is removed before a Pod
/// that they might still begin could read it.
fn stop_older(plan: &mut Plan, facts: &Facts<'_>) {
    let is_older = |run: &&Run<'_>| run.purpose == Purpose::Apply && run.generation < facts.resource.generation;
    let older = facts.runs.iter().filter(is_older).filter(|run| run.job.end.is_none() && !run.job.is_terminating);
    plan.actions.extend(older.map(|run| Action::DeleteJob(run.job.clone())));
}

/// Nothing runs for this generation, and what did is forgotten.
fn without_run(config: &Config, facts: &Facts<'_>) -> Plan {
    if let Some(last) = facts.last_success() {
        return steady(config, facts, again(last), facts.told_data(), None);
    }
    let unmet = unmet(config, facts.view);
    if !unmet.is_empty() {
        return waiting(facts, &unmet);
    }
    if let Some(why) = facts.missing(config, Purpose::Apply) {
        return waiting(facts, &[Unmet { line: why, detail: None }]);
    }
    if let Source::Missing(why) = &facts.source {
        return waiting(facts, &[Unmet { line: why.clone(), detail: None }]);
    }
    let because = match facts.told_generation() {
        None => "it has no run yet".to_owned(),
        Some(told) if told < facts.resource.generation => {
            format!("generation {} is newer than {told}, the last that was reported", facts.resource.generation)
        }
        Some(_) => "this generation has no run that succeeded".to_owned(),
    };
    begin(facts, Purpose::Apply, None, 1, because)
}

/// What was told before, told again.
fn again(last: &Condition) -> Finding {
    let (reason, message) = (last.reason.clone(), last.message.clone());
    Finding::new("Available", last.status, reason.unwrap_or_default(), message.unwrap_or_default())
}

fn waiting(facts: &Facts<'_>, unmet: &[Unmet]) -> Plan {
    let message = unmet.iter().map(|unmet| unmet.line.as_str()).collect::<Vec<_>>().join("; ");
    let why = Reason::PreconditionsNotMet;
    let mut plan = Plan::new(why, message.clone(), facts.told_data());
    plan.find("Applied", Status::False, why, &message);
    plan.find("Available", Status::False, why, &message);
    plan.find("Health", Status::True, Reason::NoErrors, "the adapter works");
    plan
}

/// A run is begun.
fn begin(facts: &Facts<'_>, purpose: Purpose, replaced: Option<&Run<'_>>, attempt: u32, because: String) -> Plan {
    let mut plan = Plan::new(Reason::ResourcesCreated, because.clone(), facts.told_data());
    plan.find("Applied", Status::True, Reason::ResourcesCreated, "the Job and its input were created");
    plan.find("Available", Status::False, Reason::WorkloadInProgress, &format!("a Job was created, as {because}"));
    plan.find("Health", Status::True, Reason::NoErrors, "the adapter works");
    let replaces = replaced.map(|run| run.job.clone());
    plan.actions.push(Action::Begin(Box::new(Begin { purpose, replaces, attempt, because })));
    plan
}

fn running(config: &Config, facts: &Facts<'_>, run: &Run<'_>) -> Plan {
    let message = match (run.job.is_terminating, run.job.failed) {
        (true, _) => format!("Job {} is being removed", run.job.name),
        (false, 0) => format!("Job {} runs", run.job.name),
        (false, failed) => {
            let limit = config.config.spec.job_template.backoff_limit;
            let said = run.outcome.as_ref().map(|outcome| format!(": {}", outcome.message)).unwrap_or_default();
            format!("Job {} runs; {failed} of its Pods failed (of {limit} that may){said}", run.job.name)
        }
    };
    let mut plan = Plan::new(Reason::WorkloadInProgress, message.clone(), facts.told_data());
    plan.find("Applied", Status::True, Reason::ResourcesExist, &format!("Job {} is there", run.job.name));
    plan.find("Available", Status::False, Reason::WorkloadInProgress, &message);
    plan.find("Health", Status::True, Reason::NoErrors, "the adapter works");
    plan.job = Some(run.job.clone());
    if facts.input.as_ref().is_some_and(|input| !input.has_owner) && run.purpose == Purpose::Apply {
        plan.actions.push(Action::OwnInput(run.job.clone()));
    }
    plan
}

fn succeeded(config: &Config, facts: &Facts<'_>, run: &Run<'_>) -> Plan {
    let outcome = run.outcome.as_ref();
    if outcome.is_none() {
        if let Some(last) = facts.last_success() {
            return steady(config, facts, again(last), facts.told_data(), Some(run));
        }
        if run.attempt < MOST_UNHEARD {
            let because = format!("Job {} has completed, but what it said has gone with its Pods", run.job.name);
            return begin(facts, Purpose::Apply, Some(run), run.attempt.saturating_add(1), because);
        }
    }
    let reason = outcome.and_then(|outcome| outcome.reason.clone());
    let message = outcome.map_or_else(|| format!("Job {} has completed", run.job.name), |said| said.message.clone());
    let data = run.data().unwrap_or_else(|| facts.told_data());
    let is_superseded = reason.as_deref() == Some(&*job::Reason::Superseded.to_string());
    let status = if is_superseded { Status::False } else { Status::True };
    let reason = reason.unwrap_or_else(|| Reason::JobSucceeded.to_string());
    let available = Finding::new("Available", status, reason, message);
    let mut plan = steady(config, facts, available, data, Some(run));
    plan.job = Some(run.job.clone());
    plan
}

/// What this generation needs was done; is it still so?
fn steady(
    config: &Config,
    facts: &Facts<'_>,
    available: Finding,
    mut data: Map<String, Value>,
    run: Option<&Run<'_>>,
) -> Plan {
    if let Source::Edition(edition) = &facts.source {
        data.insert(SOURCE.to_owned(), json!(edition));
    }
    let drift = match &facts.output {
        OutputState::Same | OutputState::NotLooked(_) => None,
        OutputState::Gone(what) => Some((Reason::Drifted, format!("{what} is gone"))),
        OutputState::Changed(what) => {
            Some((Reason::Drifted, format!("{what} does not hold this pull secret any more")))
        }
        OutputState::Foreign(what) => Some((Reason::NameConflict, what.clone())),
    };
    let is_done = available.status == Status::True;
    match drift.filter(|_| is_done) {
        None => {
            let mut plan = Plan::new(Reason::ResourcesExist, available.message.clone(), data);
            plan.find("Applied", Status::True, Reason::ResourcesExist, "this generation's Job has run");
            plan.findings.push(available);
            plan.find("Health", Status::True, Reason::NoErrors, "the adapter works");
            plan.actions.extend(facts.input.clone().map(Action::RemoveInput));
            plan
        }
        Some((Reason::Drifted, why)) => {
            let attempt = run.map_or(1, |run| run.attempt.saturating_add(1));
            let wait = run.and_then(|run| wait(config.retry.transient_after, attempt, run, facts));
            // What was brought right a while ago is repaired at once: only a quarrel is slowed down.
            if let Some(wait) = wait.filter(|_| attempt > 2) {
                let mut plan = drifted(&why, data);
                plan.next = Some(wait);
                return plan;
            }
            let mut plan = begin(facts, Purpose::Apply, run, attempt, why.clone());
            plan.findings.retain(|finding| finding.kind != "Available");
            plan.find("Available", Status::False, Reason::Drifted, &format!("{why}; a Job repairs it"));
            plan.data = data;
            plan
        }
        Some((reason, why)) => {
            let mut plan = Plan::new(reason, why.clone(), data);
            plan.find("Applied", Status::False, reason, &why);
            plan.find("Available", Status::False, reason, &why);
            plan.find("Health", Status::True, Reason::NoErrors, "the adapter works");
            plan
        }
    }
}

fn drifted(why: &str, data: Map<String, Value>) -> Plan {
    let mut plan = Plan::new(Reason::Drifted, why.to_owned(), data);
    let message = format!("{why}, again and again: somebody else changes it; another Job repairs it later");
    plan.find("Applied", Status::True, Reason::ResourcesExist, "this generation's Job has run");
    plan.find("Available", Status::False, Reason::Drifted, &message);
    plan.find("Health", Status::True, Reason::NoErrors, "the adapter works");
    plan
}

fn failed(config: &Config, facts: &Facts<'_>, run: &Run<'_>, reason: &str, message: &str) -> Plan {
    let outcome = run.outcome.as_ref().filter(|outcome| !outcome.is_success);
    let (word, words) = told_failure(run, outcome, reason, message);
    let severity = severity(outcome);
    let after = match severity {
        Severity::Final => None,
        Severity::Permanent => Some(config.retry.permanent_after),
        Severity::Transient => Some(config.retry.transient_after),
    };
    let attempt = run.attempt.saturating_add(1);
    let wait = after.map(|after| wait(after, attempt, run, facts).unwrap_or_default());
    if wait == Some(Duration::ZERO) && !run.job.is_terminating {
        let because = format!("the last Job has failed ({word}) and its wait is over");
        return begin(facts, Purpose::Apply, Some(run), attempt, because);
    }
    let next = match wait {
        Some(wait) => format!("; another Job follows in {}", shown(wait)),
        None => "; another Job follows when the pull secret is changed".to_owned(),
    };
    let message = format!("{words}{next}");
    let mut plan = Plan::new(Reason::JobFailed, message.clone(), facts.told_data());
    plan.find("Applied", Status::True, Reason::ResourcesExist, &format!("Job {} is there", run.job.name));
    plan.findings.push(Finding::new("Available", Status::False, word, message));
    plan.find("Health", Status::True, Reason::NoErrors, "the adapter works; its Job has failed");
    plan.next = wait;
    plan.job = Some(run.job.clone());
    plan.actions.extend(facts.input.clone().map(Action::RemoveInput));
    plan
}

/// The failure in a word and in a sentence: the Job's own, or what Kubernetes says of it.
fn told_failure(run: &Run<'_>, outcome: Option<&Outcome>, reason: &str, message: &str) -> (String, String) {
    match outcome {
        Some(Outcome { reason: Some(word), message, .. }) => (word.clone(), message.clone()),
        Some(Outcome { message, .. }) => (Reason::JobFailed.to_string(), format!("{message} ({reason})")),
        None => (Reason::JobFailed.to_string(), format!("Job {} has failed: {reason}: {message}", run.job.name)),
    }
}

enum Severity {
    /// It passes by itself.
    Transient,
    /// Somebody must remove the cause; when, nobody tells us.
    Permanent,
    /// The cause is the pull secret itself, so that a change of it is told.
    Final,
}

fn severity(outcome: Option<&Outcome>) -> Severity {
    let is = |reason: job::Reason, word: &str| word == reason.to_string();
    match outcome {
        Some(Outcome { reason: Some(word), .. }) if is(job::Reason::InvalidPullSecret, word) => Severity::Final,
        Some(Outcome { exit_code: 2..=6, .. }) => Severity::Permanent,
        _ => Severity::Transient,
    }
}

/// How long the next attempt has to wait yet; `None` if no more.
fn wait(first: Duration, attempt: u32, run: &Run<'_>, facts: &Facts<'_>) -> Option<Duration> {
    let backoff = Backoff::doubling(first, LONGEST_WAIT.max(first));
    let wait = backoff.nominal(attempt.saturating_sub(1).max(1));
    let ended = run.job.ended.or(run.job.created)?;
    let passed = Duration::try_from(facts.now.duration_since(ended)).unwrap_or_default();
    Some(wait.saturating_sub(passed)).filter(|wait| !wait.is_zero())
}

/// A wait in whole seconds, for people.
fn shown(wait: Duration) -> String {
    let seconds = wait.as_secs().max(1);
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}
