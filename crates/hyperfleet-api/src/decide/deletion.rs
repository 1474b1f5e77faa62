//! Decisions about a resource whose deletion is requested.

use fleet_model::Status;
use fleet_model::names::condition::FINALIZED;

use super::change::{RequestInfo, later};
use crate::entity::{Descriptor, OnParentDelete};
use crate::resource::Resource;

/// The way in which a resource is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is marked for deletion; its adapters clean up, and their last report removes it.
    Finalize,
    /// Nothing has to be cleaned up: it is removed at once.
    Remove,
}

/// A deletion that the state of a resource forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeletionError {
    /// Active children forbid it.
    #[error("Cannot delete {kind} '{id}': active {child_kind}(s) exist")]
    ActiveChildren {
        /// The parent's kind.
        kind: String,
        /// The parent's id.
        id: String,
        /// The kind of the children.
        child_kind: String,
    },
    /// Another resource refers to it.
    #[error(
        "cannot delete {kind} \"{name}\": referenced by {referrer_kind} \"{referrer_name}\" — remove the \
         reference(s) before deleting"
    )]
    Referenced {
        /// The kind of the resource.
        kind: String,
        /// The name of the resource.
        name: String,
        /// The kind of the resource that refers to it.
        referrer_kind: String,
        /// The name of the resource that refers to it.
        referrer_name: String,
    },
    /// Only terminating resources may be removed by force.
    #[error("{kind} '{id}' is not in Finalizing state")]
    NotTerminating {
        /// The kind of the resource.
        kind: String,
        /// The id of the resource.
        id: String,
    },
}

/// Checks that a child does not forbid the deletion of its parent.
pub fn check_child(parent: &Resource, child: &Resource, descriptor: &Descriptor) -> Result<(), DeletionError> {
    if child.is_terminating() || descriptor.on_parent_delete == OnParentDelete::Cascade {
        return Ok(());
    }
    let (kind, id, child_kind) = (parent.kind.clone(), parent.id.clone(), child.kind.clone());
    Err(DeletionError::ActiveChildren { kind, id, child_kind })
}

/// Returns the error for a resource that another one refers to.
pub fn referenced(resource: &Resource, referrer: &Resource) -> DeletionError {
    DeletionError::Referenced {
        kind: resource.kind.clone(),
        name: resource.name.clone(),
        referrer_kind: referrer.kind.clone(),
        referrer_name: referrer.name.clone(),
    }
}

/// Decides how a resource is deleted: kinds with required adapters, and parents of terminating children, are finalized.
pub fn deletion(descriptor: &Descriptor, children_remain: bool) -> Deletion {
    if descriptor.has_adapters() || children_remain { Deletion::Finalize } else { Deletion::Remove }
}

/// Returns the resource marked for deletion, or unchanged if it already was.
pub fn mark_for_deletion(before: &Resource, request: &RequestInfo) -> Resource {
    if before.is_terminating() {
        return before.clone();
    }
    let at = later(before.updated_time, request.time);
    let mut after = before.clone();
    after.generation = after.generation.next();
    after.deleted_time = Some(at);
    after.deleted_by = Some(request.caller.clone());
    after.updated_time = at;
    after.updated_by.clone_from(&request.caller);
    after.state.references.clear();
    after.state.trace.clone_from(&request.trace);
    after
}

/// Returns true once every required adapter has finalized the current generation and no children remain.
pub fn is_finished(resource: &Resource, descriptor: &Descriptor, children_remain: bool) -> bool {
    let finalized = |adapter: &String| {
        resource.state.reports.get(adapter).is_some_and(|report| {
            report.observed_generation == resource.generation && report.status(FINALIZED) == Status::True
        })
    };
    resource.is_terminating() && !children_remain && descriptor.required_adapters.iter().all(finalized)
}

/// Checks that a resource may be removed without waiting for its adapters.
pub fn check_force(resource: &Resource) -> Result<(), DeletionError> {
    if resource.is_terminating() {
        return Ok(());
    }
    Err(DeletionError::NotTerminating { kind: resource.kind.clone(), id: resource.id.clone() })
}
