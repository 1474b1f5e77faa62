//! A hosted cluster in memory: it does what plans say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use docker_config::merge::{self, ConflictPolicy, InvalidEntries, Prefix};
use fleet_model::names;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::DaemonSetStatus;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use secrecy::ExposeSecret as _;

use super::super::decide;
use crate::facts::{Facts, ObservedPod, ObservedSecret};
use crate::finding::Rules;
use crate::objects::Syncer;
use crate::plan::{Action, Event, ManagedObject, Plan};
use crate::policy::{Policy, Rollout};
use crate::record::Record;

pub(super) const ADDITIONAL: &str = names::ADDITIONAL_PULL_SECRET;
/// Seconds that a node needs to apply a change.
pub(super) const APPLIED: i64 = 20;

pub(super) struct World {
    pub(super) facts: Facts,
    pub(super) policy: Policy,
    pub(super) now: Timestamp,
    /// The actions since the last call of `take_done`, such as `apply secret`.
    pub(super) done: Vec<String>,
    pub(super) events: Vec<Event>,
    versions: u64,
    nodes: Vec<&'static str>,
}

/// `quay.io=a b.io=b` as a document; the values stand for passwords.
pub(super) fn document(entries: &str) -> String {
    let entries = entries.split_whitespace().map(|entry| {
        let (key, value) = entry.split_once('=').unwrap();
        format!(r#""{key}":{{"auth":"{}"}}"#, auth(value))
    });
    format!(r#"{{"auths":{{{}}}}}"#, entries.collect::<Vec<_>>().join(","))
}

/// `dTpX` is `u:W`: one letter stands for itself.
fn auth(value: &str) -> String {
    let code = |letter: u8| match letter {
        b'V' => "dTpW",
        b'O' => "dTpP",
        b'P' => "dTpQ",
        b'W' => "dTpX",
        _ => "!",
    };
    value.bytes().map(code).collect()
}

pub(super) fn policy() -> Policy {
    Policy {
        merge: merge::Policy { conflict: ConflictPolicy::AdditionalWins, protected: Vec::new(), max_bytes: 1_048_576 },
        invalid: InvalidEntries::RejectAll,
        probe: Rules::default(),
        rollout: Rollout::Immediate,
        syncer: Syncer {
            image: "syncer:1".to_owned(),
            priority_class: "system-node-critical".to_owned(),
            node_selector: BTreeMap::new(),
            max_unavailable: "10%".to_owned(),
            restart_policy: "always".to_owned(),
        },
        running_images: false,
        node_deadline: Duration::from_mins(10),
        cleanup_deadline: Duration::from_mins(5),
    }
}

impl World {
    /// A world with this original and two nodes.
    pub(super) fn new(original: &str) -> Self {
        let mut world = Self {
            facts: Facts::default(),
            policy: policy(),
            now: Timestamp::from_second(1_000_000).unwrap(),
            done: Vec::new(),
            events: Vec::new(),
            versions: 1,
            nodes: vec!["node-a", "node-b"],
        };
        world.original(&document(original));
        world
    }

    pub(super) fn protecting(mut self, prefix: &str) -> Self {
        self.policy.merge.protected = vec![Prefix::parse(prefix).unwrap()];
        self
    }

    pub(super) fn secret(&mut self, name: &str, text: Option<&str>) -> Arc<ObservedSecret> {
        let data =
            text.map(|text| BTreeMap::from([(".dockerconfigjson".to_owned(), ByteString(text.as_bytes().to_vec()))]));
        let metadata = ObjectMeta { name: Some(name.to_owned()), uid: Some(self.version()), ..ObjectMeta::default() };
        Arc::new(Secret { metadata, data, ..Secret::default() }.into())
    }

    pub(super) fn original(&mut self, text: &str) {
        self.facts.original = Some(self.secret(names::ORIGINAL_PULL_SECRET, Some(text)));
    }

    /// Puts the additional Secret of that name.
    pub(super) fn add(&mut self, name: &str, text: Option<&str>) {
        self.delete(name);
        let secret = self.secret(name, text);
        self.facts.additional.push(secret);
    }

    pub(super) fn additional(&mut self, entries: &str) {
        self.add(ADDITIONAL, Some(&document(entries)));
    }

    pub(super) fn delete(&mut self, name: &str) {
        self.facts.additional.retain(|secret| secret.name() != name);
    }

    pub(super) fn wait(&mut self, seconds: i64) {
        self.now += jiff::SignedDuration::from_secs(seconds);
    }

    fn version(&mut self) -> String {
        self.versions += 1;
        self.versions.to_string()
    }

    /// Decides and does, until there is nothing more to do at this moment.
    pub(super) fn settle(&mut self) -> Plan {
        for _ in 0..20 {
            let mut plan = decide(&self.facts, &self.policy, self.now);
            let actions = std::mem::take(&mut plan.actions);
            self.events.append(&mut plan.events.clone());
            if actions.is_empty() {
                return plan;
            }
            for action in actions {
                let (verb, kind) = action.label();
                self.done.push(format!("{verb} {kind}"));
                self.act(action);
            }
        }
        panic!("it does not come to rest: {:?}", self.done);
    }

    /// Settles, and again when the nodes with a ready Pod have confirmed what they find.
    pub(super) fn settle_nodes(&mut self) -> Plan {
        self.settle();
        self.wait(APPLIED);
        self.confirm(&["node-a", "node-b"]);
        self.settle()
    }

    /// These nodes apply the merged Secret and confirm it, unless their Pods are not ready or are for another revision.
    pub(super) fn confirm(&mut self, nodes: &[&str]) {
        let Facts { global: Some(global), confirmations: Some(confirmations), pods, .. } = &mut self.facts else {
            return;
        };
        let Some(revision) = &global.revision else { return };
        let data = Arc::make_mut(confirmations).data.get_or_insert_default();
        for pod in pods.iter().filter(|pod| pod.ready_since.is_some()) {
            let node = pod.node.clone().unwrap();
            let is_for_it = pod.revision.as_ref().is_none_or(|of_pod| of_pod == revision);
            if is_for_it && nodes.contains(&node.as_str()) {
                data.insert(node, format!("{revision} {}", pod.name));
            }
        }
    }

    pub(super) fn take_done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.done)
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Apply(managed) => self.apply(*managed),
            Action::Delete(managed) => match *managed {
                ManagedObject::Secret(_) => self.facts.global = None,
                ManagedObject::ServiceAccount(_) => self.facts.service_account = None,
                ManagedObject::Role(_) => self.facts.role = None,
                ManagedObject::RoleBinding(_) => self.facts.role_binding = None,
                ManagedObject::Status(_) => self.facts.status = None,
                ManagedObject::Confirmations(_) => self.facts.confirmations = None,
                ManagedObject::DaemonSet(mut set) => {
                    if self.facts.pods.is_empty() {
                        self.facts.daemon_set = None;
                    } else {
                        set.metadata.deletion_timestamp = Some(Time(self.now));
                        self.facts.daemon_set = Some(Arc::new(*set));
                    }
                }
            },
        }
    }

    fn apply(&mut self, managed: ManagedObject) {
        let version = self.version();
        let stamp = |metadata: &mut ObjectMeta, observed: Option<&ObjectMeta>| {
            assert_eq!(
                metadata.uid.as_ref(),
                observed.and_then(|observed| observed.uid.as_ref()),
                "as it was observed"
            );
            assert_eq!(
                metadata.resource_version.as_ref(),
                observed.and_then(|observed| observed.resource_version.as_ref())
            );
            metadata.uid.get_or_insert(version.clone());
            metadata.resource_version = Some(version.clone());
            // An apply leaves no other manager of the fields that are the controller's alone.
            metadata.managed_fields = None;
        };
        let facts = &mut self.facts;
        match managed {
            ManagedObject::Secret(mut secret) => {
                stamp(&mut secret.metadata, facts.global.as_deref().map(|observed| &observed.metadata));
                facts.global = Some(Arc::new(secret.into()));
            }
            ManagedObject::ServiceAccount(mut object) => {
                stamp(&mut object.metadata, facts.service_account.as_deref().map(|observed| &observed.metadata));
                facts.service_account = Some(Arc::new(object));
            }
            ManagedObject::Role(mut object) => {
                stamp(&mut object.metadata, facts.role.as_deref().map(|observed| &observed.metadata));
                facts.role = Some(Arc::new(object));
            }
            ManagedObject::RoleBinding(mut object) => {
                stamp(&mut object.metadata, facts.role_binding.as_deref().map(|observed| &observed.metadata));
                facts.role_binding = Some(Arc::new(object));
            }
            ManagedObject::Confirmations(mut object) => {
                stamp(&mut object.metadata, facts.confirmations.as_deref().map(|observed| &observed.metadata));
                facts.confirmations = Some(Arc::new(object));
            }
            ManagedObject::Status(mut object) => {
                stamp(&mut object.metadata, facts.status.as_deref().map(|observed| &observed.metadata));
                facts.status = Some(Arc::new(object));
            }
            ManagedObject::DaemonSet(mut object) => {
                stamp(&mut object.metadata, facts.daemon_set.as_deref().map(|observed| &observed.metadata));
                let generation = object.metadata.resource_version.as_ref().and_then(|text| text.parse().ok());
                object.metadata.generation = generation;
                let status = DaemonSetStatus {
                    desired_number_scheduled: self.nodes.len().try_into().unwrap(),
                    observed_generation: generation,
                    ..DaemonSetStatus::default()
                };
                object.status = Some(status);
                facts.daemon_set = Some(Arc::new(*object));
                if facts.pods.is_empty() {
                    self.roll(&["node-a", "node-b"]);
                }
            }
        }
    }

    /// Makes the Pods of these nodes anew, ready.
    pub(super) fn roll(&mut self, nodes: &[&str]) {
        let version = self.version();
        let template = self.facts.daemon_set.as_ref().and_then(|set| set.spec.clone()).unwrap_or_default().template;
        let annotations = template.metadata.and_then(|metadata| metadata.annotations).unwrap_or_default();
        for node in nodes {
            self.facts.pods.retain(|pod| pod.node.as_deref() != Some(node));
            self.facts.pods.push(ObservedPod {
                name: format!("pod-{node}-{version}"),
                node: Some((*node).to_owned()),
                ready_since: Some(self.now),
                changed_at: self.now,
                revision: annotations.get(names::ANNOTATION_REVISION).cloned(),
                is_terminating: false,
                failure: None,
            });
        }
    }

    /// The Pod of a node is not ready any more, for this reason.
    pub(super) fn fail(&mut self, node: &str, failure: &str) {
        for pod in self.facts.pods.iter_mut().filter(|pod| pod.node.as_deref() == Some(node)) {
            pod.ready_since = None;
            pod.changed_at = self.now;
            pod.failure = Some(failure.to_owned());
        }
    }

    /// All Pods have ended, as they do when their DaemonSet goes.
    pub(super) fn end_pods(&mut self) {
        if self.facts.daemon_set.as_ref().is_none_or(|set| set.metadata.deletion_timestamp.is_some()) {
            self.facts.pods.clear();
            self.facts.daemon_set = None;
        }
    }

    /// The deployed entries, as [`document`] writes them; `-` for nothing.
    pub(super) fn deployed(&self) -> String {
        let Some(global) = &self.facts.global else { return "-".to_owned() };
        let text = String::from_utf8(global.content.as_ref().unwrap().expose_secret().to_vec()).unwrap();
        let plain = text.trim_start_matches(r#"{"auths":{"#).trim_end_matches("}}").replace("},", "} ");
        let codes = [("dTpW", "V"), ("dTpP", "O"), ("dTpQ", "P"), ("dTpX", "W")];
        let plain = codes.iter().fold(plain, |plain, (code, letter)| plain.replace(code, letter));
        plain
            .replace(r#""auth":"#, "")
            .replace([':', '"', '{', '}'], " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(super) fn record(&self) -> Record {
        Record::of(self.facts.global.as_ref().unwrap())
    }
}

/// The conditions as `Valid=True/Valid`, in order.
pub(super) fn reported(plan: &Plan) -> Vec<String> {
    plan.conditions
        .iter()
        .map(|one| format!("{}={}/{}", one.kind, one.status, one.reason.as_deref().unwrap()))
        .collect()
}

pub(super) fn message<'a>(plan: &'a Plan, kind: &str) -> &'a str {
    plan.conditions.iter().find(|condition| condition.kind == kind).unwrap().message.as_deref().unwrap()
}
