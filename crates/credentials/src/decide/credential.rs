//! The next step of one credential.

use super::facts::{Facts, Step, later};
use super::{retire, token};
use crate::credential::{Credential, Naming, NodesEvidence};
use crate::reason::Reason;
use crate::state::{Action, Lane, State};

/// Returns the next step of a credential.
pub fn step(facts: &Facts<'_>) -> Step {
    let Facts { credential, now, .. } = *facts;
    let record = &credential.record;
    if credential.state.is_final() {
        return facts.wait(Reason::Done, None);
    }
    if let Some(retry) = record.retry_at.filter(|retry| *retry > now) {
        return facts.wait(record.failure.unwrap_or(Reason::Retrying), Some(retry));
    }
    match credential.state {
        State::Retiring => retire::retiring(facts),
        State::Dead => retire::dead(facts),
        _ if facts.is_token() => token::step(facts).unwrap_or_else(|| token::until_renewal(facts, forward(facts))),
        _ => retire::begin(facts).unwrap_or_else(|| forward(facts)),
    }
}

/// Returns the lane of an action for a credential.
pub fn lane(credential: &Credential, action: Action) -> Lane {
    if credential.record.order.as_ref().is_some_and(|order| order.break_glass) {
        return Lane::BreakGlass;
    }
    if action.observes() {
        return Lane::Audit;
    }
    match (&credential.cluster, credential.replaces) {
        _ if credential.state == State::Retiring => Lane::Rotation,
        (None, _) => Lane::Refill,
        // The renewal of a token that its cluster uses.
        (Some(_), None) if credential.may_be_named() => Lane::Rotation,
        (Some(_), None) => Lane::NewCluster,
        (Some(_), Some(_)) => Lane::Rotation,
    }
}

/// The way to adoption.
fn forward(facts: &Facts<'_>) -> Step {
    let credential = facts.credential;
    match credential.state {
        State::Reserved => Step::act(Action::Create, State::Created, Reason::ToCreate),
        State::Created if facts.is_token() => Step::act(Action::Probe, State::Probed, Reason::ToProbe),
        State::Created => Step::act(Action::Permit, State::Permitted, Reason::ToPermit),
        State::Permitted => {
            let next = if credential.cluster.is_some() { State::Probed } else { State::Pooled };
            Step::act(Action::Probe, next, Reason::ToProbe)
        }
        State::Pooled if credential.cluster.is_none() => facts.wait(Reason::InPool, None),
        State::Pooled => Step::advance(State::Probed, Reason::ToPublish),
        State::Probed if credential.record.held => look_slowly(facts, Reason::Held),
        State::Probed if !is_probed_lately(facts) => facts.observe(Action::Probe, Reason::ToProbe),
        State::Probed => Step::act(Action::Publish, State::Published, Reason::ToPublish),
        State::Published => adoption(facts),
        _ => in_use(facts),
    }
}

/// Returns true if a probe is fresh: a credential may have waited in the pool, while its permission was removed.
fn is_probed_lately(facts: &Facts<'_>) -> bool {
    facts.credential.record.probed.is_some_and(|probed| facts.is_within(probed, facts.policy.fresh))
}

/// The evidence of adoption, part by part.
fn adoption(facts: &Facts<'_>) -> Step {
    let Facts { credential, capabilities, policy, now, .. } = *facts;
    let (record, evidence) = (&credential.record, &credential.record.evidence);
    let displaced = evidence.document.as_ref().is_some_and(|document| document.naming == Naming::NotNamed);
    let is_late = record.published.is_some_and(|published| later(published, policy.deadline) <= now);
    let has_nodes = evidence.nodes.is_some() || policy.nodes == NodesEvidence::Renounced;
    let late = |reason, named| if is_late { named } else { reason };
    if displaced || evidence.report.is_none() || !has_nodes {
        let reason = match (displaced, &evidence.report) {
            (true, _) => Reason::Displaced,
            (false, None) => late(Reason::AwaitingReport, Reason::NeverReported),
            (false, Some(_)) => late(Reason::AwaitingNodes, Reason::NodesNeverReported),
        };
        return match evidence.observed.filter(|observed| facts.is_within(*observed, policy.interval)) {
            Some(observed) => facts.wait(reason, Some(later(observed, policy.interval))),
            None => facts.observe(Action::ObserveAdoption, reason),
        };
    }
    // That a token is pulled with decides nothing: the one before it ends by itself.
    if evidence.first_pull.is_none() && !facts.is_token() {
        if !capabilities.usage_log {
            return facts.wait_for(Reason::NoUsageLog, policy.resync);
        }
        let reason = late(Reason::AwaitingFirstPull, Reason::NeverPulled);
        return match evidence.usage.as_ref().filter(|usage| facts.is_within(usage.at, policy.interval)) {
            Some(usage) => facts.wait(reason, Some(later(usage.at, policy.interval))),
            None => facts.observe(Action::ObserveUsage, reason),
        };
    }
    Step::advance(State::Adopted, Reason::InUse)
}

fn in_use(facts: &Facts<'_>) -> Step {
    let naming = facts.credential.record.evidence.document.as_ref().map(|observed| observed.naming);
    let reason = match (facts.successor, naming) {
        (Some(_), _) => Reason::AwaitingSuccessor,
        (None, Some(Naming::NotNamed)) => Reason::Displaced,
        (None, _) => Reason::InUse,
    };
    look_slowly(facts, reason)
}

/// Observes the pull secret of a cluster at a long interval, so that the end of the cluster is noticed.
fn look_slowly(facts: &Facts<'_>, reason: Reason) -> Step {
    let Facts { credential, policy, .. } = *facts;
    let document = credential.record.evidence.document.as_ref();
    match document.filter(|observed| facts.is_within(observed.at, policy.resync)) {
        Some(observed) => facts.wait(reason, Some(later(observed.at, policy.resync))),
        None => facts.observe(Action::ObserveDocument, reason),
    }
}
