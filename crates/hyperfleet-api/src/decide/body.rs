//! Parses request bodies member by member into the values that the decisions take.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::excerpt::excerpt;

/// The body of a POST that creates a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Creation {
    /// The id that the client chose, if any.
    pub id: Option<String>,
    /// The kind; empty where it is missing.
    pub kind: String,
    /// The name; empty where it is missing.
    pub name: String,
    /// The desired state.
    pub spec: Option<Map<String, Value>>,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The references to other resources.
    pub references: References,
}

/// The body of a PATCH. Absent members stay as they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// Replaces the whole spec.
    pub spec: Option<Map<String, Value>>,
    /// Replaces all labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Replaces all references.
    pub references: Option<References>,
}

/// References as a client gives them, by type; each has an id and optionally a kind.
pub type References = BTreeMap<String, Vec<Reference>>;

/// One reference as a client gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The target's id; empty where it is missing.
    pub id: String,
    /// The target's kind, if the client gives it.
    pub kind: Option<String>,
}

/// A request body that cannot be accepted. The text is the answer's detail.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// There is no body.
    #[error("the request body is empty")]
    Empty,
    /// The JSON ends too early.
    #[error("the request body ends too early")]
    Truncated,
    /// The body is not JSON.
    #[error("the request body is not valid JSON at line {line}, column {column}")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// Values that the database would change.
    #[error("the request body holds what cannot be stored exactly")]
    Inexact(Vec<InexactMember>),
    /// A member, or the body itself, has the wrong JSON type.
    #[error("field '{path}' must be {expected}")]
    WrongType {
        /// The member's path without indexes and keys, as in HyperFleet's API; empty for the body.
        path: &'static str,
        /// The type that it must have.
        expected: JsonType,
    },
    /// A text is not a time.
    #[error("{0} must be a time such as 2026-01-31T12:00:00.5Z (RFC 3339)")]
    Time(&'static str),
    /// A member that a PATCH does not have.
    #[error("unknown field \"{}\": only spec, labels and references can be changed", excerpt(.0))]
    UnknownMember(String),
    /// A PATCH without any member.
    #[error("at least one field must be provided for update")]
    EmptyPatch,
    /// A forced deletion without a reason.
    #[error("reason is required")]
    ReasonMissing,
    /// A reason of more than 1024 characters.
    #[error("reason must be at most 1024 characters")]
    ReasonTooLong,
}

/// The type that a member must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// A string.
    Text,
    /// An object.
    Object,
    /// An array.
    Array,
    /// A whole number of at most 32 bits.
    Number,
}

/// A value that cannot be stored and returned unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InexactMember {
    /// The member's path, escaped.
    pub path: String,
    /// The cause.
    pub cause: Inexact,
}

/// The cause why a value cannot be stored unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Inexact {
    /// Text columns cannot hold NUL.
    #[error("must not contain a NUL character")]
    Nul,
    /// The number would be rounded.
    #[error("must be a number of at most 64 bits, or a string")]
    Rounded,
}

/// Members whose own rules refuse what cannot be stored.
const RULED: [&str; 4] = ["id", "kind", "labels", "name"];

/// Parses a body as a JSON object and refuses values that cannot be stored and returned unchanged. `null` counts as an empty
/// object, as in HyperFleet's API.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, BodyError> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof if bytes.is_empty() => BodyError::Empty,
        serde_json::error::Category::Eof => BodyError::Truncated,
        _ => BodyError::NotJson { line: error.line(), column: error.column() },
    })?;
    let object = match value {
        Value::Object(object) => object,
        Value::Null => Map::new(),
        _ => return Err(BodyError::WrongType { path: "", expected: JsonType::Object }),
    };
    let mut found = Vec::new();
    for (name, value) in object.iter().filter(|(name, _)| !RULED.contains(&name.as_str())) {
        find_inexact(name, name, value, &mut found);
    }
    if found.is_empty() { Ok(object) } else { Err(BodyError::Inexact(found)) }
}

/// Collects NUL characters, which a database's text cannot hold, and numbers that would be rounded.
fn find_inexact(path: &str, name: &str, value: &Value, found: &mut Vec<InexactMember>) {
    const MAX_FOUND: usize = 10;
    if found.len() >= MAX_FOUND {
        return;
    }
    let mut add = |cause| found.push(InexactMember { path: path.escape_debug().to_string(), cause });
    if name.contains('\0') || value.as_str().is_some_and(|text| text.contains('\0')) {
        add(Inexact::Nul);
    }
    // Beyond 64 bits serde_json falls back to floating point.
    if value.is_f64() && value.as_f64().is_some_and(|number| number.abs() >= 9_223_372_036_854_775_808.0) {
        add(Inexact::Rounded);
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_inexact(&format!("{path}[{index}]"), "", item, found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                find_inexact(&format!("{path}.{name}"), name, member, found);
            }
        }
        _ => {}
    }
}

/// Parses the body of a POST; unknown members are ignored.
pub fn creation(mut body: Map<String, Value>) -> Result<Creation, BodyError> {
    Ok(Creation {
        id: text(&mut body, "id")?,
        kind: text(&mut body, "kind")?.unwrap_or_default(),
        name: text(&mut body, "name")?.unwrap_or_default(),
        spec: members(&mut body, "spec")?,
        labels: labels(&mut body)?.unwrap_or_default(),
        references: references(&mut body)?.unwrap_or_default(),
    })
}

/// Parses the body of a PATCH; unknown members are refused.
pub fn patch(mut body: Map<String, Value>) -> Result<Patch, BodyError> {
    let known = ["spec", "labels", "references"];
    if let Some(unknown) = body.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(BodyError::UnknownMember(unknown.clone()));
    }
    let patch =
        Patch { spec: members(&mut body, "spec")?, labels: labels(&mut body)?, references: references(&mut body)? };
    if patch == Patch::default() { Err(BodyError::EmptyPatch) } else { Ok(patch) }
}

/// Parses the reason in the body of a forced deletion.
pub fn reason(mut body: Map<String, Value>) -> Result<String, BodyError> {
    let reason = text(&mut body, "reason")?.unwrap_or_default();
    match reason.chars().count() {
        0 => Err(BodyError::ReasonMissing),
        1..=1024 => Ok(reason),
        _ => Err(BodyError::ReasonTooLong),
    }
}

/// Takes a member that must be a string; `null` counts as absent. The member is the last segment of the path.
pub(super) fn text(body: &mut Map<String, Value>, path: &'static str) -> Result<Option<String>, BodyError> {
    match take(body, path) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(BodyError::WrongType { path, expected: JsonType::Text }),
    }
}

/// Takes a member that must be an object; `null` counts as absent.
pub(super) fn members(
    body: &mut Map<String, Value>,
    path: &'static str,
) -> Result<Option<Map<String, Value>>, BodyError> {
    take(body, path).map(|value| as_object(value, path)).transpose()
}

/// Takes a member that must be an array; `null` counts as absent.
pub(super) fn items(body: &mut Map<String, Value>, path: &'static str) -> Result<Option<Vec<Value>>, BodyError> {
    take(body, path).map(|value| as_array(value, path)).transpose()
}

/// Returns the members of an item of the array at that path; `null` has none.
pub(super) fn item(value: Value, path: &'static str) -> Result<Map<String, Value>, BodyError> {
    if value.is_null() { Ok(Map::new()) } else { as_object(value, path) }
}

/// Takes the member at the end of a path; `null` counts as absent.
pub(super) fn take(body: &mut Map<String, Value>, path: &'static str) -> Option<Value> {
    let member = path.rsplit('.').next().unwrap_or(path);
    body.remove(member).filter(|value| !value.is_null())
}

fn as_object(value: Value, path: &'static str) -> Result<Map<String, Value>, BodyError> {
    if let Value::Object(members) = value {
        Ok(members)
    } else {
        Err(BodyError::WrongType { path, expected: JsonType::Object })
    }
}

fn as_array(value: Value, path: &'static str) -> Result<Vec<Value>, BodyError> {
    if let Value::Array(items) = value {
        Ok(items)
    } else {
        Err(BodyError::WrongType { path, expected: JsonType::Array })
    }
}

fn labels(body: &mut Map<String, Value>) -> Result<Option<BTreeMap<String, String>>, BodyError> {
    let path = "labels";
    let Some(members) = members(body, path)? else { return Ok(None) };
    let labels = members.into_iter().map(|(key, value)| match value {
        Value::String(value) => Ok((key, value)),
        Value::Null => Ok((key, String::new())),
        _ => Err(BodyError::WrongType { path, expected: JsonType::Text }),
    });
    labels.collect::<Result<_, _>>().map(Some)
}

fn references(body: &mut Map<String, Value>) -> Result<Option<References>, BodyError> {
    let path = "references";
    let Some(members) = members(body, path)? else { return Ok(None) };
    let references = members.into_iter().map(|(ref_type, targets)| {
        let targets = if targets.is_null() { Vec::new() } else { as_array(targets, path)? };
        let targets = targets.into_iter().map(|target| {
            let mut target = item(target, path)?;
            text(&mut target, "references.href")?;
            let id = text(&mut target, "references.id")?.unwrap_or_default();
            Ok(Reference { id, kind: text(&mut target, "references.kind")?.filter(|kind| !kind.is_empty()) })
        });
        Ok((ref_type, targets.collect::<Result<_, BodyError>>()?))
    });
    references.collect::<Result<_, _>>().map(Some)
}

// === impl JsonType ===

impl fmt::Display for JsonType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Text => "a string",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::Number => "a number",
        })
    }
}
