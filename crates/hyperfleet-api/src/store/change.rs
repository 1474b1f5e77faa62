//! Changes of resources, which the change stream delivers.

use database::Value;
use jiff::Timestamp;

use crate::render;
use crate::resource::Resource;
use crate::tenancy::{self, Tenancy};

/// A change of a resource, as readers of the change stream receive it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The kind of the resource.
    pub resource_kind: String,
    /// The id of the resource.
    pub resource_id: String,
    /// The tenancy of the resource.
    pub tenancy: Tenancy,
    /// The time of the change.
    pub time: Timestamp,
    /// The JSON of the resource after the change; before it if the resource was removed.
    pub object: String,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The resource was created.
    Added,
    /// The resource or one of its reports changed.
    Modified,
    /// The resource was removed.
    Deleted,
}

// === impl Change ===

impl Change {
    /// Returns the change of a resource at that time. After its removal the object is that of before.
    pub(super) fn new(kind: ChangeKind, resource: &Resource, time: Timestamp) -> Self {
        Self {
            kind,
            resource_kind: resource.kind.clone(),
            resource_id: resource.id.clone(),
            tenancy: resource.state.tenancy.clone(),
            time,
            object: render::text(resource),
        }
    }

    pub(super) fn values(self, version: i64) -> Vec<Value> {
        vec![
            Value::Number(version),
            Value::Text(self.resource_kind),
            Value::Text(self.resource_id),
            Value::Text(tenancy::text(&self.tenancy)),
            Value::Text(self.kind.as_str().to_owned()),
            Value::Number(self.time.as_microsecond()),
            Value::Text(self.object),
        ]
    }
}

// === impl ChangeKind ===

impl ChangeKind {
    /// Returns the type of the event in the change stream.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Added, Self::Modified, Self::Deleted].into_iter().find(|kind| kind.as_str() == text)
    }
}
