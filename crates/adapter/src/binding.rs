//! Resolves the values of a run from fields of the resource or from texts with placeholders.

use std::fmt;
use std::str::FromStr;

use hyperfleet_client::{Generation, View};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// A named value of a run, such as a variable of its Job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Binding {
    /// The name.
    pub name: String,
    /// Fields of the resource; the first one that has a value is used.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub from: Vec<FieldPath>,
    /// A text with placeholders, used if no field has a value.
    #[serde(default)]
    pub value: Option<String>,
    /// The runs that require the value.
    #[serde(default)]
    pub required: Required,
}

/// The source of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueSource {
    /// Fields of the resource, such as `spec.gcp.projectId` or `status.adapters[placement].data.namespace`; the first one
    /// that has a value is used.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub from: Vec<FieldPath>,
    /// A text in which `{id}`, `{name}`, `{generation}` and `{adapter}` are replaced; used if no field has a value.
    #[serde(default)]
    pub value: Option<String>,
}

/// The runs that require a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Required {
    /// None.
    #[default]
    No,
    /// Runs that apply; clean-up runs do not need it.
    ToApply,
    /// All runs. A resource without the value has nothing that could be removed.
    Always,
}

/// The path of a field of a resource: `spec`, `status` or `metadata`, and members of it.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    segments: Vec<String>,
}

/// The error of a text that is not a [`FieldPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must begin with spec, status or metadata and go on with members: `spec.a.b`, `status.adapters[a-b].data.c`")]
pub struct InvalidFieldPath;

/// The values of placeholders.
#[derive(Clone, Copy, Debug)]
pub struct Placeholders<'a> {
    /// The resource's id.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its generation.
    pub generation: Generation,
    /// The adapter's type.
    pub adapter: &'a str,
}

// === impl Binding ===

impl Binding {
    /// Returns the value for a resource, if it has one.
    pub fn resolve(&self, view: &View, placeholders: Placeholders<'_>) -> Option<String> {
        resolve(&self.from, self.value.as_deref(), view, placeholders)
    }

    /// Lists the fields that the value is read from, for messages.
    pub fn describe(&self) -> String {
        self.from.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(" or ")
    }
}

// === impl ValueSource ===

impl ValueSource {
    /// Returns the value for a resource, if it has one.
    pub fn resolve(&self, view: &View, placeholders: Placeholders<'_>) -> Option<String> {
        resolve(&self.from, self.value.as_deref(), view, placeholders)
    }
}

fn resolve(from: &[FieldPath], text: Option<&str>, view: &View, placeholders: Placeholders<'_>) -> Option<String> {
    let found = from.iter().find_map(|path| scalar(path.get_in(view)?));
    found.or_else(|| text.map(|text| placeholders.expand(text)))
}

/// Converts a scalar into a text; blank texts count as missing, as forms submit them for empty fields.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

// === impl Placeholders ===

impl Placeholders<'_> {
    /// Replaces the placeholders in a text.
    pub fn expand(&self, text: &str) -> String {
        let generation = self.generation.to_string();
        let pairs =
            [("{id}", self.id), ("{name}", self.name), ("{generation}", &*generation), ("{adapter}", self.adapter)];
        pairs.iter().fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
    }
}

// === impl FieldPath ===

impl FieldPath {
    /// Returns the value of the field in a resource.
    pub fn get_in<'a>(&self, view: &'a View) -> Option<&'a Value> {
        let (root, members) = self.segments.split_first()?;
        let root = match root.as_str() {
            "status" => &view.status,
            "metadata" => &view.metadata,
            _ => view.document.get("spec")?,
        };
        members.iter().try_fold(root, |value, member| value.get(member))
    }

    /// Returns true for fields that the author of a resource cannot set: its id, its tenancy, and what adapters report.
    pub fn is_beyond_the_author(&self) -> bool {
        let [root, rest @ ..] = self.segments.as_slice() else { return false };
        match root.as_str() {
            "status" => true,
            "metadata" => rest.first().is_some_and(|member| member == "id" || member == "tenancy"),
            _ => false,
        }
    }

    /// Returns true for `spec.pullSecret.data` and everything below it, which must not become a variable of a Job.
    pub fn is_pull_secret_data(&self) -> bool {
        matches!(self.segments.as_slice(), [spec, secret, data, ..] if spec == "spec" && secret == "pullSecret" && data == "data")
    }
}

impl FromStr for FieldPath {
    type Err = InvalidFieldPath;

    fn from_str(text: &str) -> Result<Self, InvalidFieldPath> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || "-_".contains(char))
        };
        let mut segments = Vec::new();
        for part in text.split('.') {
            let mut pieces = part.split('[');
            segments.push(pieces.next().unwrap_or_default().to_owned());
            for piece in pieces {
                segments.push(piece.strip_suffix(']').ok_or(InvalidFieldPath)?.to_owned());
            }
        }
        let starts_run = segments.first().is_some_and(|root| matches!(root.as_str(), "spec" | "status" | "metadata"));
        if starts_run && segments.len() > 1 && segments.iter().all(|segment| is_name(segment)) {
            Ok(Self { text: text.to_owned(), segments })
        } else {
            Err(InvalidFieldPath)
        }
    }
}

impl<'de> Deserialize<'de> for FieldPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use hyperfleet_client::Resource;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn view() -> View {
        let resource: Resource = serde_json::from_value(json!({
            "id": "cls-1", "name": "one", "generation": 3,
            "spec": {"gcp": {"projectId": "p-1"}, "blank": " ", "list": [1], "count": 7},
            "status": {"adapters": {"landing-zone": {"data": {"namespace": "ns"}}}},
        }))
        .unwrap();
        View::of(&resource)
    }

    #[rstest]
    #[case(&["spec.gcp.projectId"], Some("p-1"))]
    #[case(&["spec.nothing", "status.adapters[landing-zone].data.namespace"], Some("ns"))]
    #[case(&["metadata.generation"], Some("3"))]
    #[case(&["spec.count"], Some("7"))]
    #[case(&["spec.blank"], None)]
    #[case(&["spec.list"], None)]
    #[case(&["spec.gcp"], None)]
    fn values_come_from_fields(#[case] paths: &[&str], #[case] expect: Option<&str>) {
        let source = ValueSource { from: paths.iter().map(|path| path.parse().unwrap()).collect(), value: None };
        let placeholders = Placeholders { id: "cls-1", name: "one", generation: Generation::from(3), adapter: "a" };
        assert_eq!(source.resolve(&view(), placeholders).as_deref(), expect);
        let text = ValueSource { value: Some("{id}-{name}-{generation}-{adapter}".to_owned()), ..source };
        assert_eq!(text.resolve(&view(), placeholders).as_deref(), Some(expect.unwrap_or("cls-1-one-3-a")));
    }

    #[rstest]
    #[case("")]
    #[case("spec")]
    #[case("event.id")]
    #[case("spec..a")]
    #[case("spec.a[b")]
    #[case("spec.a b")]
    fn other_texts_are_no_field_paths(#[case] text: &str) {
        assert_eq!(text.parse::<FieldPath>(), Err(InvalidFieldPath));
    }
}
