//! Custom objects and the schema of their definition: unknown fields, defaults, and faults of values.
//!
//! Patterns, formats and CEL rules are not evaluated.

use serde_json::{Value, json};

use super::super::status::Cause;
use super::super::value::{list, members, text};

/// Fields that every object has, whatever its schema says.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Takes unknown fields out of an object and returns their paths.
pub(crate) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_at(schema, object, "", &mut unknown);
    unknown
}

fn prune_at(schema: &Value, value: &mut Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(found) => found.retain(|name, member| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if path == *name && OF_EVERY_OBJECT.contains(&path.as_str()) {
                return true;
            }
            match of_member(schema, name) {
                Some(schema) => prune_at(schema, member, &path, unknown),
                None if is_open(schema) => {}
                None => {
                    unknown.push(path);
                    return false;
                }
            }
            true
        }),
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_at(schema, item, &format!("{path}[{index}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

/// The schema of an object's member; none if it has none.
fn of_member<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let named = members(schema, "/properties").and_then(|properties| properties.get(name));
    named.or_else(|| schema.get("additionalProperties").filter(|schema| schema.is_object()))
}

/// True if unknown members stay.
fn is_open(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true))
        || schema.get("additionalProperties") == Some(&json!(true))
}

/// Sets the defaults of members that are not there.
pub(crate) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(found) => {
            for (name, schema) in members(schema, "/properties").into_iter().flatten() {
                if let (false, Some(default)) = (found.contains_key(name), schema.get("default")) {
                    found.insert(name.clone(), default.clone());
                }
                if let Some(member) = found.get_mut(name) {
                    fill(schema, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    fill(schema, item);
                }
            }
        }
        _ => {}
    }
}

/// The faults of an object's values.
pub(crate) fn faults(schema: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    judge(schema, object, "", &mut causes);
    let blocking = ["FieldValueRequired", "FieldValueTypeInvalid", "FieldValueTooLong", "FieldValueNotSupported"];
    let blocks = |cause: &Cause| blocking.contains(&cause.reason.as_str());
    if causes.iter().any(blocks) && schema.to_string().contains("x-kubernetes-validations") {
        let message = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                       complete validation";
        causes.push(Cause::invalid("<nil>", &Value::Null, message));
    }
    causes
}

fn judge(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let wanted = text(schema, "/type");
    if value.is_null() || schema.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        return;
    }
    if !wanted.is_empty() && !is_of(wanted, value) {
        let found = kind(value);
        let message = format!("Invalid value: {found:?}: {path} in body must be of type {wanted}: {found:?}");
        causes.push(Cause { reason: "FieldValueTypeInvalid".to_owned(), message, field: path.to_owned() });
        return;
    }
    let choices: Vec<&str> = list(schema, "/enum").iter().filter_map(Value::as_str).collect();
    if let Some(given) = value.as_str().filter(|given| !choices.is_empty() && !choices.contains(given)) {
        causes.push(Cause::unsupported(path, given, &choices));
    }
    causes.extend(bounds(schema, value, path));
    match value {
        Value::Object(found) => {
            for name in list(schema, "/required").iter().filter_map(Value::as_str) {
                if found.get(name).is_none_or(Value::is_null) {
                    causes.push(Cause::required(&joined(path, name), ""));
                }
            }
            for (name, member) in found {
                if let Some(schema) = of_member(schema, name) {
                    judge(schema, member, &joined(path, name), causes);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    judge(schema, item, &format!("{path}[{index}]"), causes);
                }
            }
        }
        _ => {}
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Numbers and texts beyond their bounds.
fn bounds(schema: &Value, value: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        let shown = |name: &str| schema.get(name).unwrap_or(&Value::Null).to_string();
        if bound("minimum").is_some_and(|minimum| number < minimum) {
            let message = format!("{path} in body should be greater than or equal to {}", shown("minimum"));
            causes.push(Cause::invalid(path, value, &message));
        }
        if bound("maximum").is_some_and(|maximum| number > maximum) {
            let message = format!("{path} in body should be less than or equal to {}", shown("maximum"));
            causes.push(Cause::invalid(path, value, &message));
        }
    }
    let maximum = schema.get("maxLength").and_then(Value::as_u64).and_then(|maximum| usize::try_from(maximum).ok());
    if let (Some(given), Some(maximum)) = (value.as_str(), maximum)
        && given.chars().count() > maximum
    {
        causes.push(Cause::too_long(path, maximum));
    }
    causes
}

fn is_of(wanted: &str, value: &Value) -> bool {
    match wanted {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => kind(value) == other,
    }
}

/// The name of a value's type in a schema.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size"], "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "colour": {"type": "string", "default": "blue", "enum": ["blue", "red"]},
                "note": {"type": "string", "maxLength": 3},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "names": {"type": "object", "additionalProperties": {"type": "string"}},
                "parts": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "boolean", "default": true}}}},
            }},
        }})
    }

    #[test]
    fn unknown_fields_are_taken_out() {
        let mut object = json!({"kind": "W", "metadata": {"name": "w"}, "other": 1, "spec": {
            "size": 1, "sise": 2, "free": {"x": 1}, "names": {"n": "1"}, "parts": [{"a": true, "b": 1}],
        }});
        assert_eq!(prune(&schema(), &mut object), ["other", "spec.parts[0].b", "spec.sise"]);
        let kept = json!({"size": 1, "free": {"x": 1}, "names": {"n": "1"}, "parts": [{"a": true}]});
        assert_eq!(object, json!({"kind": "W", "metadata": {"name": "w"}, "spec": kept}));
    }

    #[test]
    fn defaults_are_set_where_their_parents_are() {
        let mut object = json!({"spec": {"size": 1, "parts": [{}, {"a": false}]}});
        fill(&schema(), &mut object);
        assert_eq!(object, json!({"spec": {"size": 1, "colour": "blue", "parts": [{"a": true}, {"a": false}]}}));
        let mut object = json!({});
        fill(&schema(), &mut object);
        assert_eq!(object, json!({}));
    }

    #[rstest::rstest]
    #[case(json!({"size": 1, "colour": "red", "note": "abc"}), "")]
    #[case(json!({}), "spec.size: Required value")]
    #[case(json!({"size": "1"}), "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"")]
    #[case(json!({"size": 0}), "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1")]
    #[case(json!({"size": 10}), "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9")]
    #[case(json!({"size": 1, "colour": "green"}), "spec.colour: Unsupported value: \"green\": supported values: \"blue\", \"red\"")]
    #[case(json!({"size": 1, "note": "abcd"}), "spec.note: Too long: may not be more than 3 bytes")]
    #[case(json!({"size": 1, "names": {"n": 1}}), "spec.names.n: Invalid value: \"number\": spec.names.n in body must be of type string: \"number\"")]
    fn values_are_judged(#[case] spec: Value, #[case] fault: &str) {
        let causes = faults(&schema(), &json!({"spec": spec}));
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        assert_eq!(texts.join("; "), fault);
    }
}
