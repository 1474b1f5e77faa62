//! From what is seen of the Kubernetes Secret to what is done about it, and why.

use std::collections::BTreeMap;
use std::fmt;

use docker_config::Digest;
use fleet_model::job::Reason;
use fleet_model::{ClusterId, Generation, Owner, names};
use kubernetes::secret::DOCKER_CONFIG_JSON;

/// What should be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Whose Secret it is.
    pub cluster: ClusterId,
    /// Labels that must be on it; others may be too.
    pub labels: BTreeMap<String, String>,
    /// Annotations that must be on it, but for the time of creation.
    pub annotations: BTreeMap<String, String>,
    /// The digest of the bytes that it must hold.
    pub content: Digest,
    /// The edition of the cluster's specification that the content is from, where known.
    pub generation: Option<Generation>,
    /// Take it over from another owner.
    pub adopt: bool,
}

/// What is.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its type.
    pub kind: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The digest of the bytes that it holds.
    pub content: Option<Digest>,
    /// Whether its content can never be changed.
    pub is_immutable: bool,
    /// Whether it is being deleted.
    pub is_terminating: bool,
}

/// What to do, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The step; at most one, as the next one is decided on what is seen then.
    pub step: Step,
    /// How the phase will have ended when the step is done.
    pub reason: Reason,
    /// Why this and nothing else.
    pub because: Vec<Because>,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All is right, or it is not ours to change.
    Nothing,
    /// Create the Secret.
    Create,
    /// Apply it over the one that is there.
    Apply,
    /// Delete the one that is there, then create it: its type cannot be changed.
    Replace,
    /// Delete it.
    Delete,
    /// Wait until it has gone.
    Wait,
}

/// Why a plan is as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// The Secret does not exist.
    Missing,
    /// It is as it should be.
    Right,
    /// It is being deleted and waits for a finalizer.
    Going,
    /// It is not this cluster's.
    Foreign(Owner),
    /// A newer generation has written it.
    NewerGeneration(Generation),
    /// It has another type.
    OtherType(String),
    /// It holds something else.
    OtherContent,
    /// It holds something else and can never be changed.
    Immutable,
    /// These labels are missing or differ.
    Labels(Vec<String>),
    /// These annotations are missing or differ.
    Annotations(Vec<String>),
    /// The Secret is to go.
    Unwanted,
}

/// What to do so that the Secret holds the wanted content.
pub fn decide(wanted: &Wanted, seen: Option<&Seen>) -> Plan {
    let plan = |step, reason, because| Plan { step, reason, because };
    let Some(seen) = seen else { return plan(Step::Create, Reason::KubernetesSecretApplied, vec![Because::Missing]) };
    let owner = Owner::of(&seen.labels);
    if !owner.is(&wanted.cluster) && !wanted.adopt {
        return plan(Step::Nothing, Reason::NameConflict, vec![Because::Foreign(owner)]);
    }
    if seen.is_terminating {
        return plan(Step::Wait, Reason::KubernetesSecretApplied, vec![Because::Going]);
    }
    // Another owner's generations say nothing about ours.
    if let Some(newer) = newer_generation(wanted.generation, seen).filter(|_| owner.is(&wanted.cluster)) {
        return plan(Step::Nothing, Reason::Superseded, vec![Because::NewerGeneration(newer)]);
    }
    if seen.kind != DOCKER_CONFIG_JSON {
        return plan(Step::Replace, Reason::KubernetesSecretApplied, vec![Because::OtherType(seen.kind.clone())]);
    }
    let differs = seen.content != Some(wanted.content);
    if differs && seen.is_immutable {
        return plan(Step::Nothing, Reason::SecretImmutable, vec![Because::Immutable]);
    }
    let mut because: Vec<Because> = differs.then_some(Because::OtherContent).into_iter().collect();
    because.extend(Some(differing(&wanted.labels, &seen.labels)).filter(|keys| !keys.is_empty()).map(Because::Labels));
    because.extend(
        Some(differing(&wanted.annotations, &seen.annotations))
            .filter(|keys| !keys.is_empty())
            .map(Because::Annotations),
    );
    if because.is_empty() {
        return plan(Step::Nothing, Reason::SecretUnchanged, vec![Because::Right]);
    }
    plan(Step::Apply, Reason::KubernetesSecretApplied, because)
}

/// What to do so that the Secret does not exist.
pub fn remove(cluster: &ClusterId, generation: Option<Generation>, seen: Option<&Seen>) -> Plan {
    let plan = |step, reason, because| Plan { step, reason, because: vec![because] };
    let Some(seen) = seen else { return plan(Step::Nothing, Reason::SecretAbsent, Because::Missing) };
    let owner = Owner::of(&seen.labels);
    if !owner.is(cluster) {
        return plan(Step::Nothing, Reason::NameConflict, Because::Foreign(owner));
    }
    match newer_generation(generation, seen) {
        Some(newer) => plan(Step::Nothing, Reason::Superseded, Because::NewerGeneration(newer)),
        None if seen.is_terminating => plan(Step::Wait, Reason::SecretDeleted, Because::Going),
        None => plan(Step::Delete, Reason::SecretDeleted, Because::Unwanted),
    }
}

fn newer_generation(ours: Option<Generation>, seen: &Seen) -> Option<Generation> {
    let recorded = seen.annotations.get(names::ANNOTATION_KUBERNETES_SECRET_GENERATION)?.parse().ok()?;
    ours.is_some_and(|ours| recorded > ours).then_some(recorded)
}

fn differing(wanted: &BTreeMap<String, String>, seen: &BTreeMap<String, String>) -> Vec<String> {
    wanted.iter().filter(|(key, value)| seen.get(*key) != Some(value)).map(|(key, _)| key.clone()).collect()
}

// === impl Plan ===

impl Plan {
    /// Why, in words.
    pub fn why(&self) -> String {
        self.because.iter().map(ToString::to_string).collect::<Vec<_>>().join(", and ")
    }
}

impl fmt::Display for Because {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => formatter.write_str("the Kubernetes Secret does not exist"),
            Self::Right => formatter.write_str("the Kubernetes Secret is as it should be"),
            Self::Going => formatter.write_str("the Kubernetes Secret is being deleted and waits for a finalizer"),
            Self::Foreign(owner) => write!(formatter, "the Kubernetes Secret is not this cluster's: it has {owner}"),
            Self::NewerGeneration(newer) => {
                write!(formatter, "generation {newer}, a newer one, has written the Kubernetes Secret")
            }
            Self::OtherType(kind) => write!(formatter, "the Kubernetes Secret has the type {kind:?}"),
            Self::OtherContent => formatter.write_str("the Kubernetes Secret holds other content"),
            Self::Immutable => formatter.write_str("the Kubernetes Secret holds other content and is immutable"),
            Self::Labels(keys) => write!(formatter, "these labels differ: {}", keys.join(", ")),
            Self::Annotations(keys) => write!(formatter, "these annotations differ: {}", keys.join(", ")),
            Self::Unwanted => formatter.write_str("the Kubernetes Secret is to be deleted"),
        }
    }
}

impl fmt::Display for Step {
    /// The step as a dry run shows it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nothing => "change nothing",
            Self::Create => "create the Kubernetes Secret",
            Self::Apply => "apply the Kubernetes Secret over the one that is there",
            Self::Replace => "delete the Kubernetes Secret and create it anew",
            Self::Delete => "delete the Kubernetes Secret",
            Self::Wait => "wait until the Kubernetes Secret has gone",
        })
    }
}

#[cfg(test)]
mod tests;
