//! References to the document's components.

use serde_json::{Value, json};

/// A reference to a component of that section.
pub(super) fn component(section: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{section}/{name}") })
}

/// A reference to a schema.
pub(super) fn schema(name: &str) -> Value {
    component("schemas", name)
}
