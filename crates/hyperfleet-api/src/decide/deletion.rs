//! What becomes of a resource that is to go away.

use super::change::{Occasion, later};
use crate::entity::{Descriptor, OnParentDelete};
use crate::problem::Problem;
use crate::resource::{Resource, Status};

/// What a deletion does to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is marked; its adapters clean up, and their last report removes it.
    Mark,
    /// Nobody has to clean up: it is removed at once.
    Remove,
}

/// Whether living children of that kind forbid the deletion of their parent.
pub fn check_child(parent: &Resource, child: &Resource, descriptor: &Descriptor) -> Result<(), Problem> {
    if child.is_deleting() || descriptor.on_parent_delete == OnParentDelete::Cascade {
        return Ok(());
    }
    let (kind, id) = (&parent.kind, &parent.id);
    Err(Problem::state(format!("Cannot delete {kind} '{id}': active {}(s) exist", child.kind)))
}

/// Whether a resource that refers to it forbids its deletion.
pub fn check_referrer(resource: &Resource, referrer: &Resource) -> Problem {
    Problem::state(format!(
        "cannot delete {} \"{}\": referenced by {} \"{}\" — remove the reference(s) before deleting",
        resource.kind, resource.name, referrer.kind, referrer.name
    ))
}

/// How a resource goes: kinds with required adapters, and parents of what is still going, are marked first.
pub fn deletion(descriptor: &Descriptor, children_remain: bool) -> Deletion {
    if descriptor.has_adapters() || children_remain { Deletion::Mark } else { Deletion::Remove }
}

/// The resource, marked for deletion; as it is if it already was.
pub fn mark(before: &Resource, occasion: &Occasion) -> Resource {
    if before.is_deleting() {
        return before.clone();
    }
    let at = later(before.updated_time, occasion.at);
    let mut after = before.clone();
    after.generation += 1;
    after.deleted_time = Some(at);
    after.deleted_by = Some(occasion.by.clone());
    after.updated_time = at;
    after.updated_by.clone_from(&occasion.by);
    after.state.references.clear();
    after
}

/// Whether every adapter has cleaned up, as of the current generation, and nothing is left below the resource.
pub fn is_finished(resource: &Resource, descriptor: &Descriptor, children_remain: bool) -> bool {
    let finalized = |adapter: &String| {
        resource.state.reports.get(adapter).is_some_and(|report| {
            report.observed_generation == resource.generation && report.status("Finalized") == Status::True
        })
    };
    resource.is_deleting() && !children_remain && descriptor.required_adapters.iter().all(finalized)
}

/// Whether a resource may be removed without waiting for its adapters.
pub fn check_force(resource: &Resource) -> Result<(), Problem> {
    if resource.is_deleting() {
        return Ok(());
    }
    Err(Problem::state(format!("{} '{}' is not in Finalizing state", resource.kind, resource.id)))
}
