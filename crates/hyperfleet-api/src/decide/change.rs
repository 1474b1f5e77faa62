//! What becomes of a resource when somebody creates it or changes what is wanted.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::body::{Creation, Patch};
use super::rules;
use crate::entity::Descriptor;
use crate::problem::{Code, FieldError, Problem};
use crate::resource::{Resource, State, Target};

/// Who asks, for whom, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occasion {
    /// The caller's identity.
    pub by: String,
    /// Whose resources the caller creates, by tenancy dimension.
    pub tenancy: BTreeMap<String, String>,
    /// The time of the request, in whole microseconds.
    pub at: Timestamp,
}

/// What a new resource is attached to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// Where it is served.
    pub href: String,
    /// Its parent.
    pub owner: Option<Target>,
    /// What it refers to.
    pub references: BTreeMap<String, Vec<Target>>,
}

/// What a PATCH makes of a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Patched {
    /// The same; nothing is written.
    Unchanged,
    /// A new generation.
    Changed(Box<Resource>),
}

/// Checks what can be checked of a new resource without looking at any other.
pub fn check_creation(body: &Creation, descriptor: &Descriptor) -> Result<(), Problem> {
    let fault = |field: &str, constraint, message: String| {
        Err(Problem::validation(message.clone()).at(vec![FieldError::new(field, constraint, message)]))
    };
    if body.kind.is_empty() {
        return fault("kind", "required", "kind is required".to_owned());
    }
    if body.kind != descriptor.kind {
        return fault("kind", "enum", format!("kind must be '{}'", descriptor.kind));
    }
    rules::name(&body.name, descriptor)?;
    if body.spec.is_none() {
        return fault("spec", "required", "spec is required".to_owned());
    }
    if let Some(id) = &body.id {
        rules::id(id)?;
    }
    rules::labels(&body.labels)
}

/// A new resource, before any conclusion about it.
pub fn create(body: Creation, id: String, surroundings: Surroundings, occasion: &Occasion) -> Resource {
    let Surroundings { href, owner, references } = surroundings;
    Resource {
        id,
        kind: body.kind,
        name: body.name,
        href,
        owner,
        spec: body.spec.unwrap_or_default(),
        generation: 1,
        created_time: occasion.at,
        created_by: occasion.by.clone(),
        updated_time: occasion.at,
        updated_by: occasion.by.clone(),
        deleted_time: None,
        deleted_by: None,
        state: State { labels: body.labels, references, tenancy: occasion.tenancy.clone(), ..State::default() },
    }
}

/// Checks what can be checked of a PATCH without looking at any resource.
pub fn check_patch(patch: &Patch) -> Result<(), Problem> {
    patch.labels.as_ref().map_or(Ok(()), rules::labels)
}

/// Checks whether a resource may be changed now, by somebody who has seen `expected`.
pub fn check_changeable(resource: &Resource, expected: Option<i64>) -> Result<(), Problem> {
    if let Some(expected) = expected.filter(|expected| *expected != resource.generation) {
        let Resource { kind, id, generation, .. } = resource;
        return Err(Problem::new(
            Code::PreconditionFailed,
            format!("{kind} '{id}' has generation {generation}, not {expected}: read it again and repeat the change"),
        ));
    }
    if resource.is_deleting() {
        return Err(Problem::state(format!("{} '{}' is marked for deletion", resource.kind, resource.id)));
    }
    Ok(())
}

/// A resource after a PATCH. Spec and labels are replaced as a whole; references that are given always count as a change.
pub fn patch(
    before: &Resource,
    spec: Option<Map<String, Value>>,
    labels: Option<BTreeMap<String, String>>,
    references: Option<BTreeMap<String, Vec<Target>>>,
    occasion: &Occasion,
) -> Patched {
    let mut after = before.clone();
    let referring = references.is_some();
    after.spec = spec.unwrap_or(after.spec);
    after.state.labels = labels.unwrap_or(after.state.labels);
    after.state.references = references.unwrap_or(after.state.references);
    if !referring && after == *before {
        return Patched::Unchanged;
    }
    after.generation += 1;
    after.updated_by.clone_from(&occasion.by);
    after.updated_time = later(before.updated_time, occasion.at);
    Patched::Changed(Box::new(after))
}

/// A time that never lies before the one that it follows, whatever the clock does.
pub fn later(before: Timestamp, now: Timestamp) -> Timestamp {
    before.max(now)
}
