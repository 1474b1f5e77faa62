//! The roll-out progress of the nodes.

use jiff::Timestamp;

use super::reconcile::Reconcile;
use super::time::later;
use crate::facts::ObservedPod;
use crate::plan::Nodes;
use crate::policy::Rollout;
use crate::record::Record;

impl Reconcile<'_> {
    /// The progress of the nodes; schedules the next reconcile.
    pub(super) fn watch_nodes(&mut self, record: &Record) -> Nodes {
        let nodes = self.nodes(record);
        if nodes.in_sync < nodes.all {
            self.requeue_at(self.settled(record));
            self.requeue_at(later(record.changed_at, self.policy.node_deadline));
        }
        nodes
    }

    /// Returns true if the node deadline has passed.
    pub(super) fn is_late(&self, record: &Record) -> bool {
        self.now >= later(record.changed_at, self.policy.node_deadline)
    }

    fn nodes(&self, record: &Record) -> Nodes {
        let pods: Vec<&ObservedPod> = self.facts.pods.iter().filter(|pod| !pod.is_terminating).collect();
        let mut nodes = Nodes { in_sync: 0, all: self.desired_pods().max(pods.len()), behind: Vec::new() };
        for pod in &pods {
            match self.behind_reason(pod, record) {
                None => nodes.in_sync += 1,
                Some(why) => nodes.behind.push((pod.node.clone().unwrap_or_else(|| pod.name.clone()), why)),
            }
        }
        nodes.behind.sort();
        // The DaemonSet's controller has not observed its newest template yet, or Pods are still to be created.
        let is_observed = self.facts.daemon_set.as_deref().is_some_and(|set| {
            let observed = set.status.as_ref().and_then(|status| status.observed_generation);
            observed >= set.metadata.generation && set.status.is_some()
        });
        if !is_observed && nodes.all == 0 {
            nodes.all = 1;
        }
        nodes
    }

    fn desired_pods(&self) -> usize {
        let status = self.facts.daemon_set.as_deref().and_then(|set| set.status.as_ref());
        status.and_then(|status| usize::try_from(status.desired_number_scheduled).ok()).unwrap_or_default()
    }

    /// The reason for which the node of a Pod does not have the content; `None` if it has.
    fn behind_reason(&self, pod: &ObservedPod, record: &Record) -> Option<String> {
        behind_reason(pod, &record.revision, self.policy.rollout, self.now >= self.settled(record))
    }

    /// Time from which readiness is about the newest content.
    fn settled(&self, record: &Record) -> Timestamp {
        later(record.changed_at, self.policy.settle)
    }
}

/// The reason for which the node of a Pod does not have the revision; `None` if it has. `is_settled` means that readiness is
/// about that revision already, where Pods are not created for one.
pub(crate) fn behind_reason(pod: &ObservedPod, revision: &str, rollout: Rollout, is_settled: bool) -> Option<String> {
    if pod.ready_since.is_none() {
        return Some(pod.failure.clone().unwrap_or_else(|| "NotReady".to_owned()));
    }
    match rollout {
        Rollout::Rolling if pod.revision.as_deref() == Some(revision) => None,
        Rollout::Rolling => Some("RolloutPending".to_owned()),
        Rollout::Immediate if is_settled => None,
        Rollout::Immediate => Some("Applying".to_owned()),
    }
}
