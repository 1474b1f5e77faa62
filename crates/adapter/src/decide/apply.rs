//! Decides the runs that store and apply a pull secret.

use std::time::Duration;

use fleet_model::{copy, names};
use hyperfleet_client::{ReportedCondition, Status};
use kubernetes::job::JobEnd;
use serde_json::{Map, Value, json};

use super::attempts;
use super::criteria::{Unmet, unmet};
use super::facts::{Facts, OutputState, PullSecretSource, Purpose, Run, SOURCE};
use super::plan::{ADAPTER_WORKS, Action, Plan, PlannedCondition, StartRun};
use super::retry::{Failure, Severity, format_wait, severity, wait, wait_since};
use crate::config::Checked;
use crate::reason::Reason;

/// Maximum number of runs when a Job completed but its termination message was lost, as its Pods were deleted before it.
const MAX_RERUNS_WITHOUT_RESULT: u32 = 3;

/// Decides the actions and the conditions for a resource that is not being deleted.
pub(super) fn decide(config: &Checked, facts: &Facts<'_>) -> Plan {
    let purpose = Purpose::Apply;
    let run = facts.run(purpose);
    let mut plan = match run.map(|run| (run, run.job.end.as_ref())) {
        Some((run, None)) => running(config, facts, run),
        Some((run, Some(JobEnd::Failed { reason, message }))) => failed(config, facts, run, reason, message),
        Some((run, Some(JobEnd::Complete))) => succeeded(config, facts, run),
        None => without_run(config, facts),
    };
    if run.is_some() || facts.last_success().is_some() {
        stop_older_runs(&mut plan, facts);
    }
    plan
}

/// Deletes the running Jobs of older generations once the current one has a run. The input belongs to the current generation,
/// so a Pod of an older one must not start any more.
fn stop_older_runs(plan: &mut Plan, facts: &Facts<'_>) {
    let is_older = |run: &&Run<'_>| run.purpose == Purpose::Apply && run.generation < facts.resource.generation;
    let older = facts.runs.iter().filter(is_older).filter(|run| run.job.end.is_none() && !run.job.is_terminating);
    plan.actions.extend(older.map(|run| Action::DeleteJob(run.job.clone())));
}

/// Plans for a generation that has no Job, or whose Job was deleted after its time to live.
fn without_run(config: &Checked, facts: &Facts<'_>) -> Plan {
    if let Some(last) = facts.last_success() {
        return steady(config, facts, repeat_last(last), facts.reported_data(), None);
    }
    let unmet = unmet(config, facts.view);
    if !unmet.is_empty() {
        return waiting(facts, &unmet);
    }
    if let Some(why) = facts.missing(config, Purpose::Apply) {
        return waiting(facts, &[Unmet { line: why, detail: None }]);
    }
    if let PullSecretSource::Missing(why) = &facts.source {
        return waiting(facts, &[Unmet { line: why.clone(), detail: None }]);
    }
    let because = match facts.reported_generation() {
        None => "it has no run yet".to_owned(),
        Some(reported) if reported < facts.resource.generation => {
            format!("generation {} is newer than {reported}, the last that was reported", facts.resource.generation)
        }
        Some(_) => "this generation has no run that succeeded".to_owned(),
    };
    Plan::starting(facts, StartRun::next(facts, Purpose::Apply, because))
}

/// Repeats the `Available` condition of the last report.
fn repeat_last(last: &ReportedCondition) -> PlannedCondition {
    let (reason, message) = (last.reason.clone(), last.message.clone());
    PlannedCondition::new(
        names::condition::AVAILABLE,
        last.status,
        reason.unwrap_or_default(),
        message.unwrap_or_default(),
    )
}

fn waiting(facts: &Facts<'_>, unmet: &[Unmet]) -> Plan {
    let message = unmet.iter().map(|unmet| unmet.line.as_str()).collect::<Vec<_>>().join("; ");
    let why = Reason::PreconditionsNotMet;
    let mut plan = Plan::new(why, message.clone(), facts.reported_data());
    plan.set_condition(names::condition::APPLIED, Status::False, why, &message);
    plan.set_condition(names::condition::AVAILABLE, Status::False, why, &message);
    plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
    plan
}

/// Stands between the Job and what it repairs, in the message about a Job that runs.
pub const REPAIRS: &str = "; repairing: ";
/// Ends the message of a pass that starts a repair.
const STARTS_REPAIR: &str = "; a Job repairs it";

/// Returns what a running Job repairs, as the last report about this generation says it; empty if it repairs nothing.
fn repaired(facts: &Facts<'_>) -> String {
    let report = facts.last_report.filter(|report| report.observed_generation == facts.resource.generation);
    let available = report.and_then(|report| report.condition(names::condition::AVAILABLE));
    let message = available.and_then(|available| available.message.as_deref()).unwrap_or_default();
    let what = message.strip_suffix(STARTS_REPAIR).or_else(|| message.split_once(REPAIRS).map(|(_, what)| what));
    what.map(|what| format!("{REPAIRS}{what}")).unwrap_or_default()
}

fn running(config: &Checked, facts: &Facts<'_>, run: &Run<'_>) -> Plan {
    let message = match (run.job.is_terminating, run.job.failed) {
        (true, _) => format!("Job {} is terminating", run.job.name),
        (false, 0) => format!("Job {} is running{}", run.job.name, repaired(facts)),
        (false, failed) => {
            let limit = config.given.spec.job_template.backoff_limit;
            let detail = run.outcome.as_ref().map(|outcome| match &outcome.reason {
                Some(reason) => format!(": {reason}: {}", outcome.message),
                None => format!(": {}", outcome.message),
            });
            let detail = detail.unwrap_or_default();
            format!("Job {} is running; {failed} of its Pods failed (backoffLimit {limit}){detail}", run.job.name)
        }
    };
    let mut plan = Plan::new(Reason::WorkloadInProgress, message.clone(), facts.reported_data());
    plan.set_condition(
        names::condition::APPLIED,
        Status::True,
        Reason::ResourcesExist,
        &format!("Job {} exists", run.job.name),
    );
    plan.set_condition(names::condition::AVAILABLE, Status::False, Reason::WorkloadInProgress, &message);
    plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
    plan.job = Some(run.job.clone());
    // A Pod that has not started yet waits for a missing input, and an input without an owner would outlive its Job.
    let owner = facts.input.as_ref().and_then(|input| input.owner.as_deref());
    if config.input.is_some() && !run.job.is_terminating && owner != Some(&*run.job.uid) {
        plan.actions.push(Action::SetInputOwner(run.job.clone()));
    }
    plan
}

fn succeeded(config: &Checked, facts: &Facts<'_>, run: &Run<'_>) -> Plan {
    let outcome = run.outcome.as_ref();
    if outcome.is_none() {
        if let Some(last) = facts.last_success() {
            return steady(config, facts, repeat_last(last), facts.reported_data(), Some(run));
        }
        if run.attempt < MAX_RERUNS_WITHOUT_RESULT {
            let because =
                format!("Job {} has completed, but its termination message was lost with its Pods", run.job.name);
            return Plan::starting(facts, StartRun::after(run, because));
        }
    }
    let reason = outcome.and_then(|outcome| outcome.reason.clone());
    let message =
        outcome.map_or_else(|| format!("Job {} has completed", run.job.name), |outcome| outcome.message.clone());
    let data = run.data().unwrap_or_else(|| facts.reported_data());
    let status = if run.is_superseded() { Status::False } else { Status::True };
    let reason = reason.unwrap_or_else(|| Reason::JobSucceeded.to_string());
    let available = PlannedCondition::new(names::condition::AVAILABLE, status, reason, message);
    let mut plan = steady(config, facts, available, data, Some(run));
    plan.job = Some(run.job.clone());
    plan
}

/// Plans for a generation whose run has succeeded: nothing, unless what it has applied was changed since.
fn steady(
    config: &Checked,
    facts: &Facts<'_>,
    available: PlannedCondition,
    mut data: Map<String, Value>,
    run: Option<&Run<'_>>,
) -> Plan {
    if let PullSecretSource::Revision(revision) = &facts.source {
        data.insert(SOURCE.to_owned(), json!(revision));
    }
    let drift = match &facts.output {
        OutputState::InSync | OutputState::NotChecked(_) => None,
        OutputState::Missing(what) => Some((Reason::Drifted, format!("{what} was deleted"))),
        OutputState::Changed(what) => Some((Reason::Drifted, format!("{what} holds another pull secret"))),
        OutputState::Unmanaged(what) => Some((Reason::NameConflict, what.clone())),
    };
    let is_done = available.status == Status::True;
    let stored = || facts.stored_drift().map(|drift| (Reason::StoreDrifted, drift.message.clone()));
    match drift.or_else(stored).filter(|_| is_done) {
        None => {
            let mut plan = Plan::new(Reason::ResourcesExist, available.message.clone(), data);
            plan.set_condition(
                names::condition::APPLIED,
                Status::True,
                Reason::ResourcesExist,
                "this generation's Job has run",
            );
            plan.conditions.push(available);
            plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
            plan.actions.extend(facts.removable_input().map(Action::RemoveInput));
            plan
        }
        Some((drift @ (Reason::Drifted | Reason::StoreDrifted), why)) => {
            let attempt = attempts::next(facts, Purpose::Apply);
            let ended = attempts::backs_off_from(config, facts, Purpose::Apply);
            let wait = ended.and_then(|ended| wait_since(ended, config.retry.transient_after, attempt, facts));
            // The first drift is repaired at once; only repeated drift is subject to the back-off.
            if let Some(wait) = wait.filter(|_| attempt > 2) {
                let mut plan = drifted(drift, &why, data);
                plan.requeue_after = Some(wait);
                return plan;
            }
            let replaces = run.map(|run| run.job.clone());
            let run = StartRun { replaces, ..StartRun::next(facts, Purpose::Apply, why.clone()) };
            let mut plan = Plan::starting(facts, run);
            plan.conditions.retain(|condition| condition.kind != names::condition::AVAILABLE);
            plan.set_condition(names::condition::AVAILABLE, Status::False, drift, &format!("{why}{STARTS_REPAIR}"));
            plan.data = data;
            plan
        }
        Some((reason, why)) => {
            let mut plan = Plan::new(reason, why.clone(), data);
            plan.set_condition(names::condition::APPLIED, Status::False, reason, &why);
            plan.set_condition(names::condition::AVAILABLE, Status::False, reason, &why);
            plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
            plan
        }
    }
}

fn drifted(reason: Reason, why: &str, data: Map<String, Value>) -> Plan {
    let mut plan = Plan::new(reason, why.to_owned(), data);
    let message = format!("{why} repeatedly: another process changes it; another Job repairs it after a back-off");
    plan.set_condition(
        names::condition::APPLIED,
        Status::True,
        Reason::ResourcesExist,
        "this generation's Job has run",
    );
    plan.set_condition(names::condition::AVAILABLE, Status::False, reason, &message);
    plan.set_condition(names::condition::HEALTH, Status::True, Reason::NoErrors, ADAPTER_WORKS);
    plan
}

/// Returns the data after a run that has failed: those of the last success, unless it has failed at the mirror. Then they are what
/// the run has stored in the first store, and what the mirror held before.
fn data_after_failure(facts: &Facts<'_>, run: &Run<'_>) -> Map<String, Value> {
    let reported = facts.reported_data();
    let Some(mut data) = run.data().filter(|data| data.contains_key(copy::MIRROR)) else { return reported };
    let before = reported.get(copy::MIRROR).cloned();
    if !data.contains_key(copy::VERSION) {
        let mirror = before.or_else(|| data.remove(copy::MIRROR));
        return reported.into_iter().chain(mirror.map(|mirror| (copy::MIRROR.to_owned(), mirror))).collect();
    }
    let members = [copy::GOOGLES_PLACE, copy::VAULTS_PLACE, copy::AWSS_PLACE, copy::AZURES_PLACE, "secretPath"];
    let place = |mirror: &Value| members.map(|member| mirror.get(member).cloned());
    if let (Some(before), Some(now)) = (before, data.get_mut(copy::MIRROR))
        && place(&before) == place(now)
    {
        *now = before;
    }
    data
}

fn failed(config: &Checked, facts: &Facts<'_>, run: &Run<'_>, reason: &str, message: &str) -> Plan {
    let outcome = run.outcome.as_ref().filter(|outcome| !outcome.is_success);
    let Failure { reason, message } = Failure::of(run, outcome, reason, message);
    let severity = severity(outcome);
    let after = match severity {
        Severity::Final => None,
        Severity::Permanent => Some(config.retry.permanent_after),
        Severity::Transient => Some(config.retry.transient_after),
    };
    let attempt = run.attempt.saturating_add(1);
    let wait = after.map(|after| wait(after, attempt, run, facts).unwrap_or_default());
    if wait == Some(Duration::ZERO) && !run.job.is_terminating {
        let because = format!("the last Job has failed ({reason}) and its back-off is over");
        return Plan::starting(facts, StartRun::after(run, because));
    }
    let next = match wait {
        Some(wait) => format!("; retrying with another Job in {}", format_wait(wait)),
        None => "; another Job is created when the pull secret is changed".to_owned(),
    };
    let message = format!("{message}{next}");
    let mut plan = Plan::new(Reason::JobFailed, message.clone(), data_after_failure(facts, run));
    plan.set_condition(
        names::condition::APPLIED,
        Status::True,
        Reason::ResourcesExist,
        &format!("Job {} exists", run.job.name),
    );
    plan.conditions.push(PlannedCondition::new(names::condition::AVAILABLE, Status::False, reason, message));
    plan.set_condition(
        names::condition::HEALTH,
        Status::True,
        Reason::NoErrors,
        "the adapter works; its Job has failed",
    );
    plan.requeue_after = wait;
    plan.job = Some(run.job.clone());
    plan.actions.extend(facts.removable_input().map(Action::RemoveInput));
    plan
}
