//! What a request's body says, taken apart member by member.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::problem::{Code, FieldError, Problem, shown};

/// The body of a POST that creates a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Creation {
    /// The id that the client chose, if it did.
    pub id: Option<String>,
    /// The kind; empty where it is missing.
    pub kind: String,
    /// The name; empty where it is missing.
    pub name: String,
    /// What is wanted.
    pub spec: Option<Map<String, Value>>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it refers to.
    pub references: References,
}

/// The body of a PATCH. What is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// Replaces the whole spec.
    pub spec: Option<Map<String, Value>>,
    /// Replaces all labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Replaces all references.
    pub references: Option<References>,
}

/// References as a client gives them: by type, each an id and perhaps a kind.
pub type References = BTreeMap<String, Vec<Reference>>;

/// One reference as a client gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The target's id; empty where it is missing.
    pub id: String,
    /// The target's kind, if the client says it.
    pub kind: Option<String>,
}

/// A body as JSON: an object, without what cannot be stored and given back exactly.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Eof if bytes.is_empty() => "is empty".to_owned(),
            serde_json::error::Category::Eof => "ends too early".to_owned(),
            _ => format!("is not valid JSON at line {}, column {}", error.line(), error.column()),
        };
        Problem::malformed(format!("the request body {what}"))
    })?;
    let Value::Object(object) = value else {
        return Err(Problem::malformed("the request body must be a JSON object"));
    };
    let mut faults = Vec::new();
    for (name, value) in &object {
        inexact(name, name, value, &mut faults);
    }
    if faults.is_empty() {
        return Ok(object);
    }
    Err(Problem::validation("the request body holds what cannot be stored exactly").at(faults))
}

/// Finds NUL characters, which a database's text cannot hold, and numbers that would be rounded.
fn inexact(path: &str, name: &str, value: &Value, faults: &mut Vec<FieldError>) {
    const MOST_FAULTS: usize = 10;
    if faults.len() >= MOST_FAULTS {
        return;
    }
    let mut fault = |message: &str| faults.push(FieldError::new(path.escape_debug().to_string(), "format", message));
    if name.contains('\0') || value.as_str().is_some_and(|text| text.contains('\0')) {
        fault("must not contain a NUL character");
    }
    // Beyond 64 bits serde_json falls back to floating point.
    if value.is_f64() && value.as_f64().is_some_and(|number| number.abs() >= 9_223_372_036_854_775_808.0) {
        fault("must be a number of at most 64 bits, or a string");
    }
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                inexact(&format!("{path}[{index}]"), "", item, faults);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                inexact(&format!("{path}.{name}"), name, member, faults);
            }
        }
        _ => {}
    }
}

/// The body of a POST; members that it does not know are ignored.
pub fn creation(mut body: Map<String, Value>) -> Result<Creation, Problem> {
    Ok(Creation {
        id: text(&mut body, "id")?,
        kind: text(&mut body, "kind")?.unwrap_or_default(),
        name: text(&mut body, "name")?.unwrap_or_default(),
        spec: members(&mut body, "spec")?,
        labels: labels(&mut body)?.unwrap_or_default(),
        references: references(&mut body)?.unwrap_or_default(),
    })
}

/// The body of a PATCH; members that it does not know are refused.
pub fn patch(mut body: Map<String, Value>) -> Result<Patch, Problem> {
    let known = ["spec", "labels", "references"];
    if let Some(unknown) = body.keys().find(|name| !known.contains(&name.as_str())) {
        let detail = format!("unknown field \"{}\": only spec, labels and references can be changed", shown(unknown));
        return Err(Problem::malformed(detail));
    }
    let patch =
        Patch { spec: members(&mut body, "spec")?, labels: labels(&mut body)?, references: references(&mut body)? };
    if patch == Patch::default() {
        return Err(Problem::new(Code::BadRequest, "at least one field must be provided for update"));
    }
    Ok(patch)
}

/// The reason in the body of a forced deletion.
pub fn reason(mut body: Map<String, Value>) -> Result<String, Problem> {
    let reason = text(&mut body, "reason")?.unwrap_or_default();
    let fault = |constraint, message: &str| {
        Problem::validation(message).at(vec![FieldError::new("reason", constraint, message)])
    };
    match reason.chars().count() {
        0 => Err(fault("required", "reason is required")),
        1..=1024 => Ok(reason),
        _ => Err(fault("max_length", "reason must be at most 1024 characters")),
    }
}

/// A member that must be a text; `null` is as good as absent.
pub(super) fn text(body: &mut Map<String, Value>, name: &str) -> Result<Option<String>, Problem> {
    match body.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Problem::malformed(format!("{name} must be a string"))),
    }
}

/// A member that must be an object; `null` is as good as absent.
pub(super) fn members(body: &mut Map<String, Value>, name: &str) -> Result<Option<Map<String, Value>>, Problem> {
    match body.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members)),
        Some(_) => Err(Problem::malformed(format!("{name} must be an object"))),
    }
}

fn labels(body: &mut Map<String, Value>) -> Result<Option<BTreeMap<String, String>>, Problem> {
    let Some(members) = members(body, "labels")? else { return Ok(None) };
    let labels = members.into_iter().map(|(key, value)| match value {
        Value::String(value) => Ok((key, value)),
        _ => Err(Problem::malformed("the value of each label must be a string")),
    });
    labels.collect::<Result<_, _>>().map(Some)
}

fn references(body: &mut Map<String, Value>) -> Result<Option<References>, Problem> {
    let Some(members) = members(body, "references")? else { return Ok(None) };
    let fault = || Problem::malformed("references must be an object of arrays of objects with an id");
    let references = members.into_iter().map(|(ref_type, targets)| {
        let targets = match targets {
            Value::Null => Vec::new(),
            Value::Array(targets) => targets,
            _ => return Err(fault()),
        };
        let targets = targets.into_iter().map(|target| {
            let Value::Object(mut target) = target else { return Err(fault()) };
            let id = text(&mut target, "id")?.unwrap_or_default();
            Ok(Reference { id, kind: text(&mut target, "kind")?.filter(|kind| !kind.is_empty()) })
        });
        Ok((ref_type, targets.collect::<Result<_, Problem>>()?))
    });
    references.collect::<Result<_, _>>().map(Some)
}
