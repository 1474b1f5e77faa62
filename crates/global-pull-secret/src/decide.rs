//! The decision from the observed facts: merge, deploy, repair, or revert the nodes and remove everything.
//!
//! All state is stored in the objects: the merged Secret records the source of each entry (so that an additional Secret that
//! has become invalid keeps its last good entries), the time of its last change, and the start of a revert. So a controller may
//! die at any point, and another one continues.

mod conditions;
mod content;
mod credentials;
pub(crate) mod nodes;
pub mod probe;
#[cfg(test)]
mod tests;

use std::time::Duration;

use docker_config::merge::{self, InvalidEntries};
use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use crate::facts::{Facts, ObservedSecret, is_managed};
use crate::objects::{self, Syncer};
use crate::plan::{Action, ManagedObject, Nodes, Plan};
use crate::record::Record;
use crate::status;

use content::{Content, Deployed, Desired};

/// The settings that decisions depend on.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The conflict policy, and the protected prefixes.
    pub merge: merge::Policy,
    /// The handling of an additional Secret with an invalid entry.
    pub invalid: InvalidEntries,
    /// The rules of probing registries about new credentials.
    pub probe: probe::Rules,
    /// The roll-out mode.
    pub rollout: Rollout,
    /// The options of the syncer's DaemonSet.
    pub syncer: Syncer,
    /// Time after a change until uninterrupted readiness counts: the syncer observes the change and its probe runs.
    pub settle: Duration,
    /// Maximum time for a node to apply a change before it is reported as degraded.
    pub node_deadline: Duration,
    /// Maximum time for the nodes to revert to the original before everything is removed all the same.
    pub cleanup_deadline: Duration,
}

/// The roll-out mode of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rollout {
    /// The syncers watch the Secret: all nodes at once.
    #[default]
    Immediate,
    /// A Pod is for one revision: the DaemonSet replaces them step by step.
    Rolling,
}

/// A decision in progress.
struct Reconcile<'a> {
    facts: &'a Facts,
    policy: &'a Policy,
    now: Timestamp,
    actions: Vec<Action>,
    unmanaged: Vec<String>,
    next: Option<Timestamp>,
    /// The nodes, if some were not reverted in time.
    lost: Option<Nodes>,
}

/// Decides on the facts observed at `now`.
pub fn decide(facts: &Facts, policy: &Policy, now: Timestamp) -> Plan {
    let mut reconcile =
        Reconcile { facts, policy, now, actions: Vec::new(), unmanaged: Vec::new(), next: None, lost: None };
    let deployed = Deployed::of(facts);
    let content = Content::of(facts, policy, deployed.as_ref(), now);
    if let Some(global) = facts.global.as_deref().filter(|global| !is_managed(&global.metadata)) {
        reconcile.unmanaged.push(format!("secret {}", global.name()));
        return reconcile.finish(content, None, None);
    }
    let record = match &content.desired {
        Desired::Nothing => None,
        Desired::AsItIs => deployed.map(|deployed| deployed.record),
        Desired::Merged { document, sources, .. } => {
            let record = Record { sources: Some(sources.clone()), ..Record::default() };
            Some(reconcile.apply_global(document, record, deployed.as_ref()))
        }
        Desired::Gone { original } => {
            let original = original.clone();
            return reconcile.clean_up(content, original.as_ref(), deployed.as_ref());
        }
    };
    let nodes = record.as_ref().map(|record| {
        reconcile.apply_others(record);
        reconcile.watch_nodes(record)
    });
    reconcile.finish(content, record.as_ref(), nodes)
}

/// The last reported findings on credentials, if they are about the deployed revision.
fn last_findings(facts: &Facts, deployed: Option<&Deployed>) -> Vec<probe::ReportedFinding> {
    let status = facts.status.as_deref().filter(|status| is_managed(&status.metadata));
    let is_current = |status: &&k8s_openapi::api::core::v1::ConfigMap| {
        status::revision_of(status) == deployed.map(|deployed| deployed.record.revision.as_str())
    };
    status.filter(is_current).map(status::findings_of).unwrap_or_default()
}

impl Reconcile<'_> {
    /// Applies the merged Secret if it is not as desired. Only new meaning gets a new revision.
    fn apply_global(
        &mut self,
        document: &docker_config::Document,
        desired: Record,
        deployed: Option<&Deployed>,
    ) -> Record {
        let observed = self.facts.global.as_deref();
        let same = deployed.filter(|deployed| {
            let meant = deployed.document.as_ref().map(docker_config::Document::digest);
            meant == Some(document.digest()) && !deployed.record.revision.is_empty()
        });
        let record = if let Some(deployed) = same {
            Record { revision: deployed.record.revision.clone(), changed_at: deployed.record.changed_at, ..desired }
        } else {
            let last = deployed.map(|deployed| deployed.record.clone()).unwrap_or_default();
            Record { revision: last.next_revision(self.now), changed_at: self.now, ..desired }
        };
        let is_right = observed.is_some_and(|observed| {
            same.is_some_and(|deployed| deployed.record == record)
                && observed.kind == kubernetes::secret::DOCKER_CONFIG_JSON
                && observed.revision.as_deref() == Some(record.revision.as_str())
                && !observed.has_other_data
        });
        if !is_right {
            self.push_global(document, &record, observed);
        }
        record
    }

    fn push_global(&mut self, document: &docker_config::Document, record: &Record, observed: Option<&ObservedSecret>) {
        // The type and immutable content cannot be changed.
        let is_stuck = |observed: &ObservedSecret| {
            observed.is_immutable || observed.kind != kubernetes::secret::DOCKER_CONFIG_JSON
        };
        let replaced = match observed {
            Some(observed) if is_stuck(observed) => {
                let metadata = observed.metadata.clone();
                self.actions.push(delete(ManagedObject::Secret(objects::global_secret(
                    metadata,
                    document,
                    &record.revision,
                ))));
                None
            }
            observed => observed.map(|observed| &observed.metadata),
        };
        let metadata = objects::metadata(names::GLOBAL_PULL_SECRET, record.annotations(), replaced);
        self.actions.push(apply(ManagedObject::Secret(objects::global_secret(metadata, document, &record.revision))));
    }

    /// Applies ServiceAccount, Role, RoleBinding and DaemonSet if they are not as desired.
    fn apply_others(&mut self, record: &Record) {
        let facts = self.facts;
        let revision = Some(record.revision.as_str()).filter(|_| self.policy.rollout == Rollout::Rolling);
        let syncer = &self.policy.syncer;
        self.keep(facts.service_account.as_deref(), objects::service_account, &[], ManagedObject::ServiceAccount);
        self.keep(facts.role.as_deref(), objects::role, &[], ManagedObject::Role);
        // The roleRef of a RoleBinding is immutable.
        let rebound = facts.role_binding.as_deref().filter(|observed| {
            is_managed(&observed.metadata) && observed.role_ref != objects::role_binding(ObjectMeta::default()).role_ref
        });
        if let Some(observed) = rebound {
            self.actions.push(delete(ManagedObject::RoleBinding(observed.clone())));
        }
        let observed = facts.role_binding.as_deref().filter(|_| rebound.is_none());
        self.keep(observed, objects::role_binding, &[], ManagedObject::RoleBinding);
        let make = |metadata| objects::daemon_set(metadata, syncer, revision);
        self.keep(facts.daemon_set.as_deref(), make, objects::POD, |set| ManagedObject::DaemonSet(Box::new(set)));
    }

    fn keep<K>(
        &mut self,
        observed: Option<&K>,
        make: impl Fn(ObjectMeta) -> K,
        exclusive: &[&str],
        managed: fn(K) -> ManagedObject,
    ) where
        K: Serialize + Metadata<Ty = ObjectMeta>,
    {
        let annotations =
            [(names::ANNOTATION_APPLIED.to_owned(), objects::digest(&make(ObjectMeta::default())))].into();
        let desired = make(objects::metadata(names::GLOBAL_SYNCER, annotations, observed.map(K::metadata)));
        let Some(observed) = observed else {
            self.actions.push(apply(managed(desired)));
            return;
        };
        if !is_managed(observed.metadata()) {
            self.unmanaged.push(format!("{} {}", managed(desired).kind(), names::GLOBAL_SYNCER));
            return;
        }
        let is_terminating = observed.metadata().deletion_timestamp.is_some();
        if !is_terminating && objects::is_drifted(&desired, observed, exclusive) {
            self.actions.push(apply(managed(desired)));
        }
    }

    /// Without an additional Secret, reverts the nodes to the original, then removes everything.
    fn clean_up(
        mut self,
        content: Content,
        original: Option<&docker_config::Document>,
        deployed: Option<&Deployed>,
    ) -> Plan {
        let set = self.facts.daemon_set.as_deref().filter(|set| is_managed(&set.metadata));
        let last = deployed.map(|deployed| deployed.record.clone()).unwrap_or_default();
        let Some(set) = set.filter(|set| set.metadata.deletion_timestamp.is_none()) else {
            let going = set.and_then(|set| set.metadata.deletion_timestamp.as_ref()).map(|time| time.0);
            let since = last.reverting.or(going).unwrap_or(self.now);
            let deadline = later(since, self.policy.cleanup_deadline);
            // Its Pods keep their permissions until they are gone.
            if self.facts.pods.is_empty() || self.now >= deadline {
                self.delete_all();
            }
            self.requeue_at(deadline);
            return self.finish(content, None, None);
        };
        let since = last.reverting.unwrap_or(self.now);
        let deadline = later(since, self.policy.cleanup_deadline);
        self.requeue_at(deadline);
        let record = match original {
            Some(original) => {
                let sources = content::sources_of_original(original);
                let desired = Record { sources: Some(sources), reverting: Some(since), ..Record::default() };
                self.apply_global(original, desired, deployed)
            }
            // Without the original there is nothing to revert to: wait for it.
            None => return self.finish(content, Some(&last), None),
        };
        let is_written = self.actions.is_empty();
        self.apply_others(&record);
        let nodes = self.watch_nodes(&record);
        let is_back = nodes.in_sync == nodes.all;
        if is_written && (is_back || self.now >= deadline) {
            self.lost = Some(nodes).filter(|_| !is_back);
            self.actions = vec![delete(ManagedObject::DaemonSet(Box::new(set.clone())))];
            return self.finish(content, None, None);
        }
        self.finish(content, Some(&record), Some(nodes))
    }

    /// Removes the managed objects: first those that need the others.
    fn delete_all(&mut self) {
        let facts = self.facts;
        let objects = [
            facts.role_binding.as_deref().cloned().map(ManagedObject::RoleBinding),
            facts.role.as_deref().cloned().map(ManagedObject::Role),
            facts.service_account.as_deref().cloned().map(ManagedObject::ServiceAccount),
            facts.global.as_deref().map(|global| {
                let metadata = global.metadata.clone();
                ManagedObject::Secret(k8s_openapi::api::core::v1::Secret { metadata, ..Default::default() })
            }),
        ];
        let ours = objects.into_iter().flatten().filter(|managed| is_managed(managed.metadata()));
        self.actions.extend(ours.map(delete));
    }

    fn requeue_at(&mut self, at: Timestamp) {
        if at > self.now {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
        }
    }
}

fn apply(managed: ManagedObject) -> Action {
    Action::Apply(Box::new(managed))
}

fn delete(managed: ManagedObject) -> Action {
    Action::Delete(Box::new(managed))
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
