//! Differing fields of two states of an object, and the fields that a document mentions.

use serde_json::Value;

use super::schema::{List, Schema, step};
use super::set::Set;

/// Changes of an object's fields.
#[derive(Clone, Debug, Default)]
pub(crate) struct Difference {
    pub(crate) added: Set,
    pub(crate) modified: Set,
    pub(crate) removed: Set,
}

/// Compares two states of an object.
pub(crate) fn compare(schema: Schema<'_>, old: &Value, new: &Value) -> Difference {
    let mut difference = Difference::default();
    difference.walk(schema, Some(old), Some(new), &mut Vec::new());
    difference
}

/// The fields that a document mentions, as an applied configuration owns them.
pub(crate) fn owned(schema: Schema<'_>, document: &Value) -> Set {
    let mut set = Set::default();
    mention(schema, document, &mut Vec::new(), &mut Mention { set: &mut set, containers: false });
    set
}

/// The fault of the first list whose items are not distinct, in the words of a real server; none if there is none.
pub(crate) fn doubled(schema: Schema<'_>, document: &Value) -> Option<String> {
    find_doubled(schema, document, "")
}

fn find_doubled(schema: Schema<'_>, value: &Value, path: &str) -> Option<String> {
    if let (Value::Array(items), List::Map(keys)) = (value, schema.list()) {
        let steps: Vec<_> = items.iter().filter_map(|item| step(&keys, item).map(|step| (step, item))).collect();
        let mut seen = std::collections::BTreeSet::new();
        if let Some((_, item)) = steps.iter().find(|(step, _)| !seen.insert(step)) {
            let named = |key: &String| item.get(key).map(|value| format!("{key}={value}"));
            let key: Vec<String> = keys.iter().filter_map(named).collect();
            return Some(format!("{path}: duplicate entries for key [{}]", key.join(",")));
        }
    }
    let children = children(schema, value)?;
    children.into_iter().find_map(|(step, schema, value)| {
        let name = step.strip_prefix("f:").unwrap_or_default();
        find_doubled(schema, value, &format!("{path}.{name}"))
    })
}

/// The collector of mentioned fields, and the option to count the objects and lists around them.
struct Mention<'a> {
    set: &'a mut Set,
    containers: bool,
}

/// The children of a container that is merged by parts; none if it is replaced as a whole.
fn children<'v>(schema: Schema<'v>, value: &'v Value) -> Option<Vec<(String, Schema<'v>, &'v Value)>> {
    match value {
        Value::Object(members) if !schema.is_atomic() => {
            let present = members.iter().filter(|(_, value)| !value.is_null());
            Some(present.map(|(name, value)| (format!("f:{name}"), schema.member(name), value)).collect())
        }
        Value::Array(items) => match schema.list() {
            List::Atomic => None,
            List::Set => Some(items.iter().map(|item| (format!("v:{item}"), schema.item(), item)).collect()),
            List::Map(keys) => {
                items.iter().map(|item| step(&keys, item).map(|step| (step, schema.item(), item))).collect()
            }
        },
        _ => None,
    }
}

fn mention(schema: Schema<'_>, value: &Value, path: &mut Vec<String>, mentioned: &mut Mention<'_>) {
    let is_item = path.last().is_some_and(|step| !step.starts_with("f:"));
    // An item's schema is that of its list: an item that is identified by members is not a list again.
    let children = children(schema, value).filter(|children| !children.is_empty());
    let container = mentioned.containers && !schema.is_always_there(path);
    if !path.is_empty() && (is_item || container || children.is_none()) {
        mentioned.set.insert(path);
    }
    for (step, schema, value) in children.unwrap_or_default() {
        path.push(step);
        mention(schema, value, path, mentioned);
        path.pop();
    }
}

impl Difference {
    /// Added and modified fields.
    pub(crate) fn written(&self) -> Set {
        self.added.clone().union(&self.modified)
    }

    fn walk(&mut self, schema: Schema<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<String>) {
        let (old, new) = match (old.filter(|value| !value.is_null()), new.filter(|value| !value.is_null())) {
            (None, None) => return,
            (None, Some(new)) => {
                return mention(schema, new, path, &mut Mention { set: &mut self.added, containers: true });
            }
            (Some(old), None) => {
                return mention(schema, old, path, &mut Mention { set: &mut self.removed, containers: true });
            }
            (Some(old), Some(new)) => (old, new),
        };
        if old == new {
            return;
        }
        let (Some(before), Some(after)) = (children(schema, old), children(schema, new)) else {
            self.modified.insert(path);
            return;
        };
        for (step, schema, value) in &before {
            let now = after.iter().find(|(other, ..)| other == step).map(|(_, _, value)| *value);
            path.push(step.clone());
            self.walk(*schema, Some(value), now, path);
            path.pop();
        }
        for (step, schema, value) in &after {
            if !before.iter().any(|(other, ..)| other == step) {
                path.push(step.clone());
                self.walk(*schema, None, Some(value), path);
                path.pop();
            }
        }
    }
}
