//! Decisions about creating a resource and changing its desired state.

use std::collections::BTreeMap;

use fleet_model::{Generation, TraceContext};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::body::{Creation, Patch};
use super::rules::{self, RuleError};
use super::same;
use crate::entity::Descriptor;
use crate::resource::{Resource, State, Target};
use crate::tenancy::{Reach, Tenancy};

/// The caller and the time of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// The caller's identity, recorded in `created_by`, `updated_by` and `deleted_by`.
    pub caller: String,
    /// The tenancy of the resources that the caller creates.
    pub tenancy: Tenancy,
    /// The resources that the caller reaches.
    pub reach: Reach,
    /// The time of the request, in whole microseconds.
    pub time: Timestamp,
    /// The caller's permissions about pull secrets.
    pub pull_secrets: PullSecretRights,
    /// The request's span; `None` if it is not traced.
    pub trace: Option<TraceContext>,
}

/// The permissions of a caller about the pull secrets of the resources in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullSecretRights {
    /// May read the content, or learn that a submitted one equals it.
    pub reads: bool,
    /// May choose the destination of content that the request does not contain.
    pub chooses_destination: bool,
}

/// The address, the parent, the references and the tenancy of a new resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relations {
    /// The path under which the resource is served.
    pub href: String,
    /// The parent.
    pub owner: Option<Target>,
    /// The resources that it refers to, by the type of reference.
    pub references: BTreeMap<String, Vec<Target>>,
    /// The tenancy: its parent's, or the caller's.
    pub tenancy: Tenancy,
}

/// The members that a PATCH replaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replacement {
    /// The new spec.
    pub spec: Option<Map<String, Value>>,
    /// The new labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// The new references. They always count as a change.
    pub references: Option<BTreeMap<String, Vec<Target>>>,
    /// True if the request contains a pull secret that replaces the stored one, which counts as a change.
    pub replaces_pull_secret: bool,
}

/// The result of a PATCH.
#[derive(Clone, Debug, PartialEq)]
pub enum Patched {
    /// Nothing changes; nothing is written.
    Unchanged,
    /// A new generation.
    Changed(Box<Resource>),
}

/// A creation or a change that cannot be carried out. The text is the answer's detail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The body has no kind.
    #[error("kind is required")]
    KindMissing,
    /// The body has another kind than the path.
    #[error("kind must be '{0}'")]
    WrongKind(String),
    /// The body has no spec.
    #[error("spec is required")]
    SpecMissing,
    /// A member breaks a rule.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The caller expects another generation.
    #[error("{kind} '{id}' has generation {generation}, not {expected}: read it again and repeat the change")]
    Outdated {
        /// The resource's kind.
        kind: String,
        /// The resource's id.
        id: String,
        /// The resource's generation.
        generation: Generation,
        /// The generation that the caller expects.
        expected: Generation,
    },
    /// The resource is being deleted.
    #[error("{kind} '{id}' is marked for deletion")]
    Terminating {
        /// The resource's kind.
        kind: String,
        /// The resource's id.
        id: String,
    },
}

/// Checks a new resource as far as is possible without any other resource.
pub fn check_creation(body: &Creation, descriptor: &Descriptor) -> Result<(), ChangeError> {
    if body.kind.is_empty() {
        return Err(ChangeError::KindMissing);
    }
    if body.kind != descriptor.kind {
        return Err(ChangeError::WrongKind(descriptor.kind.clone()));
    }
    rules::name(&body.name, descriptor).map_err(RuleError::from)?;
    check_members(body)
}

/// Checks the members of a new resource whose rules are the same for every kind.
pub fn check_members(body: &Creation) -> Result<(), ChangeError> {
    if body.spec.is_none() {
        return Err(ChangeError::SpecMissing);
    }
    if let Some(id) = &body.id {
        rules::id(id)?;
    }
    Ok(rules::labels(&body.labels)?)
}

/// Returns a new resource without conditions.
pub fn create(body: Creation, id: String, relations: Relations, request: &RequestInfo) -> Resource {
    let Relations { href, owner, references, tenancy } = relations;
    Resource {
        id,
        kind: body.kind,
        name: body.name,
        href,
        owner,
        spec: body.spec.unwrap_or_default(),
        generation: Generation::FIRST,
        created_time: request.time,
        created_by: request.caller.clone(),
        updated_time: request.time,
        updated_by: request.caller.clone(),
        deleted_time: None,
        deleted_by: None,
        state: State { labels: body.labels, references, tenancy, trace: request.trace.clone(), ..State::default() },
    }
}

/// Checks a PATCH as far as is possible without its resource.
pub fn check_patch(patch: &Patch) -> Result<(), RuleError> {
    patch.labels.as_ref().map_or(Ok(()), rules::labels)
}

/// Checks that a resource may be changed now by a caller that expects the generation `expected`.
pub fn check_changeable(resource: &Resource, expected: Option<Generation>) -> Result<(), ChangeError> {
    let (kind, id) = (resource.kind.clone(), resource.id.clone());
    if let Some(expected) = expected.filter(|expected| *expected != resource.generation) {
        return Err(ChangeError::Outdated { kind, id, generation: resource.generation, expected });
    }
    if resource.is_terminating() { Err(ChangeError::Terminating { kind, id }) } else { Ok(()) }
}

/// Applies a PATCH. Spec, labels and references are each replaced as a whole.
pub fn patch(before: &Resource, replacement: Replacement, request: &RequestInfo) -> Patched {
    let Replacement { spec, labels, references, replaces_pull_secret } = replacement;
    let mut after = before.clone();
    let changes_spec = spec.as_ref().is_some_and(|spec| !same::members(spec, &before.spec));
    let changes_labels = labels.as_ref().is_some_and(|labels| *labels != before.state.labels);
    if !changes_spec && !changes_labels && references.is_none() && !replaces_pull_secret {
        return Patched::Unchanged;
    }
    after.spec = spec.unwrap_or(after.spec);
    after.state.labels = labels.unwrap_or(after.state.labels);
    after.state.references = references.unwrap_or(after.state.references);
    after.generation = after.generation.next();
    after.updated_by.clone_from(&request.caller);
    after.updated_time = later(before.updated_time, request.time);
    after.state.trace.clone_from(&request.trace);
    Patched::Changed(Box::new(after))
}

/// Returns `now`, or `before` if the clock went backwards.
pub fn later(before: Timestamp, now: Timestamp) -> Timestamp {
    before.max(now)
}
