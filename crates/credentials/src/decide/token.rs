//! Tokens of a registry without accounts: minted, renewed before they expire, and never revoked.
//!
//! A token is renewed in its own row: another one is minted, probed and published in place of the one before, which stays good
//! until its own expiry. So a cluster has one row for as long as it uses the registry.

use jiff::{SignedDuration, Timestamp};

use super::facts::{Facts, Step};
use super::retire;
use crate::credential::{Credential, Naming};
use crate::reason::Reason;
use crate::state::{Action, State};

/// Returns the step of a token that is to be renewed, or that nothing needs any more; `None` for any other one.
pub(super) fn step(facts: &Facts<'_>) -> Option<Step> {
    let is_revoked = facts.credential.record.order.as_ref().is_some_and(|order| order.break_glass);
    let is_superseded = facts.successor.is_some_and(|successor| successor.published.is_some());
    let cause = is_revoked
        .then_some(Reason::BreakGlass)
        .or_else(|| retire::cause(facts))
        .or(is_superseded.then_some(Reason::Superseded));
    match cause {
        None => renew(facts),
        Some(Reason::Ordered) if facts.credential.may_be_named() => retire(facts),
        Some(cause) => Some(end(facts, cause)),
    }
}

fn renew(facts: &Facts<'_>) -> Option<Step> {
    let is_due = renewal(facts.credential).is_some_and(|due| due <= facts.now);
    is_due.then(|| Step::act(Action::Create, State::Created, Reason::ToRenew))
}

/// Retires a token as a person has ordered: it is renewed for as long as the pull secret names it. One on its way through a
/// renewal goes on.
fn retire(facts: &Facts<'_>) -> Option<Step> {
    let Facts { credential, policy, .. } = *facts;
    let is_displaced = credential.record.failure == Some(Reason::Displaced);
    if !matches!(credential.state, State::Published | State::Adopted) && !is_displaced {
        return None;
    }
    let document = credential.record.evidence.document.as_ref();
    Some(match document.filter(|observed| facts.is_within(observed.at, policy.fresh)) {
        None => facts.observe(Action::ObserveDocument, Reason::Ordered),
        Some(observed) if observed.naming == Naming::Named => renew(facts).unwrap_or_else(|| {
            until_renewal(facts, facts.wait_for(Reason::StillNamed, policy.interval.max(policy.fresh)))
        }),
        Some(_) => end(facts, Reason::Ordered),
    })
}

/// Waits until a token that is not needed any more expires.
fn end(facts: &Facts<'_>, cause: Reason) -> Step {
    match facts.credential.record.expires {
        // None was received: if one was minted, no cluster has it.
        None => Step::advance(State::Spent, cause),
        Some(expires) if expires > facts.now => facts.wait(Reason::AwaitingExpiry, Some(expires)),
        Some(_expired) => Step::advance(State::Dead, cause),
    }
}

/// Ends a wait at the renewal at the latest.
pub(super) fn until_renewal(facts: &Facts<'_>, step: Step) -> Step {
    let is_wait = step.action.is_none() && step.next == facts.credential.state;
    let Some(renewal) = renewal(facts.credential).filter(|_| is_wait) else { return step };
    Step { not_before: Some(step.not_before.map_or(renewal, |wait| wait.min(renewal))), ..step }
}

/// Returns the time at which a token is renewed: after two thirds of its life, and up to a tenth of that earlier or later, so that
/// those of a fleet that were minted together are not renewed together.
fn renewal(credential: &Credential) -> Option<Timestamp> {
    let (created, expires) = (credential.record.created?, credential.record.expires?);
    let thousandths = 900 + i128::from(spread(credential) % 201);
    let life = expires.duration_since(created).as_nanos();
    let before = i64::try_from(life.max(0) * 2 * thousandths / 3000).unwrap_or(i64::MAX);
    Some(created.saturating_add(SignedDuration::from_nanos(before)).unwrap_or(Timestamp::MAX))
}

/// Returns a number that differs between credentials and stays the same for each.
fn spread(credential: &Credential) -> u32 {
    credential.id.to_string().bytes().fold(0, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}
