//! Where a value of a run comes from: a text with placeholders, or a place in the resource.

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
    /// Its name.
    pub name: String,
    /// The first of these places in the resource that has a value.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub from: Vec<Place>,
    /// A text with placeholders, where no place has a value.
    #[serde(default)]
    pub value: Option<String>,
    /// Whether a run can do without it.
    #[serde(default)]
    pub required: Required,
}

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValueSource {
    /// The first of these places in the resource that has a value, such as `spec.gcp.projectId` or
    /// `status.adapters[placement].data.namespace`.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub from: Vec<Place>,
    /// A text, in which `{id}`, `{name}`, `{generation}` and `{adapter}` stand for the resource's; used where no place has a
    /// value.
    #[serde(default)]
    pub value: Option<String>,
}

/// Whether a run can do without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Required {
    /// It can.
    #[default]
    No,
    /// It cannot, unless it removes what others have made.
    ToApply,
    /// It cannot. A resource without it has nothing that could be removed.
    Always,
}

/// A place in a resource: `spec`, `status` or `metadata`, and members of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    text: String,
    segments: Vec<String>,
}

/// A text that is no [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must begin with spec, status or metadata and go on with members: `spec.a.b`, `status.adapters[a-b].data.c`")]
pub struct InvalidPlace;

/// What placeholders stand for.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The resource's id.
    pub id: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its generation.
    pub generation: Generation,
    /// The adapter.
    pub adapter: &'a str,
}

// === impl Binding ===

impl Binding {
    /// The value for a resource, if it has one.
    pub fn resolve(&self, view: &View, named: Named<'_>) -> Option<String> {
        resolve(&self.from, self.value.as_deref(), view, named)
    }

    /// Where it would come from, for people.
    pub fn shown(&self) -> String {
        self.from.iter().map(|place| format!("`{place}`")).collect::<Vec<_>>().join(" or ")
    }
}

// === impl ValueSource ===

impl ValueSource {
    /// The value for a resource, if it has one.
    pub fn resolve(&self, view: &View, named: Named<'_>) -> Option<String> {
        resolve(&self.from, self.value.as_deref(), view, named)
    }
}

fn resolve(from: &[Place], text: Option<&str>, view: &View, named: Named<'_>) -> Option<String> {
    let found = from.iter().find_map(|place| scalar(place.look_up(view)?));
    found.or_else(|| text.map(|text| named.fill_in(text)))
}

/// Blank texts count as missing: they are what a form leaves behind.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

// === impl Named ===

impl Named<'_> {
    /// The text with the resource's own in the place of placeholders.
    pub fn fill_in(&self, text: &str) -> String {
        let generation = self.generation.to_string();
        let pairs =
            [("{id}", self.id), ("{name}", self.name), ("{generation}", &*generation), ("{adapter}", self.adapter)];
        pairs.iter().fold(text.to_owned(), |text, (placeholder, value)| text.replace(placeholder, value))
    }
}

// === impl Place ===

impl Place {
    /// What is there.
    pub fn look_up<'a>(&self, view: &'a View) -> Option<&'a Value> {
        let (root, members) = self.segments.split_first()?;
        let root = match root.as_str() {
            "status" => &view.status,
            "metadata" => &view.metadata,
            _ => view.document.get("spec")?,
        };
        members.iter().try_fold(root, |value, member| value.get(member))
    }

    /// Whether it is at or below `spec.pullSecret`, which no run is given as a variable.
    pub fn is_of_the_pull_secret(&self) -> bool {
        matches!(self.segments.as_slice(), [spec, secret, data, ..] if spec == "spec" && secret == "pullSecret" && data == "data")
    }
}

impl FromStr for Place {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || "-_".contains(char))
        };
        let mut segments = Vec::new();
        for part in text.split('.') {
            let mut pieces = part.split('[');
            segments.push(pieces.next().unwrap_or_default().to_owned());
            for piece in pieces {
                segments.push(piece.strip_suffix(']').ok_or(InvalidPlace)?.to_owned());
            }
        }
        let begins = segments.first().is_some_and(|root| matches!(root.as_str(), "spec" | "status" | "metadata"));
        if begins && segments.len() > 1 && segments.iter().all(|segment| is_name(segment)) {
            Ok(Self { text: text.to_owned(), segments })
        } else {
            Err(InvalidPlace)
        }
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Debug for Place {
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
    fn values_come_from_places(#[case] places: &[&str], #[case] expect: Option<&str>) {
        let source = ValueSource { from: places.iter().map(|place| place.parse().unwrap()).collect(), value: None };
        let named = Named { id: "cls-1", name: "one", generation: Generation::from(3), adapter: "a" };
        assert_eq!(source.resolve(&view(), named).as_deref(), expect);
        let text = ValueSource { value: Some("{id}-{name}-{generation}-{adapter}".to_owned()), ..source };
        assert_eq!(text.resolve(&view(), named).as_deref(), Some(expect.unwrap_or("cls-1-one-3-a")));
    }

    #[rstest]
    #[case("")]
    #[case("spec")]
    #[case("event.id")]
    #[case("spec..a")]
    #[case("spec.a[b")]
    #[case("spec.a b")]
    fn other_texts_are_no_places(#[case] text: &str) {
        assert_eq!(text.parse::<Place>(), Err(InvalidPlace));
    }
}
