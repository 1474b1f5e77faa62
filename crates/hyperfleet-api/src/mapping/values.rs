//! The variables of expressions: reports and resource as CEL values, with sensitive values redacted.

use std::sync::Arc;

use cel::Value;
use cel::objects::{Key, Map};
use fleet_model::Report;
use serde_json::{Value as Json, json};

use crate::resource::Resource;

/// The text in place of a sensitive value, as in HyperFleet's API.
pub(super) const REDACTED: &str = "***REDACTED***";
/// The value of a key that contains one of these words, in any case, is sensitive: those of HyperFleet's API, whose words of
/// keys (`apikey`, `private_key` and more) all contain `key`.
const SENSITIVE: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "key",
    "credential",
    "auth",
    "bearer",
    "cert",
    "kubeconfig",
    "private",
    "connection",
];

/// Returns the variable `statuses`.
pub(super) fn statuses(reports: &[&Report]) -> Value {
    let statuses = reports.iter().map(|report| {
        let conditions = report.conditions.iter().map(|condition| {
            json!({
                "type": condition.kind,
                "status": condition.status.as_str(),
                "reason": condition.reason.as_deref().unwrap_or_default(),
                "message": condition.message.as_deref().unwrap_or_default(),
                "last_transition_time": condition.last_transition_time.to_string(),
            })
        });
        json!({
            "adapter": report.adapter,
            "observed_generation": report.observed_generation,
            "conditions": conditions.collect::<Vec<_>>(),
            "data": report.data,
            "last_report_time": report.last_report_time.to_string(),
        })
    });
    to_cel(&statuses.collect())
}

/// Returns the variable `resource`. Members without a value are absent, so that `has()` can test for them.
pub(super) fn resource(resource: &Resource) -> Value {
    let mut json = json!({
        "id": resource.id,
        "kind": resource.kind,
        "name": resource.name,
        "labels": resource.state.labels,
        "tenancy": resource.state.tenancy,
        "references": resource.state.references,
        "spec": resource.spec,
        "generation": resource.generation,
        "created_time": resource.created_time.to_string(),
        "created_by": resource.created_by,
        "updated_time": resource.updated_time.to_string(),
        "updated_by": resource.updated_by,
    });
    if let Json::Object(members) = &mut json {
        members.extend(resource.owner.iter().map(|owner| ("owner".to_owned(), json!(owner))));
        members.extend(resource.deleted_time.iter().map(|time| ("deleted_time".to_owned(), json!(time.to_string()))));
        members.extend(resource.deleted_by.iter().map(|who| ("deleted_by".to_owned(), json!(who))));
    }
    to_cel(&json)
}

/// Converts JSON to a CEL value. Whole numbers become `int`, because `uint` does not mix with the literals of
/// expressions: `n + 1` would be an error.
fn to_cel(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(yes) => Value::Bool(*yes),
        Json::Number(number) => {
            number.as_i64().map_or_else(|| number.as_f64().map_or(Value::Null, Value::Float), Value::Int)
        }
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(elements) => Value::List(Arc::new(elements.iter().map(to_cel).collect())),
        Json::Object(members) => {
            let entries = members.iter().map(|(key, value)| (Key::from(key.as_str()), to_cel_under(key, value)));
            Value::Map(Map { map: Arc::new(entries.collect()) })
        }
    }
}

fn to_cel_under(key: &str, value: &Json) -> Value {
    let key = key.to_lowercase();
    if SENSITIVE.iter().any(|word| key.contains(word)) { REDACTED.into() } else { to_cel(value) }
}

/// Converts a CEL value to JSON; `None` if JSON has no such type.
pub(super) fn to_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(yes) => json!(yes),
        Value::Int(number) => json!(number),
        Value::UInt(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::String(text) => json!(text.as_str()),
        Value::List(elements) => Json::Array(elements.iter().map(to_json).collect::<Option<_>>()?),
        Value::Map(map) => {
            let members = map.map.iter().map(|(key, value)| Some((key.to_string(), to_json(value)?)));
            Json::Object(members.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
