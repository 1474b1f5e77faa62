//! A resource that is being deleted: what was made for it is removed, and told when it is.

use std::time::Duration;

use hyperfleet_client::Status;
use kubernetes::job::JobEnd;

use super::facts::{Facts, Purpose, Run};
use super::plan::{Action, Finding, Plan};
use super::{begin, shown, told_failure, wait};
use crate::config::Plan as Config;
use crate::reason::Reason;

pub(super) fn decide(config: &Config, facts: &Facts<'_>) -> Plan {
    // What still makes must have stopped before anything is removed: it would make it again.
    let makers = facts.runs.iter().filter(|run| run.purpose == Purpose::Apply);
    let makers: Vec<_> = makers.filter(|run| run.job.end.is_none() || run.job.is_terminating).collect();
    if !makers.is_empty() {
        return stopping(facts, &makers);
    }
    if config.delete_args.is_none() {
        return confirmed(facts, "this adapter has nothing outside that must be removed");
    }
    if let Some(why) = facts.missing(config, Purpose::Delete) {
        return confirmed(facts, &format!("nothing was made, as a run was never possible ({why})"));
    }
    let run = facts.run(Purpose::Delete);
    match run.map(|run| (run, run.job.end.as_ref())) {
        None => {
            let mut plan = begin(facts, Purpose::Delete, None, 1, "the resource is being deleted".to_owned());
            in_progress(&mut plan, "a Job was created that removes what was made");
            plan
        }
        Some((run, None)) => removing(facts, run),
        Some((run, Some(JobEnd::Failed { reason, message }))) => failed(config, facts, run, reason, message),
        Some((run, Some(JobEnd::Complete | JobEnd::Gone))) if is_outlived(facts, run) => {
            let because = "a Job that makes has ended after the one that removes began".to_owned();
            let mut plan = begin(facts, Purpose::Delete, Some(run), run.attempt.saturating_add(1), because);
            in_progress(&mut plan, "another Job removes what was made meanwhile");
            plan
        }
        Some((run, Some(JobEnd::Complete | JobEnd::Gone))) => {
            let words = run.outcome.as_ref().map(|outcome| outcome.message.clone());
            let mut plan = confirmed(facts, &words.unwrap_or_else(|| format!("Job {} has completed", run.job.name)));
            plan.job = Some(run.job.clone());
            plan
        }
    }
}

/// Whether something may have been made after it was removed: another replica, which had looked before the deletion, has begun
/// a run at the same time.
fn is_outlived(facts: &Facts<'_>, run: &Run<'_>) -> bool {
    let makers = facts.runs.iter().filter(|run| run.purpose == Purpose::Apply);
    makers.map(|maker| maker.job.ended).any(|ended| ended.is_some() && ended > run.job.created)
}

fn stopping(facts: &Facts<'_>, makers: &[&Run<'_>]) -> Plan {
    let names = makers.iter().map(|run| run.job.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut plan = Plan::new(Reason::CleanupInProgress, format!("waiting for {names} to stop"), facts.told_data());
    plan.find("Applied", Status::True, Reason::ResourcesExist, "Jobs are there");
    in_progress(&mut plan, &format!("waiting for Jobs to stop: {names}"));
    let running = makers.iter().filter(|run| !run.job.is_terminating);
    plan.actions.extend(running.map(|run| Action::DeleteJob(run.job.clone())));
    plan
}

fn removing(facts: &Facts<'_>, run: &Run<'_>) -> Plan {
    let message = format!("Job {} removes what was made", run.job.name);
    let mut plan = Plan::new(Reason::CleanupInProgress, message.clone(), facts.told_data());
    plan.find("Applied", Status::True, Reason::ResourcesExist, &format!("Job {} is there", run.job.name));
    in_progress(&mut plan, &message);
    plan.job = Some(run.job.clone());
    plan
}

fn failed(config: &Config, facts: &Facts<'_>, run: &Run<'_>, reason: &str, message: &str) -> Plan {
    let outcome = run.outcome.as_ref().filter(|outcome| !outcome.is_success);
    let (word, words) = told_failure(run, outcome, reason, message);
    let is_permanent = outcome.is_some_and(|outcome| (2..=6).contains(&outcome.exit_code));
    let first = if is_permanent { config.retry.permanent_after } else { config.retry.transient_after };
    let attempt = run.attempt.saturating_add(1);
    let wait = wait(first, attempt, run, facts).unwrap_or_default();
    if wait == Duration::ZERO && !run.job.is_terminating {
        let because = format!("the last Job could not remove what was made ({word}) and its wait is over");
        let mut plan = begin(facts, Purpose::Delete, Some(run), attempt, because);
        in_progress(&mut plan, &format!("{words}; another Job tries it again"));
        return plan;
    }
    let message = format!("{words}; another Job follows in {}", shown(wait));
    let mut plan = Plan::new(Reason::DeletionError, message.clone(), facts.told_data());
    plan.find("Applied", Status::True, Reason::ResourcesExist, &format!("Job {} is there", run.job.name));
    plan.findings.push(Finding::new("Available", Status::False, word, message.clone()));
    plan.find("Health", Status::False, Reason::DeletionError, &message);
    plan.find("Finalized", Status::False, Reason::AdapterUnhealthy, &message);
    plan.next = Some(wait);
    plan.job = Some(run.job.clone());
    plan
}

/// Puts the findings of a deletion that goes on in the place of those of a beginning.
fn in_progress(plan: &mut Plan, message: &str) {
    plan.findings.retain(|finding| finding.kind == "Applied");
    plan.find("Available", Status::False, Reason::CleanupInProgress, message);
    plan.find("Health", Status::True, Reason::NoErrors, "the adapter works");
    plan.find("Finalized", Status::False, Reason::CleanupInProgress, message);
    plan.reason = Reason::CleanupInProgress;
}

fn confirmed(facts: &Facts<'_>, message: &str) -> Plan {
    let mut plan = Plan::new(Reason::CleanupConfirmed, message.to_owned(), facts.told_data());
    plan.find("Applied", Status::False, Reason::CleanupConfirmed, message);
    plan.find("Available", Status::False, Reason::CleanupConfirmed, message);
    plan.find("Health", Status::True, Reason::NoErrors, "the adapter works");
    plan.find("Finalized", Status::True, Reason::CleanupConfirmed, message);
    plan.actions.extend(facts.input.clone().map(Action::RemoveInput));
    let made = facts.runs.iter().filter(|run| run.purpose == Purpose::Apply);
    plan.actions.extend(made.map(|run| Action::DeleteJob(run.job.clone())));
    plan
}
