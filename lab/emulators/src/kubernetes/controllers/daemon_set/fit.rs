//! True if a Pod may be on a node: its name, its labels, its taints.

use serde::Deserialize;

use super::super::model::{Meta, PodSpec, Toleration};

/// The members of a Node that the controller reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    pub(crate) metadata: Meta,
    pub(crate) spec: NodeSpec,
}

/// The members of a Node's specification that the controller reads.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    taints: Vec<Taint>,
    unschedulable: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Taint {
    key: String,
    value: String,
    effect: String,
}

/// The fit of a Pod and a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It should be there.
    Wanted,
    /// It may stay, but would not be put there.
    Bearable,
    /// It may not be there.
    Unwanted,
}

/// The fit of a Pod of this specification and `node`.
pub(crate) fn fit(pod: &PodSpec, node: &Node) -> Fit {
    let named = pod.node_name.is_empty() || pod.node_name == node.metadata.name;
    let selected = pod.node_selector.iter().all(|(name, value)| node.metadata.labels.get(name) == Some(value));
    if !named || !selected || node.metadata.deletion_timestamp.is_some() {
        return Fit::Unwanted;
    }
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        effect: "NoSchedule".to_owned(),
        value: String::new(),
    };
    let cordon = node.spec.unschedulable.then_some(&cordon);
    let taints = node.spec.taints.iter().chain(cordon);
    let borne = |taint: &Taint| pod.tolerations.iter().any(|toleration| toleration.bears(taint));
    let effects = taints.filter(|taint| !borne(taint)).map(|taint| taint.effect.as_str());
    effects.fold(Fit::Wanted, |fit, effect| match (fit, effect) {
        (Fit::Unwanted, _) | (_, "NoExecute") => Fit::Unwanted,
        (_, "NoSchedule") => Fit::Bearable,
        (fit, _) => fit,
    })
}

impl Toleration {
    fn bears(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_empty() || self.effect == taint.effect;
        let exists = self.operator == "Exists";
        let key = self.key == taint.key || (self.key.is_empty() && exists);
        effect && key && (exists || self.value == taint.value)
    }
}
