//! Members of documents that may lack them.

use serde_json::Value;

/// A member of a document; null if there is none.
pub(crate) fn field<'a>(document: &'a Value, name: &str) -> &'a Value {
    document.get(name).unwrap_or(&Value::Null)
}

/// Adds a member to a document that is an object.
pub(crate) fn set(document: &mut Value, name: &str, value: Value) {
    if let Some(members) = document.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}
