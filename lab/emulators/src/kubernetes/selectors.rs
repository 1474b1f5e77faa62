//! Selection of objects by labels and fields.

use std::borrow::Cow;

use serde_json::Value;

use super::meta;
use super::resources::Resource;
use super::status::Status;
use super::validate::names;
use super::value::text;

/// A label selector and a field selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

/// A requirement on one label or field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    More(i64),
    Less(i64),
}

/// The fields by which kinds can be selected, besides name and namespace.
const FIELDS: [(&str, &[&str]); 7] = [
    ("secrets", &["type"]),
    ("namespaces", &["status.phase"]),
    ("nodes", &["spec.unschedulable"]),
    ("jobs.batch", &["status.successful"]),
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("serviceaccounts", &[]),
];

impl Selector {
    /// Reads both selectors as they stand in a query.
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = label_requirements(labels).ok_or_else(|| {
            Status::bad_request(format!("unable to parse requirement: the label selector {labels:?} cannot be read"))
        })?;
        let fields = field_requirements(resource, fields)?;
        Ok(Self { labels, fields })
    }

    /// The same for one object only.
    #[must_use]
    pub(crate) fn and_name(mut self, name: &str) -> Self {
        self.fields.push(Requirement { key: "metadata.name".to_owned(), test: Test::In(vec![name.to_owned()]) });
        self
    }

    /// True if everything fits.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object.pointer("/metadata/labels").and_then(|labels| labels.get(key)?.as_str());
        self.labels.iter().all(|wanted| wanted.test.holds(label(&wanted.key)))
            && self.fields.iter().all(|wanted| wanted.test.holds(Some(&field(object, &wanted.key))))
    }

    /// The one value that a label must have, if the selector says so.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find_map(|wanted| match &wanted.test {
            Test::In(values) if wanted.key == key && values.len() == 1 => values.first().map(String::as_str),
            _ => None,
        })
    }

    /// The one name that is asked for, if the selector says so.
    pub(crate) fn name(&self) -> Option<&str> {
        self.fields.iter().find_map(|wanted| match &wanted.test {
            Test::In(names) if wanted.key == "metadata.name" => names.first().map(String::as_str),
            _ => None,
        })
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => value.is_some_and(|value| values.iter().any(|other| other == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|other| other != value)),
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::More(bound) => number().is_some_and(|number| number > *bound),
            Self::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// The value of a selectable field of an object, as text.
fn field<'a>(object: &'a Value, key: &str) -> Cow<'a, str> {
    match key {
        "metadata.name" => return meta::name(object).into(),
        "metadata.namespace" => return meta::namespace(object).into(),
        "source" => return text(object, "/source/component").into(),
        _ => {}
    }
    match object.pointer(&format!("/{}", key.replace('.', "/"))) {
        Some(Value::String(text)) => text.into(),
        Some(Value::Null) | None => match key {
            "spec.unschedulable" | "spec.hostNetwork" => "false".into(),
            "status.successful" => "0".into(),
            _ => "".into(),
        },
        Some(other) => other.to_string().into(),
    }
}

fn field_requirements(resource: &Resource, text: &str) -> Result<Vec<Requirement>, Status> {
    let mut requirements = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (key, value, equal) = if let Some((key, value)) = part.split_once("!=") {
            (key, value, false)
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (key, value, true)
        } else {
            let message = format!("invalid selector: '{text}'; can't understand '{part}'");
            return Err(Status::bad_request(message));
        };
        let own = FIELDS.iter().find(|row| row.0 == resource.storage).map_or(&[][..], |row| row.1);
        if !matches!(key, "metadata.name" | "metadata.namespace") && !own.contains(&key) {
            return Err(Status::bad_request(match resource.storage.as_str() {
                "jobs.batch" => format!("field label {key:?} not supported for Job"),
                _ => format!("field label not supported: {key}"),
            }));
        }
        let values = vec![value.to_owned()];
        let test = if equal { Test::In(values) } else { Test::NotIn(values) };
        requirements.push(Requirement { key: key.to_owned(), test });
    }
    Ok(requirements)
}

/// Splits at commas outside parentheses and reads each part.
fn label_requirements(text: &str) -> Option<Vec<Requirement>> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if character == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.map(label_requirement).collect()
}

fn label_requirement(part: &str) -> Option<Requirement> {
    let requirement = |key: &str, test: Test| {
        let key = key.trim();
        let valid = !key.is_empty()
            && !key.contains(|character: char| character.is_whitespace() || "()!=<>".contains(character));
        valid.then(|| Requirement { key: key.to_owned(), test })
    };
    let value = |value: &str| {
        let value = value.trim();
        names::label_value(value).is_none().then(|| vec![value.to_owned()])
    };
    if let Some(key) = part.strip_prefix('!') {
        return requirement(key, Test::Absent);
    }
    if let Some((before, values)) = part.split_once('(') {
        let values: Vec<String> = values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, operator) = before.trim().rsplit_once(char::is_whitespace)?;
        return match operator {
            "in" => requirement(key, Test::In(values)),
            "notin" => requirement(key, Test::NotIn(values)),
            _ => None,
        };
    }
    if let Some((key, wanted)) = part.split_once("!=") {
        return requirement(key, Test::NotIn(value(wanted)?));
    }
    if let Some((key, wanted)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return requirement(key, Test::In(value(wanted)?));
    }
    if let Some((key, bound)) = part.split_once('>') {
        return requirement(key, Test::More(bound.trim().parse().ok()?));
    }
    if let Some((key, bound)) = part.split_once('<') {
        return requirement(key, Test::Less(bound.trim().parse().ok()?));
    }
    requirement(part, Test::Exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("", true)]
    #[case("a=1", true)]
    #[case("a==1,b!=3", true)]
    #[case("a!=1", false)]
    #[case("c!=1", true)]
    #[case("a in (1, 2)", true)]
    #[case("a notin (1,2),b", false)]
    #[case("c notin (1,2)", true)]
    #[case("!c, b", true)]
    #[case("c", false)]
    #[case("b>1", true)]
    #[case("b<2", false)]
    fn selects_by_labels(#[case] text: &str, #[case] matches: bool) {
        let object = serde_json::json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
        let selector = Selector { labels: label_requirements(text).unwrap(), fields: Vec::new() };
        assert_eq!(selector.matches(&object), matches);
    }

    #[rstest::rstest]
    #[case("a b")]
    #[case("a in 1")]
    #[case("a)")]
    #[case("=1")]
    fn refuses_what_is_no_selector(#[case] text: &str) {
        assert_eq!(label_requirements(text), None);
    }
}
