//! Decisions about an apps/v1 `DaemonSet`: one Pod for each fitting node, replaced step by step when the template changes.
//!
//! No `ControllerRevision` objects are kept (`kubectl rollout undo` has nothing to go back to), `maxSurge` is not served, and
//! of a Pod's affinity only the node's name is understood.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::action::{Action, Owner};
use super::model::{Meta, Pod, PodSpec, condition, view};

mod fit;
#[cfg(test)]
mod tests;

pub(crate) use fit::{Fit, Node, fit};

/// The label that says which template a Pod was made from.
const HASH_LABEL: &str = "controller-revision-hash";

/// The members of a `DaemonSet` that the controller reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct DaemonSet {
    metadata: Meta,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    min_ready_seconds: i64,
    update_strategy: Strategy,
    template: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Strategy {
    #[serde(rename = "type")]
    kind: String,
    rolling_update: Rolling,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rolling {
    max_unavailable: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    current_number_scheduled: u32,
    number_misscheduled: u32,
    desired_number_scheduled: u32,
    number_ready: u32,
    observed_generation: i64,
    #[serde(skip_serializing_if = "is_zero")]
    updated_number_scheduled: u32,
    #[serde(skip_serializing_if = "is_zero")]
    number_available: u32,
    #[serde(skip_serializing_if = "is_zero")]
    number_unavailable: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One round of deciding.
struct Round<'a> {
    set: &'a DaemonSet,
    hash: String,
    /// Every node with how the Pod fits it and the Pods that are on it or meant for it, oldest first.
    places: Vec<(&'a Node, Fit, Vec<&'a Pod>)>,
    now: Timestamp,
    actions: Vec<Action>,
}

/// Decides the actions for `set` at `now`; `pods` are those that it controls.
pub(crate) fn decide(set: &Value, nodes: &[Node], pods: &[Pod], now: Timestamp) -> Vec<Action> {
    let Some(set) = view::<DaemonSet>(set) else { return Vec::new() };
    if set.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let template = with_tolerations(&set.spec.template);
    let spec: PodSpec = template.get("spec").and_then(view).unwrap_or_default();
    let mut by_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        by_node.entry(pod.node().unwrap_or_default()).or_default().push(pod);
    }
    for pods in by_node.values_mut() {
        pods.sort_by_key(|pod| (pod.metadata.creation_timestamp, &pod.metadata.name));
    }
    let mut place = |node: &'_ Node| by_node.remove(node.metadata.name.as_str()).unwrap_or_default();
    let places = nodes.iter().map(|node| (node, fit(&spec, node), place(node))).collect();
    let hash = hash(&set.spec.template);
    let mut round = Round { set: &set, hash, places, now, actions: Vec::new() };
    round.manage(&template);
    // Whatever is left has no node any more.
    by_node.values().flatten().for_each(|pod| round.delete(pod));
    if set.spec.update_strategy.kind != "OnDelete" {
        round.roll();
    }
    round.write_status();
    round.actions
}

impl Round<'_> {
    /// One Pod where it should be, none where it may not.
    fn manage(&mut self, template: &Value) {
        let mut actions = Vec::new();
        for (node, fit, pods) in &self.places {
            let live = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
            let (failed, alive): (Vec<&Pod>, Vec<&Pod>) = live.partition(|pod| pod.has_ended());
            match fit {
                Fit::Unwanted => actions.extend(alive.iter().chain(&failed).map(|pod| deletion(pod))),
                Fit::Bearable | Fit::Wanted => {
                    for pod in failed {
                        let Meta { name, namespace, .. } = &pod.metadata;
                        let node = &node.metadata.name;
                        let message =
                            format!("Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it");
                        actions.extend([Action::warning("FailedDaemonPod", message), deletion(pod)]);
                    }
                    actions.extend(alive.iter().skip(1).map(|pod| deletion(pod)));
                    // A Pod that is still going keeps its place, as two of them must not run on one node.
                    if *fit == Fit::Wanted && pods.is_empty() {
                        actions.push(Action::CreatePod(self.new_pod(template, &node.metadata.name)));
                    }
                }
            }
        }
        self.actions.extend(actions);
    }

    /// Deletes Pods of an old template: unavailable ones at once, others as `maxUnavailable` allows.
    fn roll(&mut self) {
        let (mut unavailable, mut broken, mut candidates) = (0_usize, Vec::new(), Vec::new());
        for (_, fit, pods) in &self.places {
            if *fit != Fit::Wanted {
                continue;
            }
            let alive: Vec<_> = pods.iter().copied().filter(|pod| pod.is_active()).collect();
            match alive.as_slice() {
                [pod] if self.is_updated(pod) => unavailable += usize::from(!self.is_available(pod)),
                [pod] if self.is_available(pod) => candidates.push(*pod),
                [pod] => {
                    unavailable += 1;
                    broken.push(*pod);
                }
                _ => unavailable += 1,
            }
        }
        let room = self.max_unavailable().saturating_sub(unavailable);
        let replaced: Vec<_> = broken.into_iter().chain(candidates.into_iter().take(room)).collect();
        for pod in replaced {
            self.delete(pod);
        }
    }

    fn write_status(&mut self) {
        let mut status = Status { observed_generation: self.set.metadata.generation, ..Status::default() };
        for (_, fit, pods) in &self.places {
            if *fit != Fit::Wanted {
                status.number_misscheduled += u32::from(!pods.is_empty());
                continue;
            }
            status.desired_number_scheduled += 1;
            let Some(pod) = pods.iter().find(|pod| pod.metadata.deletion_timestamp.is_none()).or(pods.first()) else {
                continue;
            };
            status.current_number_scheduled += 1;
            status.number_ready += u32::from(pod.is_ready());
            status.number_available += u32::from(self.is_available(pod));
            status.updated_number_scheduled += u32::from(self.is_updated(pod));
        }
        status.number_unavailable = status.desired_number_scheduled.saturating_sub(status.number_available);
        if status.number_ready > status.number_available {
            let pods = self.places.iter().flat_map(|(_, _, pods)| pods);
            let next = pods.filter_map(|pod| self.available_at(pod)).filter(|at| *at > self.now).min();
            self.actions.extend(next.map(Action::Wake));
        }
        if status != self.set.status {
            self.actions.push(Action::UpdateStatus(serde_json::to_value(&status).unwrap_or_default()));
        }
    }

    fn delete(&mut self, pod: &Pod) {
        let action = deletion(pod);
        if pod.metadata.deletion_timestamp.is_none() && !self.actions.contains(&action) {
            self.actions.push(action);
        }
    }

    fn is_updated(&self, pod: &Pod) -> bool {
        pod.metadata.labels.get(HASH_LABEL) == Some(&self.hash)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        self.available_at(pod).is_some_and(|at| at <= self.now)
    }

    fn available_at(&self, pod: &Pod) -> Option<Timestamp> {
        let ready = condition(&pod.status.conditions, "Ready").filter(|ready| ready.status == "True")?;
        let seconds = self.set.spec.min_ready_seconds;
        let since = ready.last_transition_time;
        if seconds == 0 { Some(Timestamp::MIN) } else { since.map(|since| since.plus_seconds(seconds)) }
    }

    fn max_unavailable(&self) -> usize {
        let desired = self.places.iter().filter(|(_, fit, _)| *fit == Fit::Wanted).count();
        let given = &self.set.spec.update_strategy.rolling_update.max_unavailable;
        let percentage = given.as_str().and_then(|text| text.strip_suffix('%')?.parse::<usize>().ok());
        let number = given.as_u64().and_then(|number| usize::try_from(number).ok());
        // At least one, since without surge nothing would ever move.
        percentage.map(|percent| (desired * percent).div_ceil(100)).or(number).unwrap_or(1).max(1)
    }

    fn new_pod(&self, template: &Value, node: &str) -> Value {
        let owner = Owner { api_version: "apps/v1", kind: "DaemonSet", meta: &self.set.metadata };
        let generation = self.set.metadata.generation.to_string();
        let labels = [(HASH_LABEL, self.hash.as_str()), ("pod-template-generation", &generation)];
        let mut pod = owner.pod(template, &labels);
        let field = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
        let terms = json!({ "nodeSelectorTerms": [{ "matchFields": [field] }] });
        let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } });
        if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("affinity".to_owned(), affinity);
        }
        pod
    }
}

fn deletion(pod: &Pod) -> Action {
    Action::DeletePod { name: pod.metadata.name.clone(), uid: pod.metadata.uid.clone() }
}

/// The template with what every `DaemonSet`'s Pod bears of a node's troubles.
fn with_tolerations(template: &Value) -> Value {
    let mut template = template.clone();
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    let tolerations = spec.entry("tolerations").or_insert_with(|| Value::Array(Vec::new()));
    if tolerations.is_null() {
        *tolerations = Value::Array(Vec::new());
    }
    let troubles = [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ];
    if let Some(tolerations) = tolerations.as_array_mut() {
        tolerations.extend(troubles.map(|(trouble, effect)| {
            json!({ "key": format!("node.kubernetes.io/{trouble}"), "operator": "Exists", "effect": effect })
        }));
    }
    template
}

/// Names a template: equal templates have equal names (FNV-1a of its canonical text).
fn hash(template: &Value) -> String {
    let text = template.to_string();
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}
