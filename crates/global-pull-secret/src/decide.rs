//! What to do, from all that is seen: merge, deploy, repair, or bring the nodes back and remove everything.
//!
//! Nothing is remembered between decisions but what stands in the objects: the merged Secret says which entry is from which
//! Secret (so an additional Secret that has become invalid keeps its last good entries), since when it has its content, and
//! whether the nodes are being brought back. So a controller may die at any point, and another one goes on.

mod asking;
mod content;
pub(crate) mod nodes;
pub mod probe;
mod telling;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use docker_config::merge::{self, InvalidEntries};
use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use crate::facts::{Facts, SecretSeen, is_ours};
use crate::objects::{self, Syncer};
use crate::plan::{Action, Nodes, Plan, Thing};
use crate::record::Record;
use crate::status;

use content::{Content, Deployed, Wanted};

/// What the settings have to say.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Who wins where, and what is protected.
    pub merge: merge::Policy,
    /// What is done about an additional Secret with a bad entry.
    pub invalid: InvalidEntries,
    /// Which registries are asked whether they take new credentials.
    pub probe: probe::Rules,
    /// How a change comes to the nodes.
    pub rollout: Rollout,
    /// How the syncer is run.
    pub syncer: Syncer,
    /// How long after a change readiness that was not lost counts: the syncer sees the change and its probe is asked.
    pub settle: Duration,
    /// How long a node may take before somebody should look.
    pub node_deadline: Duration,
    /// How long the nodes may take to come back to the original before everything is removed all the same.
    pub cleanup_deadline: Duration,
}

/// How a change comes to the nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rollout {
    /// The syncers watch the Secret: all nodes at once.
    #[default]
    Immediate,
    /// A Pod is for one revision: the DaemonSet replaces them step by step.
    Rolling,
}

/// One decision on its way.
struct Round<'a> {
    facts: &'a Facts,
    policy: &'a Policy,
    now: Timestamp,
    actions: Vec<Action>,
    foreign: Vec<String>,
    next: Option<Timestamp>,
    /// Nodes that were not brought back in time.
    lost: Option<Nodes>,
}

/// What to do about all that is seen at `now`.
pub fn decide(facts: &Facts, policy: &Policy, now: Timestamp) -> Plan {
    let mut round = Round { facts, policy, now, actions: Vec::new(), foreign: Vec::new(), next: None, lost: None };
    let deployed = Deployed::of(facts);
    let content = Content::of(facts, policy, deployed.as_ref(), now);
    if let Some(global) = facts.global.as_deref().filter(|global| !is_ours(&global.metadata)) {
        round.foreign.push(format!("secret {}", global.name()));
        return round.tell(content, None, None);
    }
    let record = match &content.wanted {
        Wanted::Nothing => None,
        Wanted::AsItIs => deployed.map(|deployed| deployed.record),
        Wanted::Merged { document, sources, .. } => {
            let record = Record { sources: Some(sources.clone()), ..Record::default() };
            Some(round.put_global(document, record, deployed.as_ref()))
        }
        Wanted::Gone { original } => {
            let original = original.clone();
            return round.clean_up(content, original.as_ref(), deployed.as_ref());
        }
    };
    let nodes = record.as_ref().map(|record| {
        round.put_others(record);
        round.watch_nodes(record)
    });
    round.tell(content, record.as_ref(), nodes)
}

/// What was told last of credentials, where it is about what is deployed.
fn last_told(facts: &Facts, deployed: Option<&Deployed>) -> Vec<probe::Told> {
    let status = facts.status.as_deref().filter(|status| is_ours(&status.metadata));
    let is_current = |status: &&k8s_openapi::api::core::v1::ConfigMap| {
        status::revision_of(status) == deployed.map(|deployed| deployed.record.revision.as_str())
    };
    status.filter(is_current).map(status::told_of).unwrap_or_default()
}

impl Round<'_> {
    /// Puts the merged Secret where it is not as wanted. A new revision comes with new meaning only.
    fn put_global(
        &mut self,
        document: &docker_config::Document,
        wanted: Record,
        deployed: Option<&Deployed>,
    ) -> Record {
        let seen = self.facts.global.as_deref();
        let same = deployed.filter(|deployed| {
            let meant = deployed.document.as_ref().map(docker_config::Document::digest);
            meant == Some(document.digest()) && !deployed.record.revision.is_empty()
        });
        let record = if let Some(deployed) = same {
            Record { revision: deployed.record.revision.clone(), changed_at: deployed.record.changed_at, ..wanted }
        } else {
            let last = deployed.map(|deployed| deployed.record.clone()).unwrap_or_default();
            Record { revision: last.next_revision(self.now), changed_at: self.now, ..wanted }
        };
        let is_right = seen.is_some_and(|seen| {
            same.is_some_and(|deployed| deployed.record == record)
                && seen.kind == kubernetes::secret::DOCKER_CONFIG_JSON
                && seen.revision.as_deref() == Some(record.revision.as_str())
                && !seen.has_other_data
        });
        if !is_right {
            self.write_global(document, &record, seen);
        }
        record
    }

    fn write_global(&mut self, document: &docker_config::Document, record: &Record, seen: Option<&SecretSeen>) {
        // Neither type nor immutable content can be changed.
        let is_stuck = |seen: &SecretSeen| seen.is_immutable || seen.kind != kubernetes::secret::DOCKER_CONFIG_JSON;
        let replaced = match seen {
            Some(seen) if is_stuck(seen) => {
                let metadata = seen.metadata.clone();
                self.actions.push(remove(Thing::Secret(objects::global_secret(metadata, document, &record.revision))));
                None
            }
            seen => seen.map(|seen| &seen.metadata),
        };
        let metadata = objects::metadata(names::GLOBAL_PULL_SECRET, record.annotations(), replaced);
        self.actions.push(put(Thing::Secret(objects::global_secret(metadata, document, &record.revision))));
    }

    /// Puts identity, permission and DaemonSet where they are not as wanted.
    fn put_others(&mut self, record: &Record) {
        let facts = self.facts;
        let revision = Some(record.revision.as_str()).filter(|_| self.policy.rollout == Rollout::Rolling);
        let syncer = &self.policy.syncer;
        self.keep(facts.service_account.as_deref(), objects::service_account, Thing::ServiceAccount);
        self.keep(facts.role.as_deref(), objects::role, Thing::Role);
        // What a RoleBinding is about can never be changed.
        let rebound = facts.role_binding.as_deref().filter(|seen| {
            is_ours(&seen.metadata) && seen.role_ref != objects::role_binding(ObjectMeta::default()).role_ref
        });
        if let Some(seen) = rebound {
            self.actions.push(remove(Thing::RoleBinding(seen.clone())));
        }
        let seen = facts.role_binding.as_deref().filter(|_| rebound.is_none());
        self.keep(seen, objects::role_binding, Thing::RoleBinding);
        let make = |metadata| objects::daemon_set(metadata, syncer, revision);
        self.keep(facts.daemon_set.as_deref(), make, |set| Thing::DaemonSet(Box::new(set)));
    }

    fn keep<K>(&mut self, seen: Option<&K>, make: impl Fn(ObjectMeta) -> K, thing: fn(K) -> Thing)
    where
        K: Serialize + Metadata<Ty = ObjectMeta>,
    {
        let wanted = make(objects::metadata(names::GLOBAL_SYNCER, BTreeMap::new(), seen.map(K::metadata)));
        let Some(seen) = seen else {
            self.actions.push(put(thing(wanted)));
            return;
        };
        if !is_ours(seen.metadata()) {
            self.foreign.push(format!("{} {}", thing(wanted).kind(), names::GLOBAL_SYNCER));
            return;
        }
        if seen.metadata().deletion_timestamp.is_some() {
            return;
        }
        let spec = wanted_value(&wanted);
        let thing = thing(wanted);
        let written = self.facts.written.get(thing.kind());
        let as_written = written
            .is_some_and(|written| written.version == objects::version(seen.metadata()) && written.wanted == spec);
        if !as_written && objects::differs(&spec, seen) {
            self.actions.push(put(thing));
        }
    }

    /// No additional Secret is left: brings the nodes back to the original, then removes everything.
    fn clean_up(
        mut self,
        content: Content,
        original: Option<&docker_config::Document>,
        deployed: Option<&Deployed>,
    ) -> Plan {
        let set = self.facts.daemon_set.as_deref().filter(|set| is_ours(&set.metadata));
        let last = deployed.map(|deployed| deployed.record.clone()).unwrap_or_default();
        let Some(set) = set.filter(|set| set.metadata.deletion_timestamp.is_none()) else {
            let going = set.and_then(|set| set.metadata.deletion_timestamp.as_ref()).map(|time| time.0);
            let since = last.reverting.or(going).unwrap_or(self.now);
            let deadline = later(since, self.policy.cleanup_deadline);
            // Its Pods keep their permission until they are gone.
            if self.facts.pods.is_empty() || self.now >= deadline {
                self.remove_all();
            }
            self.look_again(deadline);
            return self.tell(content, None, None);
        };
        let since = last.reverting.unwrap_or(self.now);
        let deadline = later(since, self.policy.cleanup_deadline);
        self.look_again(deadline);
        let record = match original {
            Some(original) => {
                let sources = content::sources_of_original(original);
                let wanted = Record { sources: Some(sources), reverting: Some(since), ..Record::default() };
                self.put_global(original, wanted, deployed)
            }
            // Without the original there is nothing to go back to: wait for it.
            None => return self.tell(content, Some(&last), None),
        };
        let is_written = self.actions.is_empty();
        self.put_others(&record);
        let nodes = self.watch_nodes(&record);
        let is_back = nodes.in_sync == nodes.all;
        if is_written && (is_back || self.now >= deadline) {
            self.lost = Some(nodes).filter(|_| !is_back);
            self.actions = vec![remove(Thing::DaemonSet(Box::new(set.clone())))];
            return self.tell(content, None, None);
        }
        self.tell(content, Some(&record), Some(nodes))
    }

    /// Removes what is ours: first what needs the rest.
    fn remove_all(&mut self) {
        let facts = self.facts;
        let things = [
            facts.role_binding.as_deref().cloned().map(Thing::RoleBinding),
            facts.role.as_deref().cloned().map(Thing::Role),
            facts.service_account.as_deref().cloned().map(Thing::ServiceAccount),
            facts.global.as_deref().map(|global| {
                let metadata = global.metadata.clone();
                Thing::Secret(k8s_openapi::api::core::v1::Secret { metadata, ..Default::default() })
            }),
        ];
        let ours = things.into_iter().flatten().filter(|thing| is_ours(thing.metadata()));
        self.actions.extend(ours.map(remove));
    }

    fn look_again(&mut self, at: Timestamp) {
        if at > self.now {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
        }
    }
}

fn put(thing: Thing) -> Action {
    Action::Put(Box::new(thing))
}

fn remove(thing: Thing) -> Action {
    Action::Remove(Box::new(thing))
}

/// An object as it is wanted, apart from what the server gives it.
pub fn wanted_value(object: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace"));
        let label = serde_json::json!({ names::LABEL_KUBERNETES_MANAGED_BY: names::GLOBAL_MANAGER });
        metadata.insert("labels".to_owned(), label);
    }
    value
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
