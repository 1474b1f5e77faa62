//! One write as its caller describes it: the object, the part, the manager of its fields.

use jiff::Timestamp;
use serde_json::Value;

use super::super::fields::Schema;
use super::super::fields::managed::{Writer, note};
use super::super::resources::Resource;

/// The manager that writes of the server's own controllers are noted under.
const INTERNAL_MANAGER: &str = "kube-controller-manager";

/// One write: to what, by whom, when.
#[derive(Clone, Debug)]
pub(crate) struct Writing<'a> {
    pub(crate) resource: &'a Resource,
    /// Empty for cluster-wide objects.
    pub(crate) namespace: &'a str,
    /// Empty where the object to create says it.
    pub(crate) name: &'a str,
    pub(crate) part: Part,
    /// True if the caller has sent the whole object, and not a patch.
    pub(crate) whole: bool,
    pub(crate) manager: Manager,
    /// Everything is checked and answered, nothing stored.
    pub(crate) dry_run: bool,
    pub(crate) now: Timestamp,
}

/// The part of an object that a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but the status, where that is a subresource.
    Main,
    /// The status only.
    Status,
}

/// Under which name fields are managed, and how that name came to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Manager {
    /// A write changes fields and then manages them.
    Update(String),
    /// The write has done its own bookkeeping.
    Applied,
}

impl<'a> Writing<'a> {
    /// A write of the server's own.
    pub(crate) fn internal(resource: &'a Resource, namespace: &'a str, name: &'a str, now: Timestamp) -> Self {
        let manager = Manager::Update(INTERNAL_MANAGER.to_owned());
        let namespace = if resource.is_namespaced() { namespace } else { "" };
        Self { resource, namespace, name, part: Part::Main, whole: true, manager, dry_run: false, now }
    }

    /// Does the bookkeeping for plain writes.
    pub(super) fn note(&self, old: &Value, new: &mut Value) {
        let Manager::Update(name) = &self.manager else { return };
        let writer = Writer {
            name: name.clone(),
            apply: false,
            api_version: self.resource.api_version(),
            subresource: if self.part == Part::Status { "status" } else { "" },
        };
        note(Schema::of(self.resource), old, new, &writer, self.now);
    }
}
