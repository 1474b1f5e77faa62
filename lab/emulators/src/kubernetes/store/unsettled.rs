//! The follow-up work of changes: garbage collection, finalizers, namespaces, custom kinds.

use std::sync::Arc;

use super::super::meta;
use super::change::{Change, Object};

/// Keeps an owner until its dependents are gone.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// Keeps an owner until its dependents know it no more.
pub(super) const ORPHAN: &str = "orphan";

/// Something that a change has left to be done.
#[derive(Clone, Debug)]
pub(super) enum Unsettled {
    /// After a start: whatever a crash has interrupted.
    Everything,
    /// Its owners may all be gone.
    Dependent(Object, String),
    /// Its dependents are to be let go, or deleted, before it may go itself.
    Owner(Object, String),
    /// This object is gone.
    Gone(Object),
    /// This object is gone, or has other owners now; the earlier ones may have waited for that.
    Released(Object),
    /// It is to have a `ServiceAccount`, or to be emptied and then to go itself.
    Namespace(String),
    /// Its objects have no kind any more.
    Kind(String),
}

impl Unsettled {
    /// The follow-up work of a change.
    pub(super) fn by(change: &Change) -> Vec<Self> {
        let object = &change.object;
        let mut unsettled = Vec::new();
        let released = |before: &&Object| change.deleted || meta::owners(before) != meta::owners(object);
        unsettled.extend(change.before.iter().find(released).cloned().map(Self::Released));
        if change.deleted {
            unsettled.push(Self::Gone(Arc::clone(object)));
            if change.storage == "customresourcedefinitions.apiextensions.k8s.io" {
                unsettled.push(Self::Kind(meta::name(object).to_owned()));
            }
            unsettled.push(Self::Namespace(meta::namespace(object).to_owned()));
        } else {
            unsettled.extend(Self::at_rest(&change.storage, object));
        }
        unsettled
    }

    /// The follow-up work for an object in its current state.
    pub(super) fn at_rest(storage: &str, object: &Object) -> Vec<Self> {
        let mut unsettled = Vec::new();
        if !meta::owners(object).is_empty() {
            unsettled.push(Self::Dependent(Arc::clone(object), storage.to_owned()));
        }
        if meta::has_finalizer(object, FOREGROUND) || meta::has_finalizer(object, ORPHAN) {
            unsettled.push(Self::Owner(Arc::clone(object), storage.to_owned()));
        }
        if storage == "namespaces" {
            unsettled.push(Self::Namespace(meta::name(object).to_owned()));
        }
        unsettled
    }
}
