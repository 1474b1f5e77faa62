//! Finds credentials in a spec where they would be stored and returned in clear.
//!
//! The commonest mistake is the right document in the wrong member. A request with one is refused; the answer names the path
//! and never the value.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use crate::excerpt::excerpt;

/// The members of `spec.pullSecret`, each with its type.
const MEMBERS: [(&str, Type); 6] = [
    ("data", Type::Any),
    ("secretRef", Type::Object),
    ("secretName", Type::Text),
    ("k8sSecretName", Type::Text),
    ("replicationPolicy", Type::Text),
    ("folder", Type::Text),
];

/// Maximum number of encodings within each other that are undone: JSON in base64 in JSON.
const MAX_NESTING: usize = 4;

/// The type of a member; null is allowed for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Any,
    Object,
    Text,
}

/// A spec that is refused. The text names no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// `spec.pullSecret` is not an object.
    #[error("must be an object with `data` or `secretRef`")]
    NotAnObject,
    /// `spec.pullSecret` has a member that has no meaning.
    #[error(
        "has a member that is none of data, secretRef, secretName, k8sSecretName, replicationPolicy and folder; a pull \
         secret belongs into spec.pullSecret.data"
    )]
    UnknownMember,
    /// A member of `spec.pullSecret` has another type.
    #[error("must be {expected}")]
    WrongType {
        /// The member's path.
        path: String,
        /// The type that it must have.
        expected: &'static str,
    },
    /// A credential document, or a part of one.
    #[error("looks like registry credentials, which would be stored in clear: give them as spec.pullSecret.data")]
    Credentials {
        /// The path of the value.
        path: String,
    },
}

/// Checks a spec as a client gives it.
pub fn check(spec: &Map<String, Value>) -> Result<(), Misplaced> {
    members(spec.get("pullSecret"))?;
    for (name, value) in spec {
        let path = Path { parent: None, name };
        match value {
            Value::Object(pull_secret) if name == "pullSecret" => {
                for (name, value) in pull_secret.iter().filter(|(name, _)| *name != "data") {
                    search(value, &Path { parent: Some(&path), name }, 0)?;
                }
            }
            value => search(value, &path, 0)?,
        }
    }
    Ok(())
}

/// Checks that `spec.pullSecret` has no other members.
fn members(pull_secret: Option<&Value>) -> Result<(), Misplaced> {
    let members = match pull_secret {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(Misplaced::NotAnObject),
    };
    for (name, value) in members {
        let Some((known, expected)) = MEMBERS.iter().find(|(known, _)| known == name) else {
            return Err(Misplaced::UnknownMember);
        };
        let expected = match (expected, value) {
            (Type::Any, _) | (_, Value::Null) | (Type::Object, Value::Object(_)) | (Type::Text, Value::String(_)) => {
                continue;
            }
            (Type::Object, _) => "an object with namespace, name and key",
            (Type::Text, _) => "a text",
        };
        return Err(Misplaced::WrongType { path: format!("spec.pullSecret.{known}"), expected });
    }
    Ok(())
}

/// A place in a spec.
struct Path<'a> {
    parent: Option<&'a Self>,
    name: &'a str,
}

/// Fails at the first value that looks like credentials. `nesting` is the number of encodings that were undone.
fn search(value: &Value, path: &Path<'_>, nesting: usize) -> Result<(), Misplaced> {
    match value {
        Value::Object(members) => {
            if members.contains_key("auths") || members.get("auth").is_some_and(is_pair) {
                return Err(Misplaced::Credentials { path: path.text() });
            }
            members.iter().try_for_each(|(name, value)| search(value, &Path { parent: Some(path), name }, nesting))
        }
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            search(item, &Path { parent: Some(path), name: &index.to_string() }, nesting)
        }),
        Value::String(text) if nesting < MAX_NESTING => {
            decodings(text).iter().try_for_each(|value| search(value, path, nesting + 1))
        }
        _ => Ok(()),
    }
}

/// The values that a text encodes: as JSON, or as base64 of a text that does.
fn decodings(text: &str) -> Vec<Value> {
    let text = text.trim();
    if text.starts_with(['{', '[', '"']) {
        return serde_json::from_str(text).into_iter().collect();
    }
    let decoded = decode(text).and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.into_iter().map(Value::String).collect()
}

/// True for the base64 of `user:password`.
fn is_pair(value: &Value) -> bool {
    let decoded = value.as_str().and_then(decode);
    decoded.is_some_and(|bytes| bytes.contains(&b':'))
}

/// Decodes base64 in any of its alphabets, with line breaks or without.
fn decode(text: &str) -> Option<Vec<u8>> {
    /// The base64 of the shortest document is longer.
    const LEAST: usize = 4;
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=\r\n \t".contains(&byte);
    if text.len() < LEAST || !text.bytes().all(is_base64) {
        return None;
    }
    let compact: String = text.split_ascii_whitespace().collect();
    [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].iter().find_map(|engine| engine.decode(&compact).ok())
}

// === impl Path ===

impl Path<'_> {
    fn text(&self) -> String {
        let parent = self.parent.map_or_else(|| "spec".to_owned(), Path::text);
        format!("{parent}.{}", excerpt(self.name))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const PASSWORD: &str = "Zq7SesameOpenUp";

    fn document() -> Value {
        json!({ "auths": { "quay.io": { "auth": STANDARD.encode(format!("user:{PASSWORD}")) } } })
    }

    fn checked(spec: &Value) -> Result<(), Misplaced> {
        check(spec.as_object().unwrap())
    }

    #[rstest]
    #[case::the_document_itself(json!({ "pullSecret": document() }), "has a member that is none of data")]
    #[case::as_text(json!({ "pullSecret": document().to_string() }), "must be an object")]
    #[case::in_a_list(json!({ "pullSecret": [document()] }), "must be an object")]
    #[case::capital(json!({ "pullSecret": { "Data": document() } }), "has a member")]
    #[case::value(json!({ "pullSecret": { "value": "x" } }), "has a member")]
    #[case::key_of_kubernetes(json!({ "pullSecret": { ".dockerconfigjson": "x" } }), "has a member")]
    #[case::beside_data(json!({ "pullSecret": { "data": document(), "copy": document() } }), "has a member")]
    #[case::in_a_name(json!({ "pullSecret": { "secretName": document() } }), "must be a text")]
    #[case::in_a_name_as_text(json!({ "pullSecret": { "secretName": document().to_string() } }), "looks like")]
    #[case::in_a_folder(json!({ "pullSecret": { "folder": document().to_string() } }), "looks like")]
    #[case::no_folder(json!({ "pullSecret": { "folder": ["a"] } }), "must be a text")]
    #[case::in_the_reference(json!({ "pullSecret": { "secretRef": document() } }), "looks like")]
    #[case::no_reference(json!({ "pullSecret": { "secretRef": "s" } }), "must be an object with namespace")]
    #[case::snake_case(json!({ "pull_secret": { "data": document() } }), "looks like")]
    #[case::elsewhere(json!({ "gcp": { "pullSecret": { "data": document() } } }), "looks like")]
    #[case::base64(json!({ "note": STANDARD.encode(document().to_string()) }), "looks like")]
    #[case::base64_in_lines(json!({ "note": STANDARD.encode(document().to_string()).replacen('Z', "Z\n  ", 2) }), "looks like")]
    #[case::base64_for_urls(json!({ "note": URL_SAFE_NO_PAD.encode(document().to_string()) }), "looks like")]
    #[case::base64_twice(json!({ "note": STANDARD.encode(STANDARD.encode(document().to_string())) }), "looks like")]
    #[case::quoted_twice(json!({ "note": json!(document().to_string()).to_string() }), "looks like")]
    #[case::in_an_array(json!({ "list": [1, { "a": [document()] }] }), "looks like")]
    #[case::the_old_form(json!({ "a": { "quay.io": { "auth": STANDARD.encode("user:password") } } }), "looks like")]
    #[case::a_kubernetes_secret(
        json!({ "manifest": { "data": { ".dockerconfigjson": STANDARD.encode(document().to_string()) } } }),
        "looks like"
    )]
    fn credentials_in_the_wrong_place_are_refused(#[case] spec: Value, #[case] text: &str) {
        let refused = checked(&spec).unwrap_err();
        assert!(refused.to_string().starts_with(text), "{refused}");
        assert!(!format!("{refused:?}").contains("Zq7") && !format!("{refused:?}").contains("WnE3"), "{refused:?}");
    }

    #[rstest]
    #[case(json!({}))]
    #[case(json!({ "pullSecret": null }))]
    #[case(json!({ "pullSecret": { "data": document() } }))]
    #[case(json!({ "pullSecret": { "data": STANDARD.encode(document().to_string()), "secretName": "s",
        "k8sSecretName": null, "replicationPolicy": "us-east1", "folder": "tenants/acme" } }))]
    #[case(json!({ "pullSecret": { "data": { "redacted": true, "digest": "hmac-sha256:00" } } }))]
    #[case(json!({ "pullSecret": { "secretRef": { "namespace": "n", "name": "s", "key": ".dockerconfigjson" } } }))]
    #[case(json!({ "auth": "oidc", "authentication": { "auth": true, "auth_type": "x" }, "author": "a" }))]
    #[case(json!({ "text": "auths", "list": ["auths"], "json": "{\"a\": 1}", "broken": "{\"auths\"", "four": "abcd" }))]
    #[case(json!({ "provider": "gcp", "gcp": { "projectId": "p" }, "sshKey": "ssh-rsa AAAAB3NzaC1yc2E=" }))]
    fn other_specs_are_accepted(#[case] spec: Value) {
        assert_eq!(checked(&spec), Ok(()));
    }

    #[test]
    fn the_path_is_named() {
        let refused = checked(&json!({ "list": [1, { "a b": document() }] })).unwrap_err();
        assert_eq!(refused, Misplaced::Credentials { path: "spec.list.1.a b".to_owned() });
    }

    #[test]
    fn a_deep_spec_and_a_long_text_end() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "a": [deep] });
        }
        assert_eq!(checked(&json!({ "deep": deep })), Ok(()));
        let mut wrapped = "x".repeat(200_000);
        for _ in 0..6 {
            wrapped = STANDARD.encode(wrapped);
        }
        assert_eq!(checked(&json!({ "long": wrapped })), Ok(()));
    }
}
