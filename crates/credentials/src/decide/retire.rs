//! The way out: the conditions of a retirement, the deletion, and its proof.

use jiff::Timestamp;
use registry_account::contract::Disables;

use super::facts::{Facts, Step, later};
use crate::credential::{Naming, Retire};
use crate::reason::Reason;
use crate::state::{Action, State};

/// Returns the step of a credential that is on its way out; `None` if it is not.
///
/// A credential that no pull secret can name is retired at once. Any other one must be quiet, approved where the policy
/// demands it, and not named by the pull secret of its cluster, by observations that are fresh. Only a break-glass order
/// passes over this.
pub(super) fn begin(facts: &Facts<'_>) -> Option<Step> {
    let (credential, record) = (facts.credential, &facts.credential.record);
    if record.order.as_ref().is_some_and(|order| order.break_glass) {
        return Some(out(facts, Reason::BreakGlass));
    }
    let cause = cause(facts)?;
    if credential.may_be_named() { Some(quiet(facts, cause)) } else { Some(out(facts, cause)) }
}

/// Leaves a name that was never sent to the registry, and retires any other.
fn out(facts: &Facts<'_>, cause: Reason) -> Step {
    let next = if facts.credential.record.last_create.is_some() { State::Retiring } else { State::Spent };
    Step::advance(next, cause)
}

/// Returns the cause for which a credential is to be retired.
pub(super) fn cause(facts: &Facts<'_>) -> Option<Reason> {
    let record = &facts.credential.record;
    let is_gone = record.evidence.document.as_ref().is_some_and(|observed| observed.naming == Naming::ClusterGone);
    let is_superseded = facts.successor.is_some_and(|successor| successor.adopted.is_some());
    let ordered = record.order.is_some().then_some(Reason::Ordered);
    // A person's order alone never overrules a successor that is not adopted yet.
    record
        .given_up
        .or(is_gone.then_some(Reason::ClusterGone))
        .or(is_superseded.then_some(Reason::Superseded))
        .or(ordered.filter(|_| facts.successor.is_none()))
}

/// Proves that nothing uses a credential, by one observation after the other.
fn quiet(facts: &Facts<'_>, cause: Reason) -> Step {
    let (credential, policy, now) = (facts.credential, facts.policy, facts.now);
    let (record, evidence) = (&credential.record, &credential.record.evidence);
    if let Some(step) = unquiet(facts, cause) {
        return step;
    }
    if credential.state != State::Quiet {
        return Step::advance(State::Quiet, cause);
    }
    if policy.retire == Retire::Manual && record.order.is_none() {
        return facts.wait_for(Reason::AwaitingApproval, policy.resync);
    }
    let late_until = record.last_publish.map_or(now, |publish| later(publish, policy.late));
    if late_until > now {
        return facts.wait(Reason::AwaitingLateRequest, Some(late_until));
    }
    match evidence
        .document
        .as_ref()
        .filter(|observed| observed.at >= late_until && facts.is_within(observed.at, policy.fresh))
    {
        None => facts.observe(Action::ObserveDocument, cause),
        Some(observed) if observed.naming == Naming::Named => {
            facts.wait_for(Reason::StillNamed, policy.interval.max(policy.fresh))
        }
        Some(_) => Step::advance(State::Retiring, cause),
    }
}

/// Returns the step towards the proof of silence; `None` once there is one.
fn unquiet(facts: &Facts<'_>, cause: Reason) -> Option<Step> {
    let (credential, policy, now) = (facts.credential, facts.policy, facts.now);
    let evidence = &credential.record.evidence;
    if evidence.quiet.is_some() {
        return None;
    }
    if !facts.capabilities.usage_log {
        return Some(facts.wait_for(Reason::NoUsageLog, policy.resync));
    }
    // The time counts from the last event after which nodes may still have had it as their only one.
    let since = [
        facts.successor.and_then(|successor| successor.published),
        credential.record.last_publish,
        evidence.usage.as_ref().and_then(|usage| usage.last_pull),
    ];
    let quiet_at = later(since.into_iter().flatten().max().unwrap_or(now), policy.quiet);
    if let Some(usage) =
        evidence.usage.as_ref().filter(|usage| usage.at >= quiet_at && facts.is_within(usage.at, policy.fresh))
    {
        let is_silent = usage.complete || usage.last_pull.is_some();
        return (!is_silent).then(|| facts.wait_for(Reason::UsageIncomplete, policy.interval.max(policy.fresh)));
    }
    if quiet_at > now {
        let used = evidence.usage.as_ref().is_some_and(|usage| is_after(usage.last_pull, facts));
        let reason = if used { Reason::StillUsed } else { Reason::AwaitingQuiet };
        let next = match credential.state {
            State::Quiet if credential.record.adopted.is_some() => State::Adopted,
            State::Quiet => State::Published,
            state => state,
        };
        return Some(Step { action: None, next, reason, not_before: Some(quiet_at) });
    }
    // A request that waits for its approval asks the registry no more often than it must.
    if credential.state == State::Quiet && policy.retire == Retire::Manual && credential.record.order.is_none() {
        return Some(facts.wait_for(Reason::AwaitingApproval, policy.resync));
    }
    Some(facts.observe(Action::ObserveUsage, cause))
}

/// Returns true for a pull after the successor was published.
fn is_after(pull: Option<Timestamp>, facts: &Facts<'_>) -> bool {
    let published = facts.successor.and_then(|successor| successor.published);
    pull.is_some_and(|pull| published.is_none_or(|published| pull > published))
}

/// Deletes the account, until the registry has said so at a time at which no request that creates it can be on its way.
pub(super) fn retiring(facts: &Facts<'_>) -> Step {
    let (record, policy, now) = (&facts.credential.record, facts.policy, facts.now);
    let Some(last_create) = record.last_create else { return Step::advance(State::Spent, Reason::Done) };
    if record.deleted.is_some() {
        return if facts.credential.has_password {
            Step::act(Action::ConfirmRefused, State::Dead, Reason::AwaitingRefusal)
        } else {
            // Its password was never received, so that there is none to be refused.
            Step::advance(State::Dead, Reason::AwaitingTokenExpiry)
        };
    }
    let is_urgent = record.order.as_ref().is_some_and(|order| order.break_glass);
    let is_untouched = record.last_delete.is_none() && record.disabled.is_none();
    if !is_urgent
        && is_untouched
        && facts.credential.may_be_named()
        && let Some(step) = still_unnamed(facts)
    {
        return step;
    }
    if facts.capabilities.disables == Disables::Reversibly && !policy.disabled_for.is_zero() && !is_urgent {
        match record.disabled.map(|disabled| later(disabled, policy.disabled_for)) {
            None => return Step::act(Action::Disable, State::Retiring, Reason::ToDelete),
            Some(end) if end > now => return facts.wait(Reason::Disabled, Some(end)),
            Some(_) => {}
        }
    }
    let late_until = later(last_create, policy.late);
    match record.last_delete {
        Some(_) if late_until > now => facts.wait(Reason::AwaitingLateRequest, Some(late_until)),
        _ => Step::act(Action::Delete, State::Retiring, Reason::ToDelete),
    }
}

/// Returns the step towards a fresh proof that no pull secret names a credential; `None` while there is one. The deletion may
/// have waited for long, and a person may have put the old pull secret back.
fn still_unnamed(facts: &Facts<'_>) -> Option<Step> {
    let document = facts.credential.record.evidence.document.as_ref();
    match document.filter(|observed| facts.is_within(observed.at, facts.policy.fresh)) {
        None => Some(facts.observe(Action::ObserveDocument, Reason::ToDelete)),
        Some(observed) if observed.naming == Naming::Named => Some(Step::advance(State::Quiet, Reason::StillNamed)),
        Some(_) => None,
    }
}

/// Waits until the last token that was issued has expired.
pub(super) fn dead(facts: &Facts<'_>) -> Step {
    let record = &facts.credential.record;
    let expired = record.deleted.or(record.expires).map(|end| later(end, facts.capabilities.token_life));
    match expired.filter(|expired| *expired > facts.now) {
        Some(expired) => facts.wait(Reason::AwaitingTokenExpiry, Some(expired)),
        None => Step::advance(State::WaitedOut, Reason::Done),
    }
}
