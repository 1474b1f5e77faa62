//! A decision in progress: the facts, and the actions so far.

use jiff::Timestamp;

use crate::facts::Facts;
use crate::plan::{Action, ManagedObject, Nodes};
use crate::policy::Policy;

/// A decision in progress.
pub(super) struct Reconcile<'a> {
    pub(super) facts: &'a Facts,
    pub(super) policy: &'a Policy,
    pub(super) now: Timestamp,
    pub(super) actions: Vec<Action>,
    pub(super) unmanaged: Vec<String>,
    pub(super) next: Option<Timestamp>,
    /// The revision for which the images of Pods are to be read.
    pub(super) images_for: Option<String>,
    /// The nodes, if some were not reverted in time.
    pub(super) lost: Option<Nodes>,
}

impl<'a> Reconcile<'a> {
    /// A decision without actions.
    pub(super) fn new(facts: &'a Facts, policy: &'a Policy, now: Timestamp) -> Self {
        Self {
            facts,
            policy,
            now,
            actions: Vec::new(),
            unmanaged: Vec::new(),
            next: None,
            images_for: None,
            lost: None,
        }
    }

    pub(super) fn apply(&mut self, managed: ManagedObject) {
        self.actions.push(Action::Apply(Box::new(managed)));
    }

    pub(super) fn delete(&mut self, managed: ManagedObject) {
        self.actions.push(Action::Delete(Box::new(managed)));
    }

    /// Schedules the next reconcile, at the latest at this time.
    pub(super) fn requeue_at(&mut self, at: Timestamp) {
        if at > self.now {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
        }
    }
}
