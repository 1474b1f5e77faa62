//! Decisions of controllers, as values.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::model::Meta;

/// One thing to do for one controlling object, in the order in which it was decided. The first that fails ends the round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// Creates a Pod and records an Event.
    CreatePod(Value),
    /// Deletes a Pod and records an Event.
    DeletePod { name: String, uid: String },
    /// Takes the Job controller's finalizer off a Pod.
    ReleasePod { name: String, uid: String },
    /// Writes the controlling object's status.
    UpdateStatus(Value),
    /// Deletes the controlling object, and what it owns in the background.
    DeleteOwner,
    /// Tells people about the controlling object.
    RecordEvent { kind: EventKind, reason: String, message: String },
    /// Decides again at an instant even if nothing changes until then.
    Wake(Timestamp),
}

/// The two types of Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Normal,
    Warning,
}

/// A controlling object, as its Pods name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) meta: &'a Meta,
}

impl Action {
    pub(crate) fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self::RecordEvent { kind: EventKind::Normal, reason: reason.to_owned(), message: message.into() }
    }

    pub(crate) fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self::RecordEvent { kind: EventKind::Warning, reason: reason.to_owned(), message: message.into() }
    }
}

impl EventKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

impl Owner<'_> {
    /// A Pod made from `template`, with more labels, that belongs to this owner. The API server chooses the rest of its name.
    pub(crate) fn pod(&self, template: &Value, labels: &[(&str, &str)]) -> Value {
        let mut meta = Map::new();
        for member in ["labels", "annotations", "finalizers"] {
            if let Some(value) = template.pointer(&format!("/metadata/{member}")).filter(|value| !value.is_null()) {
                meta.insert(member.to_owned(), value.clone());
            }
        }
        let mut all = meta.get("labels").and_then(Value::as_object).cloned().unwrap_or_default();
        all.extend(labels.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        meta.insert("labels".to_owned(), Value::Object(all));
        meta.insert("generateName".to_owned(), Value::from(format!("{}-", self.meta.name)));
        meta.insert("namespace".to_owned(), Value::from(self.meta.namespace.as_str()));
        let owner = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.meta.name,
            "uid": self.meta.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        });
        meta.insert("ownerReferences".to_owned(), Value::Array(vec![owner]));
        let spec = template.get("spec").cloned().unwrap_or_default();
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec })
    }
}
