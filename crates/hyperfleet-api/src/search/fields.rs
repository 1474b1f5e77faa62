//! Which members of a resource are shown.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::{Quote, SearchError};

/// The members that are wanted, as a tree. The id is always among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields(Tree);

/// The wanted members of an object, each whole or in parts.
type Tree = BTreeMap<String, Wanted>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Whole,
    Parts(Tree),
}

/// What is below a member of a resource.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Scalar,
    /// Keys that may themselves have dots.
    Keys,
    /// Any document.
    Document,
    /// These members, and below them any document.
    Members(&'static [&'static str]),
}

/// The deepest path.
const DEEPEST: usize = 32;

/// All members of a resource.
const MEMBERS: &[(&str, Shape)] = &[
    ("id", Shape::Scalar),
    ("kind", Shape::Scalar),
    ("name", Shape::Scalar),
    ("href", Shape::Scalar),
    ("spec", Shape::Document),
    ("labels", Shape::Keys),
    ("tenancy", Shape::Keys),
    ("generation", Shape::Scalar),
    ("status", Shape::Members(&["adapters", "conditions"])),
    ("created_time", Shape::Scalar),
    ("updated_time", Shape::Scalar),
    ("created_by", Shape::Scalar),
    ("updated_by", Shape::Scalar),
    ("deleted_time", Shape::Scalar),
    ("deleted_by", Shape::Scalar),
    ("owner_references", Shape::Members(&["id", "kind", "href"])),
    ("references", Shape::Keys),
];

// === impl Fields ===

impl Fields {
    /// Reads `name,spec.platform`; each item may be such a list. Nothing means everything.
    pub fn parse(items: &[String]) -> Result<Option<Self>, SearchError> {
        let names = items.iter().flat_map(|item| item.split(',')).map(str::trim).filter(|name| !name.is_empty());
        let mut tree = Tree::new();
        for name in names {
            add(&mut tree, &path(name)?);
        }
        if tree.is_empty() {
            return Ok(None);
        }
        add(&mut tree, &["id"]);
        Ok(Some(Self(tree)))
    }

    /// What is left of a rendered resource.
    pub fn apply(&self, object: Map<String, Value>) -> Map<String, Value> {
        project(&self.0, object)
    }
}

/// The steps down to what is wanted.
fn path(name: &str) -> Result<Vec<&str>, SearchError> {
    let (member, below) = match name.split_once('.') {
        Some((member, below)) => (member, Some(below)),
        None => (name, None),
    };
    let found = MEMBERS.iter().find(|(known, _)| *known == member).map(|(_, shape)| *shape);
    let steps: Option<Vec<_>> = match (found, below) {
        (Some(_), None) => Some(vec![member]),
        (Some(Shape::Keys), Some(key)) => Some(vec![member, key]),
        (Some(Shape::Document), Some(_)) => Some(name.split('.').collect()),
        (Some(Shape::Members(members)), Some(below)) => {
            let known = below.split('.').next().is_some_and(|first| members.contains(&first));
            known.then(|| name.split('.').collect())
        }
        (Some(Shape::Scalar) | None, _) => None,
    };
    steps.filter(|steps| steps.len() <= DEEPEST && steps.iter().all(|step| !step.is_empty())).ok_or_else(|| {
        let members: Vec<_> = MEMBERS.iter().map(|(known, _)| *known).collect();
        let known = members.join(", ");
        SearchError::fields(format!("{} is unknown: choose from {known}, or a path such as spec.platform", Quote(name)))
    })
}

/// What is wanted whole stays whole.
fn add(tree: &mut Tree, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        tree.insert((*first).to_owned(), Wanted::Whole);
        return;
    }
    let wanted = tree.entry((*first).to_owned()).or_insert_with(|| Wanted::Parts(Tree::new()));
    if let Wanted::Parts(parts) = wanted {
        add(parts, rest);
    }
}

fn project(tree: &Tree, object: Map<String, Value>) -> Map<String, Value> {
    let wanted = object.into_iter().filter_map(|(name, value)| match tree.get(&name)? {
        Wanted::Whole => Some((name, value)),
        Wanted::Parts(parts) => Some((name, part(parts, value)?)),
    });
    wanted.collect()
}

/// Of a list, the parts of its items. What has no parts has none that are wanted.
fn part(parts: &Tree, value: Value) -> Option<Value> {
    match value {
        Value::Object(object) => Some(Value::Object(project(parts, object))),
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(|item| part(parts, item)).collect())),
        _ => None,
    }
}
