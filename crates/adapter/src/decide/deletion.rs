//! Decides the clean-up of a resource that is being deleted.

use std::collections::BTreeSet;
use std::time::Duration;

use fleet_model::names;
use hyperfleet_client::Status;

use super::copies::{CleanUp, clean_up, with_copies};
use super::destination::{mirror_copy, planned_copies};
use super::facts::{Facts, Purpose, Run};
use super::plan::{ADAPTER_WORKS, Action, Plan, PlannedCondition, StartRun};
use super::retry::{Failure, NotDeleted, format_wait, wait};
use crate::config::Checked;
use crate::reason::Reason;

/// Decides the actions and the conditions for a resource that is being deleted. The input is removed before anything else: a Job
/// that another replica is about to start, as it has observed the resource before its deletion, does not run without it.
pub(super) fn decide(config: &Checked, facts: &Facts<'_>) -> Plan {
    let mut plan = clean(config, facts);
    plan.actions.splice(..0, facts.input.clone().map(Action::RemoveInput));
    plan
}

fn clean(config: &Checked, facts: &Facts<'_>) -> Plan {
    // Runs that apply must have stopped before anything is removed: they would create it again.
    let applying = facts.runs.iter().filter(|run| run.purpose == Purpose::Apply);
    let applying: Vec<_> = applying.filter(|run| !run.has_stopped()).collect();
    if !applying.is_empty() {
        return stopping(facts, &applying);
    }
    if config.delete_args.is_none() {
        return confirmed(facts, "this adapter creates nothing that must be removed");
    }
    // An invalid destination was never written to.
    let (planned, invalid_destination) = match planned_copies(config, facts) {
        Ok(planned) => (planned, None),
        Err(why) => (BTreeSet::new(), Some(why)),
    };
    let mut left = facts.recorded_copies();
    // The mirror's copy is deleted by a run of its own, like a former one.
    let mut kept = planned;
    if let Some(mirror) = mirror_copy(config, facts).ok().flatten() {
        kept.remove(&mirror);
    }
    let mut plan = Plan::new(Reason::CleanupInProgress, String::new(), facts.reported_data());
    let failed = match clean_up(config, facts, &kept, &mut left, &mut plan) {
        CleanUp::Done => None,
        CleanUp::InProgress(message) => {
            plan.set_condition(names::condition::APPLIED, Status::True, Reason::ResourcesExist, &message);
            in_progress(&mut plan, &message);
            return with_copies(facts, Plan { because: message, ..plan }, &left);
        }
        // The others are deleted all the same.
        CleanUp::Failed(message, wait) => Some((message, wait)),
    };
    let finished_clean_ups = plan.actions;
    let mut plan = match invalid_destination.or_else(|| facts.missing(config, Purpose::Delete)) {
        Some(why) => confirmed(facts, &format!("nothing was created, as a run was never possible ({why})")),
        None => current(config, facts),
    };
    plan.actions.extend(finished_clean_ups);
    let mut is_finalized = plan.condition(names::condition::FINALIZED).is_some_and(|it| it.status == Status::True);
    if let Some((message, wait)) = failed.or_else(|| unreadable(config, facts)).filter(|_| is_finalized) {
        is_finalized = false;
        plan = Plan { reason: Reason::DeletionError, because: message.clone(), conditions: Vec::new(), ..plan };
        plan = not_deleted(plan, Reason::DeletionError.to_string(), &message, wait);
    }
    if is_finalized && config.account.is_some() {
        plan.actions.push(Action::RevokeAccess);
    }
    with_copies(facts, plan, &if is_finalized { BTreeSet::new() } else { left })
}

/// Decides the clean-up of the current destination.
fn current(config: &Checked, facts: &Facts<'_>) -> Plan {
    let run = facts.run(Purpose::Delete);
    if let Some((run, not_deleted)) = run.and_then(|run| Some((run, NotDeleted::of(config, run)?))) {
        return failed(facts, run, not_deleted);
    }
    match run.map(|run| (run, run.job.end.as_ref())) {
        None => {
            let because = "the resource is being deleted".to_owned();
            let mut plan = Plan::starting(facts, StartRun::next(facts, Purpose::Delete, because));
            in_progress(&mut plan, "a clean-up Job was created");
            plan
        }
        Some((run, None)) => removing(facts, run),
        Some((run, Some(_))) if applied_after_clean_up(facts, run) => {
            let because = "an applying Job has ended after the clean-up Job was created".to_owned();
            let mut plan = Plan::starting(facts, StartRun::after(run, because));
            in_progress(&mut plan, "another clean-up Job removes what was created meanwhile");
            plan
        }
        Some((run, Some(_))) => {
            let message = run.outcome.as_ref().map(|outcome| outcome.message.clone());
            let message = message.unwrap_or_else(|| format!("Job {} has completed", run.job.name));
            let mut plan = confirmed(facts, &message);
            plan.job = Some(run.job.clone());
            plan
        }
    }
}

/// Returns true if an applying Job has ended after the clean-up Job was created, and may have created again what was removed:
/// another replica, which had observed the resource before its deletion, has started it.
fn applied_after_clean_up(facts: &Facts<'_>, cleanup: &Run<'_>) -> bool {
    let applying = facts.runs.iter().filter(|run| run.purpose == Purpose::Apply);
    applying.map(|run| run.job.ended).any(|ended| ended.is_some() && ended > cleanup.job.created)
}

fn stopping(facts: &Facts<'_>, applying: &[&Run<'_>]) -> Plan {
    let jobs = applying.iter().map(|run| run.job.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut plan = Plan::new(Reason::CleanupInProgress, format!("waiting for {jobs} to stop"), facts.reported_data());
    plan.set_condition(names::condition::APPLIED, Status::True, Reason::ResourcesExist, "Jobs exist");
    in_progress(&mut plan, &format!("waiting for Jobs to stop: {jobs}"));
    let running = applying.iter().filter(|run| !run.job.is_terminating);
    plan.actions.extend(running.map(|run| Action::DeleteJob(run.job.clone())));
    plan
}

fn removing(facts: &Facts<'_>, run: &Run<'_>) -> Plan {
    let message = format!("clean-up Job {} is running", run.job.name);
    let mut plan = Plan::new(Reason::CleanupInProgress, message.clone(), facts.reported_data());
    plan.set_condition(
        names::condition::APPLIED,
        Status::True,
        Reason::ResourcesExist,
        &format!("Job {} exists", run.job.name),
    );
    in_progress(&mut plan, &message);
    plan.job = Some(run.job.clone());
    plan
}

fn failed(facts: &Facts<'_>, run: &Run<'_>, failed: NotDeleted) -> Plan {
    let NotDeleted { failure: Failure { reason, message }, first } = failed;
    let attempt = run.attempt.saturating_add(1);
    let wait = wait(first, attempt, run, facts).unwrap_or_default();
    if wait == Duration::ZERO && !run.job.is_terminating {
        let because = format!("the last clean-up Job has failed ({reason}) and its back-off is over");
        let mut plan = Plan::starting(facts, StartRun::after(run, because));
        in_progress(&mut plan, &format!("{message}; retrying with another Job"));
        return plan;
    }
    let message = format!("{message}; retrying with another Job in {}", format_wait(wait));
    let mut plan = Plan::new(Reason::DeletionError, message.clone(), facts.reported_data());
    plan.job = Some(run.job.clone());
    not_deleted(plan, reason, &message, wait)
}

/// Returns the message about copies that this version cannot read, and so cannot delete, and the time until the next pass.
fn unreadable(config: &Checked, facts: &Facts<'_>) -> Option<(String, Duration)> {
    let unread = facts.unread_copies();
    let kinds: BTreeSet<_> = unread.iter().map(|copy| copy["kind"].as_str().unwrap_or("none")).collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
    let message =
        format!("the report lists copies of kinds that this version does not know ({kinds}): update the adapter");
    (!unread.is_empty()).then_some((message, config.retry.permanent_after))
}

/// Completes a plan with the conditions of a failed clean-up.
fn not_deleted(mut plan: Plan, reason: String, message: &str, wait: Duration) -> Plan {
    plan.set_condition(names::condition::APPLIED, Status::True, Reason::ResourcesExist, "clean-up Jobs exist");
    plan.conditions.push(PlannedCondition::new(names::condition::AVAILABLE, Status::False, reason, message.to_owned()));
    plan.set_condition(names::condition::HEALTH, Status::False, Reason::DeletionError, message);
    plan.set_condition(names::condition::FINALIZED, Status::False, Reason::AdapterUnhealthy, message);
    plan.requeue_after = Some(wait);
    plan
}

/// Replaces the conditions by those of a clean-up in progress.
fn in_progress(plan: &mut Plan, message: &str) {
    plan.conditions.retain(|condition| condition.kind == names::condition::APPLIED);
    plan.set_condition(names::condition::AVAILABLE, Status::False, Reason::CleanupInProgress, message);
    plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
    plan.set_condition(names::condition::FINALIZED, Status::False, Reason::CleanupInProgress, message);
    plan.reason = Reason::CleanupInProgress;
}

fn confirmed(facts: &Facts<'_>, message: &str) -> Plan {
    let mut plan = Plan::new(Reason::CleanupConfirmed, message.to_owned(), facts.reported_data());
    plan.set_condition(names::condition::APPLIED, Status::False, Reason::CleanupConfirmed, message);
    plan.set_condition(names::condition::AVAILABLE, Status::False, Reason::CleanupConfirmed, message);
    plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
    plan.set_condition(names::condition::FINALIZED, Status::True, Reason::CleanupConfirmed, message);
    let applied = facts.runs.iter().filter(|run| run.purpose == Purpose::Apply);
    plan.actions.extend(applied.map(|run| Action::DeleteJob(run.job.clone())));
    plan
}
