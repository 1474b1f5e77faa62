//! Renders the data of an event from a resource, without its secrets.

use std::collections::BTreeMap;

use hyperfleet_client::Resource;
use serde_json::{Map, Value, json};

/// Maximum depth of `message_data`.
const MAX_DEPTH: usize = 8;

/// Members of `spec` that hold credentials, as the specification and the API spell them.
const SECRET: [&str; 2] = ["pullSecret", "pull_secret"];

/// The template of an event's data.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(BTreeMap<String, Node>);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    /// A member of the resource.
    Member(Vec<String>),
    /// The reason of the event, which is known when it is published.
    Reason,
    Literal(Value),
    Object(Template),
}

impl Default for Template {
    /// Returns the template of HyperFleet's charts for node pools, which suits clusters too; absent members are left out.
    fn default() -> Self {
        let names = ["id", "kind", "href", "generation", "owner_references"];
        Self(names.into_iter().map(|name| (name.to_owned(), Node::Member(vec![name.to_owned()]))).collect())
    }
}

impl Template {
    /// Parses `message_data`; the error lists every fault with its path.
    pub fn parse(data: &Map<String, Value>) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let template = Self::read(data, "message_data", 1, &mut faults);
        if faults.is_empty() { Ok(template) } else { Err(faults) }
    }

    fn read(data: &Map<String, Value>, path: &str, depth: usize, faults: &mut Vec<String>) -> Self {
        let mut nodes = BTreeMap::new();
        for (name, value) in data {
            let path = format!("{path}.{name}");
            let node = match value {
                Value::Object(_) if depth == MAX_DEPTH => Err(format!("must be at most {MAX_DEPTH} levels deep")),
                Value::Object(members) => Ok(Node::Object(Self::read(members, &path, depth + 1, faults))),
                Value::Number(_) | Value::Bool(_) => Ok(Node::Literal(value.clone())),
                Value::String(text) => leaf(text.trim()),
                Value::Null | Value::Array(_) => Err("must be a path, a literal or a mapping".to_owned()),
            };
            match node {
                Ok(node) => drop(nodes.insert(name.clone(), node)),
                Err(must) => faults.push(format!("{path}: {must}")),
            }
        }
        Self(nodes)
    }

    /// Renders the data about a resource, without the reason; absent members are left out.
    pub fn render(&self, resource: &Resource) -> Value {
        let members = self.0.iter().filter_map(|(name, node)| {
            let value = match node {
                Node::Member(path) => member(resource, path)?,
                Node::Literal(value) => value.clone(),
                Node::Object(template) => template.render(resource),
                Node::Reason => return None,
            };
            Some((name.clone(), value))
        });
        Value::Object(members.collect())
    }

    /// Adds the reason to rendered data.
    pub fn complete(&self, data: &mut Value, reason: &str) {
        let Value::Object(members) = data else { return };
        for (name, node) in &self.0 {
            match node {
                Node::Reason => drop(members.insert(name.clone(), json!(reason))),
                Node::Object(template) => {
                    if let Some(inner) = members.get_mut(name) {
                        template.complete(inner, reason);
                    }
                }
                Node::Member(_) | Node::Literal(_) => {}
            }
        }
    }

    /// Returns true if the template reads `spec`, which is the largest part of a resource.
    pub fn needs_spec(&self) -> bool {
        self.0.values().any(|node| match node {
            Node::Member(path) => path.first().is_some_and(|first| first == "spec"),
            Node::Object(template) => template.needs_spec(),
            Node::Reason | Node::Literal(_) => false,
        })
    }
}

/// Parses a leaf: a path such as `resource.labels.region`, `reason`, or a text in quotes.
fn leaf(text: &str) -> Result<Node, String> {
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote))
            && !inner.contains([quote, '\\'])
        {
            return Ok(Node::Literal(json!(inner)));
        }
    }
    if text == "reason" {
        return Ok(Node::Reason);
    }
    let fits = |segment: &str| {
        !segment.is_empty() && segment.chars().all(|char| char.is_ascii_alphanumeric() || "_-".contains(char))
    };
    let path = text.strip_prefix("resource.").map(|path| path.split('.').collect::<Vec<_>>());
    let Some(path) = path.filter(|path| path.iter().all(|segment| fits(segment))) else {
        return Err("must be a path such as resource.id or resource.labels.region, `reason`, or a text in quotes; \
             other expressions are not evaluated here"
            .to_owned());
    };
    match path.as_slice() {
        ["spec"] => Err("must name a member of spec: the whole of it may hold a pull secret, and every subscriber \
             reads events"
            .to_owned()),
        ["spec", member, ..] if SECRET.contains(member) => {
            Err("must not be the pull secret: every subscriber reads events".to_owned())
        }
        [first, ..] if !MEMBERS.contains(first) => {
            Err(format!("resource has no such member; it has {}", MEMBERS.join(", ")))
        }
        _ => Ok(Node::Member(path.into_iter().map(str::to_owned).collect())),
    }
}

/// The members of a resource.
const MEMBERS: [&str; 13] = [
    "id",
    "kind",
    "name",
    "href",
    "generation",
    "spec",
    "labels",
    "status",
    "created_time",
    "updated_time",
    "deleted_time",
    "owner_references",
    "references",
];

fn member(resource: &Resource, path: &[String]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    let value = match first.as_str() {
        "id" => json!(resource.id),
        "kind" => json!(resource.kind),
        "name" => json!(resource.name),
        "href" => json!(resource.href),
        "generation" => json!(resource.generation),
        "spec" => resource.spec.get(rest.first()?)?.clone(),
        "labels" => json!(resource.labels),
        "status" => json!(resource.status),
        "created_time" => json!(resource.created_time),
        "updated_time" => json!(resource.updated_time),
        "deleted_time" => json!(resource.deleted_time),
        "owner_references" => json!(resource.owner),
        "references" => json!(resource.references),
        _ => return None,
    };
    // Of `spec`, the first member is resolved already.
    let rest = if first == "spec" { rest.get(1..)? } else { rest };
    let found = rest.iter().try_fold(&value, |value, segment| value.get(segment))?;
    (!found.is_null()).then(|| found.clone())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn resource() -> Resource {
        serde_json::from_value(json!({
            "id": "cls-1", "kind": "Cluster", "name": "one", "href": "/clusters/cls-1", "generation": 3,
            "labels": {"region": "eu"}, "spec": {"provider": "gcp", "pullSecret": {"data": "hunter2"}},
        }))
        .unwrap()
    }

    fn parse(data: Value) -> Result<Template, Vec<String>> {
        let Value::Object(data) = data else { panic!("a mapping") };
        Template::parse(&data)
    }

    #[test]
    fn the_default_is_that_of_hyperfleets_charts() {
        let mut resource = resource();
        let data = Template::default().render(&resource);
        assert_eq!(data, json!({"id": "cls-1", "kind": "Cluster", "href": "/clusters/cls-1", "generation": 3}));
        resource.owner =
            Some(hyperfleet_client::Reference { id: "c".into(), kind: "Cluster".into(), href: "/c".into() });
        let owner = json!({"id": "c", "kind": "Cluster", "href": "/c"});
        assert_eq!(Template::default().render(&resource)["owner_references"], owner);
    }

    #[test]
    fn members_literals_and_the_reason_are_rendered() {
        let data = json!({
            "id": "resource.id", "where": {"region": "resource.labels.region", "why": "reason"}, "revision": 2,
            "origin": "'sentinel'", "provider": "resource.spec.provider", "absent": "resource.labels.zone",
        });
        let template = parse(data).unwrap();
        assert!(template.needs_spec());
        let mut rendered = template.render(&resource());
        template.complete(&mut rendered, "New");
        let expect = json!({
            "id": "cls-1", "where": {"region": "eu", "why": "New"}, "revision": 2, "origin": "sentinel",
            "provider": "gcp",
        });
        assert_eq!(rendered, expect);
    }

    #[rstest]
    #[case("resource.spec")]
    #[case("resource.spec.pullSecret.data")]
    #[case("resource.spec.pull_secret")]
    #[case("resource")]
    #[case("resource.")]
    #[case("resource.nonsense")]
    #[case("condition('Reconciled').status")]
    #[case("resource.generation + 1")]
    #[case("")]
    fn secret_or_unknown_members_are_refused_by_their_path(#[case] leaf: &str) {
        let faults = parse(json!({"deep": {"er": leaf}})).unwrap_err();
        assert!(faults.len() == 1 && faults[0].starts_with("message_data.deep.er: "), "{faults:?}");
    }
}
