//! Tracks the copies of a pull secret: each is recorded before a run writes it, and until a clean-up has deleted it.
//!
//! A resource whose destination has changed gets a run for the new one first; only after it has succeeded is the former copy
//! deleted, by a clean-up run of its own. A deletion is complete when no copy is left.

use std::collections::BTreeSet;
use std::time::Duration;

use fleet_model::{StoredCopy, copy, names};
use hyperfleet_client::Status;
use serde_json::{Map, Value, json};

use super::attempts;
use super::criteria::unmet;
use super::destination::{mirror_copy, planned_copies, refused_copies};
use super::facts::{Facts, PullSecretSource, Purpose, Run};
use super::plan::{ADAPTER_WORKS, Action, Plan, StartRun};
use super::retry::{NotDeleted, format_wait, wait, wait_since};
use crate::config::{Checked, StoreKind};
use crate::reason::Reason;

/// State of the clean-up of a former copy.
pub(super) enum CleanUp {
    /// No copy is left but the current ones.
    Done,
    /// In progress or just started.
    InProgress(String),
    /// It has failed and is repeated after this time.
    Failed(String, Duration),
}

/// Completes the plan of a resource that is not being deleted: records new copies, refuses those that are not allowed, and
/// cleans former ones up.
pub(super) fn track(config: &Checked, facts: &Facts<'_>, mut plan: Plan) -> Plan {
    if !config.tracks_copies {
        return plan;
    }
    if config.mirror.is_none() {
        plan.data.remove(copy::MIRROR);
    }
    let recorded = facts.recorded_copies();
    let planned = match planned_copies(config, facts) {
        Ok(planned) => planned,
        Err(why) => return with_copies(facts, without_destination(config, facts, plan, &why), &recorded),
    };
    if plan.starts_run().is_some() {
        let rules = config.given.spec.destinations.as_deref();
        let refused = refused_copies(rules, &facts.resource.tenancy, &planned);
        if !refused.is_empty() {
            return with_copies(facts, not_allowed(facts, &refused), &recorded);
        }
        if let Some(waiting) = wait_for_clean_ups(facts, &planned) {
            return with_copies(facts, waiting, &recorded);
        }
        if !planned.is_subset(&recorded) {
            plan.actions.insert(0, Action::RecordCopies);
        }
        let all = recorded.union(&planned).cloned().collect();
        return with_copies(facts, plan, &all);
    }
    let is_stored = plan.condition(names::condition::AVAILABLE).is_some_and(|it| it.status == Status::True);
    if is_stored {
        return settle(config, facts, plan, &planned, recorded);
    }
    with_copies(facts, plan, &recorded)
}

/// Completes the plan of a resource whose pull secret is stored: moves it where it is not as planned, and cleans former copies up.
fn settle(
    config: &Checked,
    facts: &Facts<'_>,
    mut plan: Plan,
    planned: &BTreeSet<StoredCopy>,
    recorded: BTreeSet<StoredCopy>,
) -> Plan {
    let mirror = mirror_copy(config, facts).ok().flatten();
    let is_written = |copy: &StoredCopy| match &mirror {
        // A copy that the data name as the first store's does not count: a run writes it again as the mirror's.
        Some(mirror) if copy == mirror => copy.is_mirrored(&plan.data),
        _ => copy.is_written(&plan.data),
    };
    let written: Vec<_> = planned.iter().map(is_written).collect();
    if let Some(copy) =
        planned.iter().zip(&written).find_map(|(copy, written)| (*written == Some(false)).then_some(copy))
    {
        if let Some(why) = keeps_from_moving(config, facts) {
            let message = format!("the destination is now {copy}, where nothing is stored yet: {why}");
            plan.replace(names::condition::APPLIED, Status::True, Reason::PreconditionsNotMet, &message);
            return with_copies(facts, plan, &recorded);
        }
        let was_other =
            if mirror.as_ref() == Some(copy) { copy.is_written(&plan.data) } else { copy.is_mirrored(&plan.data) };
        let is_untried = was_other == Some(true) || !recorded.contains(copy);
        return track(config, facts, moving(config, facts, copy, is_untried, plan.data));
    }
    let mut left = recorded;
    // They are stored: a record that was lost is completed.
    left.extend(planned.iter().cloned());
    if written.iter().any(Option::is_none) {
        // The Job's result does not say where the pull secret is now, so nothing may be deleted.
        return with_copies(facts, plan, &left);
    }
    // A run that was stopped may still write where it was to.
    if facts.runs.iter().any(|run| run.purpose == Purpose::Apply && !run.has_stopped()) {
        return with_copies(facts, plan, &left);
    }
    let kept = kept(planned, &left);
    match clean_up(config, facts, &kept, &mut left, &mut plan) {
        CleanUp::Done => {}
        CleanUp::InProgress(message) => {
            plan.replace(names::condition::APPLIED, Status::True, Reason::CleanupInProgress, &message);
        }
        CleanUp::Failed(message, wait) => {
            plan.replace(names::condition::APPLIED, Status::True, Reason::DeletionError, &message);
            plan.replace(names::condition::HEALTH, Status::False, Reason::DeletionError, &message);
            plan.requeue_after = Some(plan.requeue_after.map_or(wait, |other| other.min(wait)));
        }
    }
    with_copies(facts, plan, &left)
}

/// Returns the plan of a resource that no run can store anywhere; what is stored stays.
fn without_destination(config: &Checked, facts: &Facts<'_>, mut plan: Plan, why: &str) -> Plan {
    let is_served = config.stores.of(facts.view).is_ok();
    let reason = if is_served { Reason::DestinationNotAllowed } else { Reason::PreconditionsNotMet };
    if plan.starts_run().is_some() {
        return waiting(facts, reason, why);
    }
    if plan.condition(names::condition::AVAILABLE).is_some_and(|it| it.status == Status::True) {
        plan.replace(names::condition::APPLIED, Status::True, reason, &format!("what is stored stays: {why}"));
    }
    plan
}

/// Returns the copies in `left` that are in use, or may be.
fn kept(planned: &BTreeSet<StoredCopy>, left: &BTreeSet<StoredCopy>) -> BTreeSet<StoredCopy> {
    let is_applied = |copy: &StoredCopy| matches!(copy, StoredCopy::KubernetesSecret { .. });
    // An unknown namespace does not mean a move.
    let has_namespace = planned.iter().any(is_applied);
    let may_be_planned = |copy: &StoredCopy| planned.iter().any(|planned| planned.may_be(copy));
    let is_kept = |copy: &&StoredCopy| may_be_planned(copy) || (is_applied(copy) && !has_namespace);
    left.iter().filter(is_kept).cloned().collect()
}

/// Cleans up the copies in `left` that are not among `kept`, one after the other, and removes from `left` those that are deleted.
pub(super) fn clean_up(
    config: &Checked,
    facts: &Facts<'_>,
    kept: &BTreeSet<StoredCopy>,
    left: &mut BTreeSet<StoredCopy>,
    plan: &mut Plan,
) -> CleanUp {
    let former: Vec<StoredCopy> = left.difference(kept).cloned().collect();
    let mut state = CleanUp::Done;
    for copy in &former {
        let run = facts.clean_up_run(copy);
        let Some(run) = run else {
            let because = format!("{copy} is not used any more");
            let message = format!("a clean-up Job deletes the {copy}");
            plan.actions.push(Action::StartRun(Box::new(StartRun::clean_up(copy.clone(), because))));
            return CleanUp::InProgress(message);
        };
        if run.job.end.is_none() {
            return CleanUp::InProgress(format!("clean-up Job {} deletes the {copy}", run.job.name));
        }
        if let Some(not_deleted) = NotDeleted::of(config, run) {
            // It must not keep the other copies from being deleted.
            match failed(facts, run, &in_store(config, copy, not_deleted), plan) {
                CleanUp::Failed(message, wait) => state = CleanUp::Failed(message, wait),
                started => return started,
            }
            continue;
        }
        left.remove(copy);
        plan.actions.push(Action::DeleteJob(run.job.clone()));
    }
    // A finished clean-up of a copy that is in use again says nothing about a later one.
    let is_obsolete =
        |run: &&Run<'_>| run.job.end.is_some() && run.copy.as_ref().is_some_and(|copy| kept.contains(copy));
    let obsolete = facts.runs.iter().filter(|run| run.purpose == Purpose::CleanUp).filter(is_obsolete);
    plan.actions.extend(obsolete.map(|run| Action::DeleteJob(run.job.clone())));
    state
}

/// Returns the failure with the way out where the configuration does not name the store of the copy any more.
fn in_store(config: &Checked, copy: &StoredCopy, mut failed: NotDeleted) -> NotDeleted {
    let is_named = |kind| {
        config.stores.all().contains_key(&kind) || config.mirror.as_ref().is_some_and(|mirror| mirror.kind() == kind)
    };
    if StoreKind::of(copy).is_some_and(|kind| !is_named(kind)) {
        let message = &mut failed.failure.message;
        *message = format!(
            "{message}; spec.secretStore does not name the store of the {copy} any more: give Jobs its variables in \
             spec.jobTemplate.env until it is deleted"
        );
    }
    failed
}

fn failed(facts: &Facts<'_>, run: &Run<'_>, failed: &NotDeleted, plan: &mut Plan) -> CleanUp {
    let NotDeleted { failure, first } = failed;
    let wait = wait(*first, run.attempt.saturating_add(1), run, facts).unwrap_or_default();
    let message = &failure.message;
    if wait == Duration::ZERO && !run.job.is_terminating {
        let because = format!("the last clean-up Job has failed ({}) and its back-off is over", failure.reason);
        plan.actions.push(Action::StartRun(Box::new(StartRun::after(run, because))));
        return CleanUp::InProgress(format!("{message}; retrying with another clean-up Job"));
    }
    CleanUp::Failed(format!("{message}; retrying with another clean-up Job in {}", format_wait(wait)), wait)
}

/// Returns the reason why a run for another destination cannot start, if there is one.
fn keeps_from_moving(config: &Checked, facts: &Facts<'_>) -> Option<String> {
    let unmet: Vec<_> = unmet(config, facts.view).into_iter().map(|unmet| unmet.line).collect();
    let unmet = Some(unmet.join("; ")).filter(|lines| !lines.is_empty());
    let source = || match &facts.source {
        PullSecretSource::Missing(why) => Some(why.clone()),
        PullSecretSource::Inline | PullSecretSource::Revision(_) => None,
    };
    unmet.or_else(|| facts.missing(config, Purpose::Apply)).or_else(source)
}

/// Returns the plan that stores the pull secret at a destination that has changed without a new generation, as when the
/// namespace of the hosted control plane was moved. The first run starts at once; if its result names another destination
/// again, the next one is subject to the back-off. A copy is untried if no run was sent there yet, or one that had first store and
/// mirror the other way round.
fn moving(config: &Checked, facts: &Facts<'_>, copy: &StoredCopy, is_untried: bool, data: Map<String, Value>) -> Plan {
    let because = format!("the destination is now {copy}");
    let attempt = attempts::next(facts, Purpose::Apply);
    let ended = attempts::backs_off_from(config, facts, Purpose::Apply).filter(|_| attempt > 2 && !is_untried);
    let wait = ended.and_then(|ended| wait_since(ended, config.retry.transient_after, attempt, facts));
    if let Some(wait) = wait {
        let tried = attempt.saturating_sub(1);
        let message =
            format!("{because}; retrying in {}, after {tried} attempts at this generation", format_wait(wait));
        return Plan { requeue_after: Some(wait), data, ..waiting(facts, Reason::WorkloadInProgress, &message) };
    }
    let start = match facts.run(Purpose::Apply) {
        Some(run) => StartRun::after(run, because),
        None => StartRun::next(facts, Purpose::Apply, because),
    };
    Plan::starting(facts, start)
}

/// Returns the plan that stops running clean-ups of copies that are about to be written again.
fn wait_for_clean_ups(facts: &Facts<'_>, planned: &BTreeSet<StoredCopy>) -> Option<Plan> {
    let is_running = |run: &&Run<'_>| run.job.end.is_none() || run.job.is_terminating;
    let may_be_planned = |copy: &StoredCopy| planned.iter().any(|planned| planned.may_be(copy));
    let is_of_planned = |run: &&Run<'_>| run.copy.as_ref().is_some_and(may_be_planned);
    let clean_ups = facts.runs.iter().filter(|run| run.purpose == Purpose::CleanUp);
    let running: Vec<_> = clean_ups.filter(is_running).filter(is_of_planned).collect();
    let message = format!("waiting for clean-up Job {} to stop", running.first()?.job.name);
    let mut plan = waiting(facts, Reason::CleanupInProgress, &message);
    let stopped = running.iter().filter(|run| !run.job.is_terminating);
    plan.actions.extend(stopped.map(|run| Action::DeleteJob(run.job.clone())));
    Some(plan)
}

fn not_allowed(facts: &Facts<'_>, refused: &[&StoredCopy]) -> Plan {
    let listed = refused.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let message = format!("no rule of the adapter's `spec.destinations` allows {listed} for this resource");
    waiting(facts, Reason::DestinationNotAllowed, &message)
}

fn waiting(facts: &Facts<'_>, reason: Reason, message: &str) -> Plan {
    let mut plan = Plan::new(reason, message.to_owned(), facts.reported_data());
    plan.set_condition(names::condition::APPLIED, Status::False, reason, message);
    plan.set_condition(names::condition::AVAILABLE, Status::False, reason, message);
    plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
    plan
}

/// Returns the plan with these copies in its data, and with those that this version cannot read.
pub(super) fn with_copies(facts: &Facts<'_>, mut plan: Plan, copies: &BTreeSet<StoredCopy>) -> Plan {
    plan.data.remove(copy::MEMBER);
    let all: Vec<Value> = copies.iter().map(|copy| json!(copy)).chain(facts.unread_copies()).collect();
    if !all.is_empty() {
        plan.data.insert(copy::MEMBER.to_owned(), json!(all));
    }
    plan
}
