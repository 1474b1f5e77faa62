//! Paths in the tree of a configuration file.

use serde_json::{Map, Value};

/// The value at a path.
pub(super) fn at<'a>(tree: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut segments = path.split('.');
    let first = tree.get(segments.next()?)?;
    segments.try_fold(first, |value, segment| value.get(segment))
}

/// Puts a value at a path; what is no mapping on the way is replaced.
pub(super) fn put(tree: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(tree.insert(path.to_owned(), value)),
        Some((first, rest)) => {
            if let Some(inner) = mapping(tree, first) {
                put(inner, rest, value);
            }
        }
    }
}

/// Makes the mappings that a path leads through.
pub(super) fn make_parents(tree: &mut Map<String, Value>, path: &str) {
    if let Some((first, rest)) = path.split_once('.')
        && let Some(inner) = mapping(tree, first)
    {
        make_parents(inner, rest);
    }
}

fn mapping<'a>(tree: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    if !tree.get(key).is_some_and(Value::is_object) {
        tree.insert(key.to_owned(), Value::Object(Map::new()));
    }
    tree.get_mut(key).and_then(Value::as_object_mut)
}

/// Takes the value at a path out of the tree.
pub(super) fn take(tree: &mut Map<String, Value>, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => tree.remove(path),
        Some((first, rest)) => take(tree.get_mut(first)?.as_object_mut()?, rest),
    }
}

/// Takes out what stands at a path of serde's, such as `entities[0].plural`; returns false if nothing stands there.
pub(super) fn prune(tree: &mut Map<String, Value>, path: &str) -> bool {
    let (above, last) = path.rsplit_once('.').unwrap_or(("", path));
    let pointer: String = above
        .split(['.', '['])
        .filter(|part| !part.is_empty())
        .fold(String::new(), |pointer, part| pointer + "/" + part.trim_end_matches(']'));
    let mut root = Value::Object(std::mem::take(tree));
    let parent = root.pointer_mut(&pointer).and_then(Value::as_object_mut);
    let pruned = parent.is_some_and(|parent| parent.remove(last).is_some());
    if let Value::Object(root) = root {
        *tree = root;
    }
    pruned
}
