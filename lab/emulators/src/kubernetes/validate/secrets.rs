//! Secrets and `ConfigMaps`. No refusal quotes their content.

use serde_json::{Value, json};

use super::super::status::Cause;
use super::super::value::{decode_base64, go_kind, members, text};

/// The most that the values may hold together.
const BYTES_MAXIMUM: usize = 1024 * 1024;

/// The longest key.
const KEY_MAXIMUM: usize = 253;

/// The text in place of a value.
const REDACTED: &str = "<secret contents redacted>";

/// Types that need certain keys.
const REQUIRED: [(&str, &[&str]); 4] = [
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
];

pub(crate) fn secret(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut bytes = 0;
    let kind = text(object, "/type");
    let data = members(object, "/data");
    for (key, value) in data.into_iter().flatten() {
        causes.extend(key_wrong(key).map(|message| Cause::invalid(&format!("data[{key}]"), &json!(key), message)));
        bytes += value.as_str().and_then(|value| decode_base64(value).ok()).map_or(0, |value| value.len());
    }
    if bytes > BYTES_MAXIMUM {
        causes.push(Cause::too_long("data", BYTES_MAXIMUM));
    }
    for key in REQUIRED.iter().filter(|row| row.0 == kind).flat_map(|row| row.1) {
        let field = format!("data[{key}]");
        match data.and_then(|data| data.get(*key)) {
            None => causes.push(Cause::required(&field, "")),
            Some(value) if kind.starts_with("kubernetes.io/dockerc") => {
                causes.extend(json_wrong(value).map(|wrong| redacted(&field, &wrong)));
            }
            Some(_) => {}
        }
    }
    let account = "kubernetes.io/service-account.name";
    let annotations = members(object, "/metadata/annotations");
    if kind == "kubernetes.io/service-account-token"
        && annotations.is_none_or(|annotations| annotations.get(account).is_none_or(|name| name == ""))
    {
        causes.push(Cause::required(&format!("metadata.annotations[{account}]"), ""));
    }
    if kind == "kubernetes.io/basic-auth"
        && !["username", "password"].iter().any(|key| data.is_some_and(|data| data.contains_key(*key)))
    {
        causes.push(Cause::required("data[username]", ""));
        causes.push(Cause::required("data[password]", ""));
    }
    causes
}

pub(crate) fn updated(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if text(old, "/type") != text(new, "/type") {
        causes.push(Cause::invalid("type", &json!(text(new, "/type")), "field is immutable"));
    }
    causes.extend(immutable_updated(old, new, &["data"]));
    causes
}

/// An object that has said that it is immutable changes no more.
pub(crate) fn immutable_updated(old: &Value, new: &Value, contents: &[&str]) -> Vec<Cause> {
    if old.get("immutable") != Some(&json!(true)) {
        return Vec::new();
    }
    let forbidden = |field: &str| Cause::forbidden(field, "field is immutable when `immutable` is set");
    let changed = contents.iter().filter(|member| old.get(**member) != new.get(**member));
    let mut causes: Vec<Cause> = changed.map(|member| forbidden(member)).collect();
    if new.get("immutable") != Some(&json!(true)) {
        causes.insert(0, forbidden("immutable"));
    }
    causes
}

pub(crate) fn config_map(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut bytes = 0;
    for member in ["data", "binaryData"] {
        for (key, value) in members(object, &format!("/{member}")).into_iter().flatten() {
            let field = format!("{member}[{key}]");
            causes.extend(key_wrong(key).map(|message| Cause::invalid(&field, &json!(key), message)));
            if member == "data" && members(object, "/binaryData").is_some_and(|other| other.contains_key(key)) {
                let message = "duplicate of key present in binaryData";
                causes.push(Cause::invalid(&field, &json!(key), message));
            }
            bytes += value.as_str().unwrap_or_default().len();
        }
    }
    if bytes > BYTES_MAXIMUM {
        causes.push(Cause::too_long("[]", BYTES_MAXIMUM));
    }
    causes
}

fn redacted(field: &str, wrong: &str) -> Cause {
    Cause {
        reason: "FieldValueInvalid".to_owned(),
        message: format!("Invalid value: {REDACTED:?}: {wrong}"),
        field: field.to_owned(),
    }
}

/// The cause why a value is no JSON object, without any of it.
fn json_wrong(value: &Value) -> Option<String> {
    let content = decode_base64(value.as_str().unwrap_or_default()).unwrap_or_default();
    match serde_json::from_slice::<Value>(&content) {
        // Go reads null as a map without entries.
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => {
            Some(format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", go_kind(&other)))
        }
        Err(error) if error.is_eof() => Some("unexpected end of JSON input".to_owned()),
        Err(error) => Some(format!("invalid character at line {}, column {}", error.line(), error.column())),
    }
}

fn key_wrong(key: &str) -> Option<&'static str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.len() > KEY_MAXIMUM {
        return Some("must be no more than 253 characters");
    }
    if key == "." {
        return Some("must not be '.'");
    }
    if key.starts_with("..") {
        return Some("must not start with '..'");
    }
    (key.is_empty() || !key.bytes().all(allowed)).then_some(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or \
         'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    )
}
