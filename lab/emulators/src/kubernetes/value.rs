//! Short ways through JSON documents.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

/// Base64 as Go reads it: the last bits need not be zero.
pub(crate) const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Content in base64 as Go reads it: line ends are skipped.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    if text.contains(['\r', '\n']) { BASE64.decode(text.replace(['\r', '\n'], "")) } else { BASE64.decode(text) }
}

/// The text at `pointer`; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at `pointer`.
pub(crate) fn number(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// The items at `pointer`; none if there is no list.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members at `pointer`, if there is an object.
pub(crate) fn members<'a>(value: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    value.pointer(pointer).and_then(Value::as_object)
}

/// The object at `path`, made if need be.
pub(crate) fn object_at<'a>(mut value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    for name in path {
        value = object(value).entry(*name).or_insert_with(|| Value::Object(Map::new()));
    }
    object(value)
}

/// The value as an object; what it was before is lost if it was none.
pub(crate) fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(members) => members,
        _ => unreachable!("made an object just before"),
    }
}

/// Sets `path` to a value, with all objects around it.
pub(crate) fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if let Some((last, around)) = path.split_last() {
        object_at(value, around).insert((*last).to_owned(), new.into());
    }
}

/// Sets `path` unless something is there.
pub(crate) fn set_default(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if let Some((last, around)) = path.split_last() {
        let members = object_at(value, around);
        if members.get(*last).is_none_or(Value::is_null) {
            members.insert((*last).to_owned(), new.into());
        }
    }
}

/// Takes `path` away; gives what was there.
pub(crate) fn take(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, around) = path.split_last()?;
    let mut value = value;
    for name in around {
        value = value.get_mut(*name)?;
    }
    value.as_object_mut()?.remove(*last)
}

/// Puts at `path` what another document has there, or nothing if that has nothing.
pub(crate) fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    let pointer: String = path.iter().flat_map(|name| ["/", name]).collect();
    match from.pointer(&pointer) {
        Some(found) => set(to, path, found.clone()),
        None => drop(take(to, path)),
    }
}

/// A member of an object, null if it was not there.
pub(crate) fn child<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    object(value).entry(name).or_insert(Value::Null)
}

/// The name of a kind of value in Go's JSON package.
pub(crate) fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
