//! The facts of a decision about a credential, and its result.

use std::time::Duration;

use jiff::Timestamp;
use registry_account::contract::{Capabilities, Identities};

use crate::credential::{Credential, Policy, Successor};
use crate::reason::Reason;
use crate::state::{Action, State};

/// The facts of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The credential.
    pub credential: &'a Credential,
    /// The newer credential of its cluster.
    pub successor: Option<&'a Successor>,
    /// The capabilities of its registry.
    pub capabilities: &'a Capabilities,
    /// The rules of its registry.
    pub policy: &'a Policy,
    /// The time.
    pub now: Timestamp,
}

/// The next step of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The outward action; `None` if there is none now.
    pub action: Option<Action>,
    /// The state after the action has succeeded; without an action, the state from now on.
    pub next: State,
    /// The reason.
    pub reason: Reason,
    /// The earliest time of the next decision; `None` together with an action or another state means now, otherwise that
    /// something else has to change first.
    pub not_before: Option<Timestamp>,
}

// === impl Step ===

impl Step {
    pub(super) fn act(action: Action, next: State, reason: Reason) -> Self {
        Self { action: Some(action), next, reason, not_before: None }
    }

    pub(super) fn advance(next: State, reason: Reason) -> Self {
        Self { action: None, next, reason, not_before: None }
    }
}

// === impl Facts ===

impl Facts<'_> {
    pub(super) fn wait(&self, reason: Reason, not_before: Option<Timestamp>) -> Step {
        Step { action: None, next: self.credential.state, reason, not_before }
    }

    /// Returns true for a token of a registry without accounts.
    pub(super) fn is_token(&self) -> bool {
        self.capabilities.identities == Identities::Minted
    }

    /// Waits before the next observation.
    pub(super) fn wait_for(&self, reason: Reason, time: Duration) -> Step {
        self.wait(reason, Some(later(self.now, time)))
    }

    pub(super) fn observe(&self, action: Action, reason: Reason) -> Step {
        Step::act(action, self.credential.state, reason)
    }

    /// Returns true if an observation is no older than that. One from the future, of a clock that is ahead, is none.
    pub(super) fn is_within(&self, at: Timestamp, age: Duration) -> bool {
        at <= self.now && later(at, age) > self.now
    }
}

/// Returns the time that much later.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(jiff::SignedDuration::try_from(by).unwrap_or(jiff::SignedDuration::MAX))
        .unwrap_or(Timestamp::MAX)
}
