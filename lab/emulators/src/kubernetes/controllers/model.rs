//! The members of objects that controllers read, and the notation of times and conditions. Unknown members are preserved.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// An instant as Kubernetes writes it: UTC, whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) Timestamp);

/// The metadata of every object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owner_references: Vec<OwnerReference>,
    pub(crate) creation_timestamp: Option<Time>,
    pub(crate) deletion_timestamp: Option<Time>,
    pub(crate) deletion_grace_period_seconds: Option<i64>,
}

/// An owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnerReference {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) controller: bool,
}

/// A condition of a Job or a Pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_probe_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_transition_time: Option<Time>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// A Pod as controllers see it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Pod {
    pub(crate) metadata: Meta,
    pub(crate) spec: PodSpec,
    pub(crate) status: PodStatus,
}

/// The members of a Pod's specification that controllers read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: String,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) affinity: Value,
    pub(crate) restart_policy: String,
}

/// A toleration of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Toleration {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// The members of a Pod's status that controllers read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    pub(crate) phase: String,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) container_statuses: Vec<ContainerStatus>,
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
}

/// The members of a container's status that controllers read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    pub(crate) restart_count: u32,
    pub(crate) state: ContainerState,
}

/// The states of a container that decide something.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerState {
    pub(crate) waiting: Option<Waiting>,
    pub(crate) running: Option<Value>,
    pub(crate) terminated: Option<Terminated>,
}

/// The cause of a waiting container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Waiting {
    pub(crate) reason: String,
}

/// The end of a container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Terminated {
    pub(crate) exit_code: i32,
    pub(crate) finished_at: Option<Time>,
}

/// Reads what is needed of an object; none if it has not the shape that the API server admits.
pub(crate) fn view<T: DeserializeOwned>(object: &Value) -> Option<T> {
    if has_nulls(object) { T::deserialize(&without_nulls(object)).ok() } else { T::deserialize(object).ok() }
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_nulls),
        Value::Array(items) => items.iter().any(has_nulls),
        other => other.is_null(),
    }
}

/// `null` means absent, everywhere.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(name, member)| (name.clone(), without_nulls(member))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// The condition of a type.
pub(crate) fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// True if the condition of a type is `True`.
pub(crate) fn is_true(conditions: &[Condition], kind: &str) -> bool {
    condition(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// Sets a condition; its transition time moves only if the status does.
pub(crate) fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition) {
    match conditions.iter_mut().find(|old| old.kind == new.kind) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time;
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

// === impl Time ===

impl Time {
    /// Whole seconds, as everything that is written.
    pub(crate) fn at(instant: Timestamp) -> Self {
        Self(Timestamp::from_second(instant.as_second()).unwrap_or(instant))
    }

    /// The time that many seconds later, at most the end of time.
    pub(crate) fn plus_seconds(self, seconds: i64) -> Timestamp {
        self.0.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Self::at(self.0).0)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

// === impl Pod ===

impl Pod {
    /// Neither ended nor being deleted.
    pub(crate) fn is_active(&self) -> bool {
        !self.has_ended() && self.metadata.deletion_timestamp.is_none()
    }

    /// Being deleted, and not ended yet.
    pub(crate) fn is_terminating(&self) -> bool {
        !self.has_ended() && self.metadata.deletion_timestamp.is_some()
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    pub(crate) fn is_ready(&self) -> bool {
        is_true(&self.status.conditions, "Ready")
    }

    /// The node it is on, or is meant for: a `DaemonSet`'s Pod names it by an affinity until it is bound.
    pub(crate) fn node(&self) -> Option<&str> {
        if !self.spec.node_name.is_empty() {
            return Some(&self.spec.node_name);
        }
        let path = "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0";
        let field = self.spec.affinity.pointer(path)?;
        let is_name = field.get("key").is_some_and(|key| key == "metadata.name");
        is_name.then(|| field.pointer("/values/0")?.as_str()).flatten()
    }

    /// The best known time of its end.
    pub(crate) fn ended_at(&self) -> Option<Timestamp> {
        let containers = self.status.container_statuses.iter();
        let finished = containers.filter_map(|status| status.state.terminated.as_ref()?.finished_at);
        if let Some(last) = finished.max() {
            return Some(last.0);
        }
        let ready = condition(&self.status.conditions, "Ready").filter(|ready| ready.status == "False");
        let unready = ready.and_then(|ready| ready.last_transition_time);
        if let Some(unready) = unready {
            return Some(unready.0);
        }
        let Meta { deletion_timestamp, deletion_grace_period_seconds, creation_timestamp, .. } = &self.metadata;
        let grace = deletion_grace_period_seconds.unwrap_or_default();
        let asked = deletion_timestamp.map(|until| until.plus_seconds(grace.saturating_neg()));
        asked.or(creation_timestamp.map(|time| time.0))
    }
}

impl Meta {
    /// True if the object of this uid controls it.
    pub(crate) fn is_controlled_by(&self, uid: &str) -> bool {
        self.owner_references.iter().any(|owner| owner.controller && owner.uid == uid)
    }
}
