//! The roll-out progress of the nodes.

use std::collections::{BTreeMap, BTreeSet};

use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;

use super::reconcile::Reconcile;
use super::time::later;
use crate::facts::{ObservedPod, confirmed_revision, is_managed};
use crate::objects;
use crate::plan::{ManagedObject, Nodes};
use crate::record::Record;

/// Maximum number of confirmations of gone nodes: a ConfigMap has 1 MiB.
const MAX_GONE: usize = 1_000;

impl Reconcile<'_> {
    /// The progress of the nodes; schedules the next reconcile.
    pub(super) fn watch_nodes(&mut self, record: &Record) -> Nodes {
        let mut nodes = self.nodes(record);
        if nodes.in_sync < nodes.all {
            let pods = self.facts.pods.iter().filter(|pod| !pod.is_terminating);
            let behind = pods.filter(|pod| self.behind_reason(pod, record).is_some());
            // A Pod has its time from the change on, or from its own last change: a new one, or one that was ready just now.
            let mut since: Vec<Timestamp> = behind.map(|pod| pod.changed_at.max(record.changed_at)).collect();
            let has_no_pod = nodes.behind.len() < nodes.all - nodes.in_sync;
            since.extend(has_no_pod.then_some(record.changed_at));
            for due in since.into_iter().map(|since| later(since, self.policy.node_deadline)) {
                nodes.is_late |= self.now >= due;
                self.requeue_at(due);
            }
        }
        nodes
    }

    /// Keeps the object for confirmations. Its content is the nodes'; what gone nodes have left is removed once it is much.
    pub(super) fn keep_confirmations(&mut self) {
        let metadata = |observed| objects::metadata(names::GLOBAL_NODES, BTreeMap::new(), observed);
        let desired = match self.facts.confirmations.as_deref() {
            None => objects::confirmations(metadata(None), BTreeMap::new()),
            Some(observed) if !is_managed(&observed.metadata) => {
                self.unmanaged.push(format!("configmap {}", names::GLOBAL_NODES));
                return;
            }
            Some(observed) => {
                let known: BTreeSet<&str> = self.facts.pods.iter().filter_map(|pod| pod.node.as_deref()).collect();
                let (kept, gone): (BTreeMap<_, _>, BTreeMap<_, _>) = observed
                    .data
                    .clone()
                    .unwrap_or_default()
                    .into_iter()
                    .partition(|(node, _)| known.contains(node.as_str()));
                if gone.len() <= MAX_GONE || observed.metadata.deletion_timestamp.is_some() {
                    return;
                }
                objects::confirmations(metadata(Some(&observed.metadata)), kept)
            }
        };
        self.apply(ManagedObject::Confirmations(desired));
    }

    fn nodes(&self, record: &Record) -> Nodes {
        let pods: Vec<&ObservedPod> = self.facts.pods.iter().filter(|pod| !pod.is_terminating).collect();
        let mut nodes =
            Nodes { in_sync: 0, all: self.desired_pods().max(pods.len()), behind: Vec::new(), is_late: false };
        for pod in &pods {
            match self.behind_reason(pod, record) {
                None => nodes.in_sync += 1,
                Some(why) => nodes.behind.push((pod.node.clone().unwrap_or_else(|| pod.name.clone()), why)),
            }
        }
        nodes.behind.sort();
        let set = self.facts.daemon_set.as_deref();
        let observed = set.and_then(|set| set.status.as_ref()?.observed_generation);
        let fewest = match observed {
            // The DaemonSet's controller counts the nodes only after it has created Pods for some: there may be more.
            None => nodes.in_sync + 1,
            // It has not observed the newest template.
            Some(_) if observed < set.and_then(|set| set.metadata.generation) => 1,
            Some(_) => 0,
        };
        nodes.all = nodes.all.max(fewest);
        nodes
    }

    fn desired_pods(&self) -> usize {
        let status = self.facts.daemon_set.as_deref().and_then(|set| set.status.as_ref());
        status.and_then(|status| usize::try_from(status.desired_number_scheduled).ok()).unwrap_or_default()
    }

    fn behind_reason(&self, pod: &ObservedPod, record: &Record) -> Option<String> {
        behind_reason(pod, &record.revision, self.facts.confirmations.as_deref())
    }
}

/// The reason for which the node of a Pod does not have the revision, as far as is known; `None` if it has
/// confirmed it, and its Pod is ready.
pub(crate) fn behind_reason(pod: &ObservedPod, revision: &str, confirmations: Option<&ConfigMap>) -> Option<String> {
    let why = match &pod.revision {
        _ if pod.ready_since.is_none() => pod.failure.as_deref().unwrap_or("NotReady"),
        _ if confirmed_revision(confirmations, pod) == Some(revision) => return None,
        Some(of_pod) if of_pod != revision => "RolloutPending",
        _ => "NotConfirmed",
    };
    Some(why.to_owned())
}
