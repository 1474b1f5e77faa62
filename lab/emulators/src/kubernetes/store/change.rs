//! Objects, their keys, and the changes of them.

use std::sync::Arc;

use serde_json::Value;

/// An immutable object.
pub(crate) type Object = Arc<Value>;

/// Namespace, which is empty for cluster-wide objects, and name.
pub(crate) type Key = (String, String);

/// The namespaces that are there from the start and cannot be deleted.
pub(crate) const FIRST_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Something that was written.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) storage: String,
    pub(crate) before: Option<Object>,
    /// As it is now, or was last.
    pub(crate) object: Object,
    pub(crate) deleted: bool,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// As it is now, or was last.
    pub(crate) object: Object,
}

// === impl Change ===

impl Change {
    pub(crate) fn event(&self) -> Event {
        Event { object: Arc::clone(&self.object) }
    }
}
