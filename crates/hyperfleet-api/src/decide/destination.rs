//! Decides which callers may choose the destination of a pull secret: those that give the content, or have the permission.
//!
//! Adapters derive from the spec where they write a pull secret. A caller who may change the spec but not read the content
//! could otherwise have it delivered to a project of its own.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The fields of a spec from which the destination of its pull secret follows; of `pullSecret`, every member but `data`.
const FIELDS: [&[&str]; 4] = [&["provider"], &["region"], &["gcp", "projectId"], &["gcp", "region"]];

/// The member that references a Secret of Kubernetes.
const REFERENCE: &str = "pullSecret.secretRef";

/// The destination of a spec's pull secret: the fields that decide it, by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Destination(BTreeMap<String, Value>);

/// The part that the content of the pull secret plays in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The stored content stays.
    Kept,
    /// The request gives the content, or there is none.
    GivenOrNone,
}

/// A destination that the caller may not choose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no grant of the caller allows chooses_destination: {}",
    if *(.is_reference) {
        format!("spec.pullSecret.secretRef names content that the caller does not give ({} set or changed)", .fields.join(", "))
    } else {
        format!("{} changes where the stored pull secret goes; give spec.pullSecret.data again", .fields.join(", "))
    }
)]
pub struct NotChosen {
    /// The changed fields, without their values.
    pub fields: Vec<String>,
    /// True if a reference is concerned, false if it is stored content.
    pub is_reference: bool,
}

/// Checks that a caller without the permission to choose destinations may replace `before` by `after`. Without `before` the
/// resource is new.
pub fn check(
    before: Option<&Map<String, Value>>,
    after: &Map<String, Value>,
    content: Content,
) -> Result<(), NotChosen> {
    let (old, new) = (before.map(Destination::of).unwrap_or_default(), Destination::of(after));
    let fields = new.differences(&old);
    let is_reference = new.0.contains_key(REFERENCE);
    if !fields.is_empty() && (is_reference || content == Content::Kept) {
        return Err(NotChosen { fields, is_reference });
    }
    Ok(())
}

// === impl Destination ===

impl Destination {
    /// Returns the destination of a spec. A field that is null is absent.
    pub fn of(spec: &Map<String, Value>) -> Self {
        let mut fields = BTreeMap::new();
        for path in FIELDS {
            let (first, rest) = path.split_first().map_or(("", path), |(first, rest)| (*first, rest));
            let value = rest.iter().try_fold(spec.get(first), |value, name| Some(value?.get(*name)));
            insert(&mut fields, path.join("."), value.flatten());
        }
        let pull_secret = spec.get("pullSecret").and_then(Value::as_object).into_iter().flatten();
        for (name, value) in pull_secret.filter(|(name, _)| *name != "data") {
            insert(&mut fields, format!("pullSecret.{name}"), Some(value));
        }
        Self(fields)
    }

    /// Returns one text for equal destinations, whatever the order of members and the spelling of numbers.
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        for (path, value) in &self.0 {
            text.push_str(&Value::from(path.as_str()).to_string());
            write(value, &mut text);
        }
        text
    }

    /// The paths whose values differ.
    fn differences(&self, other: &Self) -> Vec<String> {
        let paths = self.0.keys().chain(other.0.keys().filter(|path| !self.0.contains_key(*path)));
        paths.filter(|path| self.0.get(*path) != other.0.get(*path)).map(|path| format!("spec.{path}")).collect()
    }
}

fn insert(fields: &mut BTreeMap<String, Value>, path: String, value: Option<&Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        fields.insert(path, value.clone());
    }
}

/// Writes a value; PostgreSQL stores members in another order and numbers in another spelling.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            text.push('{');
            for (name, value) in sorted {
                text.push_str(&Value::from(name.as_str()).to_string());
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Number(number) => text.push_str(&Value::from(number.as_f64()).to_string()),
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn spec(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn victim() -> Value {
        json!({ "provider": "gcp", "region": "eu", "gcp": { "projectId": "p", "network": "n" },
            "pullSecret": { "data": { "redacted": true }, "secretName": "s" } })
    }

    #[rstest]
    #[case::project("/gcp/projectId", json!("thief"), false)]
    #[case::no_project("/gcp/projectId", Value::Null, false)]
    #[case::no_gcp("/gcp", Value::Null, false)]
    #[case::region("/region", json!("us"), false)]
    #[case::provider("/provider", json!("other"), false)]
    #[case::name("/pullSecret/secretName", json!("t"), false)]
    #[case::replication("/pullSecret", json!({ "secretName": "s", "replicationPolicy": "us-east1" }), false)]
    #[case::folder("/pullSecret", json!({ "secretName": "s", "folder": "tenants/acme" }), false)]
    #[case::kubernetes_name("/pullSecret", json!({ "secretName": "s", "k8sSecretName": "x" }), false)]
    #[case::network("/gcp/network", json!("m"), true)]
    #[case::the_content_itself("/pullSecret/data", json!(null), true)]
    fn stored_content_stays_where_it_goes(#[case] path: &str, #[case] value: Value, #[case] allowed: bool) {
        let mut after = victim();
        *after.pointer_mut(path).unwrap() = value;
        let check = |content| check(Some(&spec(&victim())), &spec(&after), content);
        assert_eq!(check(Content::Kept).is_ok(), allowed);
        assert_eq!(check(Content::GivenOrNone), Ok(()), "the caller's own content goes where the caller says");
    }

    #[test]
    fn a_reference_is_never_the_callers_own_content() {
        let with = |project: &str| {
            spec(&json!({ "gcp": { "projectId": project }, "pullSecret": { "secretRef": { "name": "s" } } }))
        };
        let without = spec(&json!({ "gcp": { "projectId": "p" } }));
        for content in [Content::Kept, Content::GivenOrNone] {
            assert_eq!(check(Some(&with("p")), &with("p"), content), Ok(()));
            assert!(check(Some(&with("p")), &with("thief"), content).is_err());
            assert!(check(Some(&without), &with("p"), content).is_err(), "set");
            assert!(check(None, &with("p"), content).is_err(), "new");
            assert_eq!(check(Some(&with("p")), &without, Content::GivenOrNone), Ok(()), "removed");
        }
        let refused = check(None, &with("thief"), Content::GivenOrNone).unwrap_err().to_string();
        assert!(refused.contains("chooses_destination") && !refused.contains("thief"), "{refused}");
    }

    #[test]
    fn equal_destinations_have_one_text() {
        let text = |value: &Value| Destination::of(&spec(value)).canonical();
        let one =
            json!({ "gcp": { "projectId": 1e2 }, "pullSecret": { "secretRef": { "a": "x", "b": ["y"] }, "data": 1 } });
        let two: Value = serde_json::from_str(
            r#"{"pullSecret": {"data": 2, "secretRef": {"b": ["y"], "a": "x"}, "k8sSecretName": null}, "gcp": {"projectId": 100}}"#,
        )
        .unwrap();
        assert_eq!(text(&one), text(&two));
        // A member may not be shifted into its neighbour.
        assert_ne!(
            text(&json!({ "provider": "a", "region": "b" })),
            text(&json!({ "provider": "a\"region\"", "region": "b" }))
        );
        assert_ne!(text(&json!({ "provider": "ab" })), text(&json!({ "region": "ab" })));
    }
}
