//! The selection of a resource's members (`fields=`).

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::error::{Quote, SearchError};

/// The selected members as a tree. The id is always selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields(Tree);

/// The selected members of an object.
type Tree = BTreeMap<String, Selection>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Selection {
    Whole,
    Parts(Tree),
}

/// The form of a member of a resource.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Scalar,
    /// An object whose keys may contain dots.
    Keys,
    /// Any document.
    Document,
    /// An object with these members, each of which is any document.
    Members(&'static [&'static str]),
}

/// Maximum number of segments of a path.
const MAX_DEPTH: usize = 32;

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
    ("traceparent", Shape::Scalar),
];

// === impl Fields ===

impl Fields {
    /// Parses a selection such as `name,spec.platform`; each item may be such a list. `None` selects every member.
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

    /// Returns the JSON of an object without the members that are not selected. Fails if it is not the JSON of an object.
    pub fn apply(&self, object: &str) -> serde_json::Result<String> {
        let mut selected = String::new();
        project(&self.0, object, &mut selected)?;
        Ok(selected)
    }
}

/// The segments of a path, if it is valid.
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
    steps.filter(|steps| steps.len() <= MAX_DEPTH && steps.iter().all(|step| !step.is_empty())).ok_or_else(|| {
        let members: Vec<_> = MEMBERS.iter().map(|(known, _)| *known).collect();
        let known = members.join(", ");
        SearchError::fields(format!("{} is unknown: choose from {known}, or a path such as spec.platform", Quote(name)))
    })
}

/// Adds a path to the tree. A member that is selected as a whole stays so.
fn add(tree: &mut Tree, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        tree.insert((*first).to_owned(), Selection::Whole);
        return;
    }
    let selection = tree.entry((*first).to_owned()).or_insert_with(|| Selection::Parts(Tree::new()));
    if let Selection::Parts(parts) = selection {
        add(parts, rest);
    }
}

/// The members of an object by their names as JSON has them; values are not parsed.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Appends an object with the selected members, in the order of their names.
fn project(tree: &Tree, object: &str, to: &mut String) -> serde_json::Result<()> {
    let mut separator = '{';
    for (name, value) in serde_json::from_str::<Members<'_>>(object)? {
        let Some(selection) = tree.get(&name) else { continue };
        let start = to.len();
        to.push(separator);
        to.push_str(&serde_json::to_string(&name)?);
        to.push(':');
        if select(selection, value.get(), to)? {
            separator = ',';
        } else {
            to.truncate(start);
        }
    }
    to.push_str(if separator == '{' { "{}" } else { "}" });
    Ok(())
}

/// Appends the selected parts of a value, and of each item of an array; false for a scalar, which has none.
fn select(selection: &Selection, value: &str, to: &mut String) -> serde_json::Result<bool> {
    let Selection::Parts(parts) = selection else {
        to.push_str(value);
        return Ok(true);
    };
    match value.as_bytes().first() {
        Some(b'{') => project(parts, value, to)?,
        Some(b'[') => {
            let mut separator = "";
            to.push('[');
            for item in serde_json::from_str::<Vec<&RawValue>>(value)? {
                let start = to.len();
                to.push_str(separator);
                if select(selection, item.get(), to)? {
                    separator = ",";
                } else {
                    to.truncate(start);
                }
            }
            to.push(']');
        }
        _ => return Ok(false),
    }
    Ok(true)
}
