//! Decides, from the observed Kubernetes Secret, which step to take and why.

use std::collections::BTreeMap;
use std::fmt;

use docker_config::Digest;
use fleet_model::job::Reason;
use fleet_model::{Generation, Incarnation, Owner, names};
use kubernetes::secret::DOCKER_CONFIG_JSON;

use super::Identity;

/// The desired Secret.
#[derive(Clone, Debug)]
pub struct Desired {
    /// Cluster that it belongs to.
    pub identity: Identity,
    /// Labels that must be on it; others may be too.
    pub labels: BTreeMap<String, String>,
    /// Annotations that must be on it, but for the time of creation.
    pub annotations: BTreeMap<String, String>,
    /// Digest of the bytes that it must hold.
    pub content: Digest,
    /// Take over a Secret of another owner or of another incarnation of the cluster.
    pub adopt: bool,
}

/// The observed Secret.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its type.
    pub kind: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Digest of the bytes that it holds.
    pub content: Option<Digest>,
    /// True if its content can never be changed.
    pub is_immutable: bool,
    /// True if it is being deleted.
    pub is_terminating: bool,
}

/// The step to take, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// At most one step: the next one is decided on what is observed then.
    pub step: Step,
    /// Reason of the phase once the step is done.
    pub reason: Reason,
    /// Causes of the step.
    pub causes: Vec<Cause>,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The Secret is up to date, or must not be changed.
    Nothing,
    /// Create the Secret.
    Create,
    /// Apply it over the existing one.
    Apply,
    /// Delete the existing one, then create it: its type cannot be changed.
    Replace,
    /// Delete it.
    Delete,
    /// Wait until it is deleted.
    Wait,
}

/// Cause of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The Secret does not exist.
    Missing,
    /// It is up to date.
    UpToDate,
    /// It is terminating and waits for a finalizer.
    Terminating,
    /// It is not managed for this cluster.
    Unmanaged(Owner),
    /// It belongs to another incarnation of the cluster.
    OtherIncarnation(Incarnation),
    /// A newer generation has written it.
    NewerGeneration(Generation),
    /// It has another type.
    OtherType(String),
    /// It holds other content.
    OtherContent,
    /// It holds other content and can never be changed.
    Immutable,
    /// These labels are missing or differ.
    Labels(Vec<String>),
    /// These annotations are missing or differ.
    Annotations(Vec<String>),
    /// The Secret is to be deleted.
    DeletionRequested,
}

/// Plans the step after which the Secret holds the desired content.
pub fn decide(desired: &Desired, observed: Option<&Observed>) -> Plan {
    let plan = |step, reason, causes| Plan { step, reason, causes };
    let Some(observed) = observed else {
        return plan(Step::Create, Reason::KubernetesSecretApplied, vec![Cause::Missing]);
    };
    let owner = Owner::of(&observed.labels);
    let is_owner = owner.is(&desired.identity.cluster);
    if !is_owner && !desired.adopt {
        return plan(Step::Nothing, Reason::NameConflict, vec![Cause::Unmanaged(owner)]);
    }
    let other = observed.incarnation().filter(|other| desired.identity.differs_from(Some(other)));
    if let Some(other) = other.clone().filter(|_| is_owner && !desired.adopt) {
        return plan(Step::Nothing, Reason::DifferentIncarnation, vec![Cause::OtherIncarnation(other)]);
    }
    if observed.is_terminating {
        return plan(Step::Wait, Reason::KubernetesSecretApplied, vec![Cause::Terminating]);
    }
    // The generations of another owner or incarnation are not comparable.
    let newer = desired.identity.newer_generation(observed.generation());
    if let Some(newer) = newer.filter(|_| is_owner && other.is_none()) {
        return plan(Step::Nothing, Reason::Superseded, vec![Cause::NewerGeneration(newer)]);
    }
    if observed.kind != DOCKER_CONFIG_JSON {
        return plan(Step::Replace, Reason::KubernetesSecretApplied, vec![Cause::OtherType(observed.kind.clone())]);
    }
    let differs = observed.content != Some(desired.content);
    if differs && observed.is_immutable {
        return plan(Step::Nothing, Reason::SecretImmutable, vec![Cause::Immutable]);
    }
    let mut causes: Vec<Cause> = differs.then_some(Cause::OtherContent).into_iter().collect();
    causes
        .extend(Some(differing(&desired.labels, &observed.labels)).filter(|keys| !keys.is_empty()).map(Cause::Labels));
    causes.extend(
        Some(differing(&desired.annotations, &observed.annotations))
            .filter(|keys| !keys.is_empty())
            .map(Cause::Annotations),
    );
    if causes.is_empty() {
        return plan(Step::Nothing, Reason::SecretUnchanged, vec![Cause::UpToDate]);
    }
    plan(Step::Apply, Reason::KubernetesSecretApplied, causes)
}

/// Plans the step after which no Secret of this cluster exists. A Secret that is not this cluster's is left alone.
pub fn remove(identity: &Identity, observed: Option<&Observed>) -> Plan {
    let plan = |step, reason, cause| Plan { step, reason, causes: vec![cause] };
    let Some(observed) = observed else { return plan(Step::Nothing, Reason::SecretAbsent, Cause::Missing) };
    let owner = Owner::of(&observed.labels);
    if !owner.is(&identity.cluster) {
        return plan(Step::Nothing, Reason::UnmanagedSecretKept, Cause::Unmanaged(owner));
    }
    if let Some(other) = observed.incarnation().filter(|other| identity.differs_from(Some(other))) {
        return plan(Step::Nothing, Reason::UnmanagedSecretKept, Cause::OtherIncarnation(other));
    }
    match identity.newer_generation(observed.generation()) {
        Some(newer) => plan(Step::Nothing, Reason::Superseded, Cause::NewerGeneration(newer)),
        None if observed.is_terminating => plan(Step::Wait, Reason::SecretDeleted, Cause::Terminating),
        None => plan(Step::Delete, Reason::SecretDeleted, Cause::DeletionRequested),
    }
}

fn differing(desired: &BTreeMap<String, String>, observed: &BTreeMap<String, String>) -> Vec<String> {
    desired.iter().filter(|(key, value)| observed.get(*key) != Some(value)).map(|(key, _)| key.clone()).collect()
}

// === impl Observed ===

impl Observed {
    /// The generation that has written the Secret.
    fn generation(&self) -> Option<Generation> {
        self.annotations.get(names::ANNOTATION_KUBERNETES_SECRET_GENERATION)?.parse().ok()
    }

    /// The incarnation of the cluster that the Secret was written for.
    fn incarnation(&self) -> Option<Incarnation> {
        self.annotations.get(names::ANNOTATION_KUBERNETES_SECRET_INCARNATION)?.parse().ok()
    }
}

// === impl Plan ===

impl Plan {
    /// The causes as text.
    pub fn why(&self) -> String {
        self.causes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", and ")
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => formatter.write_str("the Kubernetes Secret does not exist"),
            Self::UpToDate => formatter.write_str("the Kubernetes Secret is up to date"),
            Self::Terminating => formatter.write_str("the Kubernetes Secret is terminating and waits for a finalizer"),
            Self::Unmanaged(owner) => {
                write!(formatter, "the Kubernetes Secret is not managed for this cluster: it has {owner}")
            }
            Self::OtherIncarnation(other) => write!(
                formatter,
                "the Kubernetes Secret belongs to an earlier cluster with this id, which was created at {other}"
            ),
            Self::NewerGeneration(newer) => {
                write!(formatter, "generation {newer}, a newer one, has written the Kubernetes Secret")
            }
            Self::OtherType(kind) => write!(formatter, "the Kubernetes Secret has the type {kind:?}"),
            Self::OtherContent => formatter.write_str("the Kubernetes Secret holds other content"),
            Self::Immutable => formatter.write_str("the Kubernetes Secret holds other content and is immutable"),
            Self::Labels(keys) => write!(formatter, "these labels differ: {}", keys.join(", ")),
            Self::Annotations(keys) => write!(formatter, "these annotations differ: {}", keys.join(", ")),
            Self::DeletionRequested => formatter.write_str("the Kubernetes Secret is to be deleted"),
        }
    }
}

impl fmt::Display for Step {
    /// The step as a dry run shows it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nothing => "change nothing",
            Self::Create => "create the Kubernetes Secret",
            Self::Apply => "apply the Kubernetes Secret",
            Self::Replace => "delete the Kubernetes Secret and create it again",
            Self::Delete => "delete the Kubernetes Secret",
            Self::Wait => "wait until the Kubernetes Secret is deleted",
        })
    }
}

#[cfg(test)]
mod tests;
