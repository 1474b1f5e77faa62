//! One step of a claimed row: decide, record, act, record.

use jiff::Timestamp;
use registry_account::contract::{Capabilities, Registry};
use tokio::time::timeout;

use super::act::Act;
use super::clusters::Clusters;
use super::outcome::{ActionError, Effect, Retry};
use super::served::{Served, later};
use super::worker::{RunError, Worker};
use crate::credential::{Credential, Naming, NodesEvidence, ObservedDocument, Proof, Record, Successor};
use crate::decide::budget::MAX_WAIT;
use crate::decide::{self, Facts, Step};
use crate::ledger::{Call, Change, Claimed, Fresh, Outcome, Password, Start, Started};
use crate::reason::Reason;
use crate::state::{Action, Lane, State};

/// A claimed row at work.
struct Work<'a, R> {
    served: &'a Served<R>,
    capabilities: Capabilities,
    claimed: Claimed,
    successor: Option<Successor>,
}

/// The result of a step, before the next one is decided.
struct StepResult {
    action: Option<Action>,
    outcome: Outcome,
    state: State,
    reason: Reason,
    record: Record,
    password: Password,
    instead: Option<Fresh>,
}

/// The place of a row among those that wait.
#[derive(Clone, Copy)]
struct Place {
    lane: Option<Lane>,
    due: Option<Timestamp>,
}

// === impl Work ===

impl<R: Registry> Work<'_, R> {
    fn decide(&self, credential: &Credential, now: Timestamp) -> Step {
        let (capabilities, policy, successor) = (&self.capabilities, &self.served.policy, self.successor.as_ref());
        decide::step(&Facts { credential, successor, capabilities, policy, now })
    }

    /// Returns the place that follows from the next decision.
    fn place(credential: &Credential, step: Step, now: Timestamp) -> Place {
        match step.action {
            Some(action) if action.calls_registry() => {
                Place { lane: Some(decide::lane(credential, action)), due: Some(now) }
            }
            Some(_) => Place { lane: None, due: Some(now) },
            None if step.next != credential.state => Place { lane: None, due: Some(step.not_before.unwrap_or(now)) },
            None => Place { lane: None, due: step.not_before },
        }
    }
}

// === impl Worker ===

impl<R: Registry, C: Clusters> Worker<R, C> {
    /// Carries out the next step of a claimed row.
    pub(super) async fn step(&self, served: &Served<R>, claimed: Claimed) -> Result<(), RunError> {
        let successor = self.ledger.successor(claimed.credential.id).await?;
        let work = Work { served, capabilities: served.registry.capabilities(), claimed, successor };
        let step = work.decide(&work.claimed.credential, self.sources.now());
        match step.action {
            Some(action) => self.act(work, action, step).await,
            None => self.advance(&work, step).await,
        }
    }

    /// Moves a credential to another state, or records the reason for which it waits.
    async fn advance(&self, work: &Work<'_, R>, step: Step) -> Result<(), RunError> {
        let credential = &work.claimed.credential;
        let mut record = credential.record.clone();
        if step.next != credential.state {
            (record.attempts, record.failure, record.retry_at) = (0, None, None);
        }
        if step.next == State::Adopted && credential.state == State::Published {
            let now = self.sources.now();
            record.adopted = record.adopted.or(Some(now));
            if work.served.policy.nodes == NodesEvidence::Renounced {
                let source = "renounced by policy.nodes".to_owned();
                record.evidence.nodes.get_or_insert(Proof { at: now, source });
            }
        }
        let result = StepResult {
            action: None,
            outcome: Outcome::Changed,
            state: step.next,
            reason: step.reason,
            record,
            password: if step.next == State::WaitedOut { Password::Erase } else { Password::Keep },
            instead: None,
        };
        self.finish(work, result).await
    }

    /// Records an action, carries it out, and records what came back.
    async fn act(&self, mut work: Work<'_, R>, action: Action, step: Step) -> Result<(), RunError> {
        let now = self.sources.now();
        let lane = decide::lane(&work.claimed.credential, action);
        let call = action.calls_registry().then(|| Call { lane, per_minute: work.served.rate() });
        let mut record = work.claimed.credential.record.clone();
        match action {
            Action::Create => record.last_create = Some(now),
            Action::Publish => record.last_publish = Some(now),
            _ => {}
        }
        let start = Start { action, reason: step.reason, call, record, actor: &self.name, now };
        match self.ledger.begin(&mut work.claimed, &start).await? {
            Started::Recorded => {}
            Started::NoCall(until) => return Ok(self.ledger.release(&work.claimed, Some(lane), until).await?),
            Started::Overtaken => return Ok(()),
        }
        let act = Act {
            ledger: &self.ledger,
            served: work.served,
            clusters: &self.clusters,
            credential: &work.claimed.credential,
            now,
        };
        let carried_out = timeout(self.lease / 2, act.carry_out(action)).await;
        let result = match carried_out.unwrap_or(Err(ActionError::soon(Reason::Ambiguous))) {
            Ok(effect) => succeeded(action, step, effect),
            Err(ActionError::Abandon) => return Ok(()),
            Err(error) => self.failed(&work, action, &error).await?,
        };
        self.finish(&work, result).await
    }

    /// Returns the result of an action that has not succeeded.
    async fn failed(&self, work: &Work<'_, R>, action: Action, error: &ActionError) -> Result<StepResult, RunError> {
        let (credential, now) = (&work.claimed.credential, self.sources.now());
        let mut result = StepResult {
            action: Some(action),
            outcome: error.outcome(),
            state: credential.state,
            reason: Reason::Retrying,
            record: credential.record.clone(),
            password: Password::Keep,
            instead: None,
        };
        match error {
            ActionError::Retry(retry) => {
                retry.note(&mut result.record, now, self.sources.fraction());
                result.reason = retry.reason;
            }
            ActionError::Exhausted(delay) => {
                self.ledger.block(&credential.registry, later(now, *(delay.min(&MAX_WAIT)))).await?;
                result.reason = Reason::RateLimited;
                if decide::lane(credential, action) == Lane::BreakGlass {
                    Retry::soon(Reason::RateLimited).note(&mut result.record, now, self.sources.fraction());
                }
            }
            ActionError::NameSpent => {
                (result.state, result.reason) = (State::Spent, Reason::NameSpent);
                result.instead = self.instead(work);
            }
            ActionError::GiveUp(reason) => {
                (result.record.given_up, result.reason) = (Some(*reason), *reason);
                result.instead = self.instead(work);
            }
            ActionError::ClusterGone => {
                let naming = Naming::ClusterGone;
                result.record.evidence.document = Some(ObservedDocument { at: now, naming });
                result.reason = Reason::ClusterGone;
            }
            ActionError::Abandon => {}
        }
        Ok(result)
    }

    /// Returns an id and a name for another credential, if a cluster waits for this one. The pool is refilled by itself.
    fn instead(&self, work: &Work<'_, R>) -> Option<Fresh> {
        let credential = &work.claimed.credential;
        let is_wanted = credential.cluster.is_some() && credential.record.order.is_none() && work.successor.is_none();
        is_wanted.then(|| self.sources.fresh(&work.served.prefix)).flatten()
    }

    async fn finish(&self, work: &Work<'_, R>, result: StepResult) -> Result<(), RunError> {
        let now = self.sources.now();
        let StepResult { action, outcome, state, reason, record, password, instead } = result;
        let mut next = work.claimed.credential.clone();
        (next.state, next.record) = (state, record.clone());
        next.has_password = match password {
            Password::Keep => next.has_password,
            Password::Set(_) => true,
            Password::Erase => false,
        };
        let step = work.decide(&next, now);
        let standing = match step.action {
            _ if matches!(outcome, Outcome::Failed | Outcome::Unknown) => reason,
            // It is known after the observation.
            Some(action) if action.observes() => next.reason,
            _ => step.reason,
        };
        let Place { lane, due } = Work::<R>::place(&next, step, now);
        let actor = &self.name;
        let change =
            Change { action, outcome, state, record, reason, standing, password, lane, due, instead, actor, now };
        if !self.ledger.finish(&work.claimed, &change).await? {
            tracing::debug!(credential = %next.id, "another replica has gone on with the credential; nothing was recorded");
        }
        Ok(())
    }
}

fn succeeded(action: Action, step: Step, effect: Effect) -> StepResult {
    let Effect { mut record, password } = effect;
    (record.attempts, record.failure, record.retry_at) = (0, None, None);
    StepResult {
        action: Some(action),
        outcome: Outcome::Succeeded,
        state: step.next,
        reason: step.reason,
        record,
        password,
        instead: None,
    }
}
