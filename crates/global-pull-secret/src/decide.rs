//! The decision from the observed facts: merge, deploy, repair, or revert the nodes and remove everything.
//!
//! All state is stored in the objects: the merged Secret records the source of each entry (so that an additional Secret that
//! has become invalid keeps its last good entries), the time of its last change, and the start of a revert. So a controller may
//! die at any point, and another one continues.

mod conditions;
mod content;
mod credentials;
mod deployed;
pub mod images;
mod keys_kept;
pub(crate) mod nodes;
mod planned;
mod probe;
mod reconcile;
#[cfg(test)]
mod tests;
mod time;
mod validated;

use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use crate::facts::{Facts, ObservedSecret, is_managed};
use crate::keys::{Change, Keys};
use crate::objects;
use crate::plan::{ManagedObject, Plan};
use crate::policy::{Policy, Rollout};
use crate::record::Record;

use content::{Content, Desired};
use deployed::Deployed;
use reconcile::Reconcile;
use time::later;

pub use planned::{Planned, deployed_keys, planned_keys};

/// Decides on the facts observed at `now`.
pub fn decide(facts: &Facts, policy: &Policy, now: Timestamp) -> Plan {
    let mut reconcile = Reconcile::new(facts, policy, now);
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
            // A revert is a revision of its own: syncers remove their backups before they confirm it.
            let is_same_direction = deployed.record.reverting.is_some() == desired.reverting.is_some();
            meant == Some(document.digest()) && is_same_direction && !deployed.record.revision.is_empty()
        });
        let record = if let Some(deployed) = same {
            let Record { revision, changed_at, change, .. } = deployed.record.clone();
            Record { revision, changed_at, change, ..desired }
        } else {
            let last = deployed.map(|deployed| deployed.record.clone()).unwrap_or_default();
            let change = self.change(document, &desired, deployed);
            Record { revision: last.next_revision(self.now), changed_at: self.now, change, ..desired }
        };
        let is_right = observed.is_some_and(|observed| {
            same.is_some_and(|deployed| deployed.record == record)
                && observed.kind == kubernetes::secret::DOCKER_CONFIG_JSON
                && observed.revision.as_deref() == Some(record.revision.as_str())
                && observed.is_revert == record.reverting.is_some()
                && !observed.has_other_data
        });
        if !is_right {
            self.push_global(document, &record, observed);
        }
        record
    }

    /// The change of keys that a new revision makes for the nodes: to the deployed content, or else to the original. As long as
    /// keys may have been lost, what the earlier change has taken is carried over.
    fn change(
        &self,
        document: &docker_config::Document,
        desired: &Record,
        deployed: Option<&Deployed>,
    ) -> Option<Change> {
        let before = match deployed {
            Some(deployed) => deployed.keys()?,
            None => content::keys_of_original(self.facts)?,
        };
        let after = Keys::of(document, desired.sources.as_ref()?);
        let earlier = deployed.and_then(|deployed| deployed.record.change.as_ref());
        Some(match earlier.filter(|_| self.may_have_lost_keys()) {
            Some(earlier) => Change::between(&earlier.carried(&before, &after), &after),
            None => Change::between(&before, &after),
        })
    }

    fn push_global(&mut self, document: &docker_config::Document, record: &Record, observed: Option<&ObservedSecret>) {
        let make = |metadata| objects::global_secret(metadata, document, &record.revision, record.reverting.is_some());
        // The type and immutable content cannot be changed.
        let is_stuck = |observed: &ObservedSecret| {
            observed.is_immutable || observed.kind != kubernetes::secret::DOCKER_CONFIG_JSON
        };
        let replaced = match observed {
            Some(observed) if is_stuck(observed) => {
                let metadata = observed.metadata.clone();
                self.delete(ManagedObject::Secret(make(metadata)));
                None
            }
            observed => observed.map(|observed| &observed.metadata),
        };
        let metadata = objects::metadata(names::GLOBAL_PULL_SECRET, record.annotations(), replaced);
        self.apply(ManagedObject::Secret(make(metadata)));
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
            self.delete(ManagedObject::RoleBinding(observed.clone()));
        }
        let observed = facts.role_binding.as_deref().filter(|_| rebound.is_none());
        self.keep(observed, objects::role_binding, &[], ManagedObject::RoleBinding);
        self.keep_confirmations();
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
            self.apply(managed(desired));
            return;
        };
        if !is_managed(observed.metadata()) {
            self.unmanaged.push(format!("{} {}", managed(desired).kind(), names::GLOBAL_SYNCER));
            return;
        }
        let is_terminating = observed.metadata().deletion_timestamp.is_some();
        if !is_terminating && objects::is_drifted(&desired, observed, exclusive) {
            self.apply(managed(desired));
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
            self.actions.clear();
            self.delete(ManagedObject::DaemonSet(Box::new(set.clone())));
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
            facts.confirmations.as_deref().cloned().map(ManagedObject::Confirmations),
            facts.global.as_deref().map(|global| {
                let metadata = global.metadata.clone();
                ManagedObject::Secret(k8s_openapi::api::core::v1::Secret { metadata, ..Default::default() })
            }),
        ];
        for managed in objects.into_iter().flatten().filter(|managed| is_managed(managed.metadata())) {
            self.delete(managed);
        }
    }
}
