//! Strategic merge patch: a merge patch that knows which lists are maps by a key.

use serde_json::{Map, Value};

use super::super::fields::Schema;
use super::super::fields::schema::List;
use super::super::value::text;

/// Says what is to be done with the object or the item around it.
const DIRECTIVE: &str = "$patch";

/// Prefix of a member that lists values to take out of a list of values.
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";

/// Prefix of a member that says in which order a list shall be.
const ORDER: &str = "$setElementOrder/";

/// Lists the members of an object that stay.
const RETAIN: &str = "$retainKeys";

/// The target with what the patch says.
pub(crate) fn strategic_patch(schema: Schema<'_>, target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = without_directives(patch);
        return;
    };
    if text(patch, "/$patch") == "replace" {
        *target = without_directives(patch);
        return;
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    if let Some(Value::Array(retained)) = changes.get(RETAIN) {
        members.retain(|name, _| retained.iter().any(|other| other == name));
    }
    for (name, change) in changes {
        if let Some(list) = name.strip_prefix(DELETE_VALUES) {
            take_values(members, list, change);
        } else if name.starts_with('$') {
            // Said what it had to say before, or does so afterwards.
        } else if change.is_null() || text(change, "/$patch") == "delete" {
            members.remove(name);
        } else {
            member(schema.member(name), members.entry(name).or_insert(Value::Null), change);
        }
    }
    for (name, order) in changes {
        if let Some(list) = name.strip_prefix(ORDER) {
            reorder(schema.member(list), members.get_mut(list), order);
        }
    }
}

fn member(schema: Schema<'_>, target: &mut Value, change: &Value) {
    let Value::Array(changes) = change else { return strategic_patch(schema, target, change) };
    match (schema.list(), &mut *target) {
        (List::Map(keys), Value::Array(items)) => {
            // The strategic key is one member, also where server-side apply tells items apart by more.
            let key = keys.first().map_or("name", String::as_str);
            let added = merge_items(schema, key, items, changes);
            arrange(items, added, changes, |item, change| item.get(key).is_some() && item.get(key) == change.get(key));
        }
        (List::Set, Value::Array(items)) => {
            let new: Vec<Value> = changes.iter().filter(|item| !items.contains(item)).cloned().collect();
            let added = new.len();
            items.extend(new);
            arrange(items, added, changes, |item, change| item == change);
        }
        _ => *target = without_directives(change),
    }
}

/// Brings a merged list into the order of a real server: items that the patch names keep its order, and among the others each
/// has its old place. The last `added` items are new.
fn arrange(items: &mut Vec<Value>, added: usize, changes: &[Value], is_same: impl Fn(&Value, &Value) -> bool) {
    let old = items.len().saturating_sub(added);
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for (index, item) in items.drain(..).enumerate() {
        match changes.iter().position(|change| is_same(&item, change)) {
            Some(place) => named.push((place, (index < old).then_some(index), item)),
            None => others.push((index, item)),
        }
    }
    named.sort_by_key(|(place, ..)| *place);
    let mut others = others.into_iter().peekable();
    for (_, index, item) in named {
        // A new item stands before what the patch does not name.
        let before = |other: &(usize, Value)| index.is_some_and(|index| other.0 < index);
        while let Some((_, other)) = others.next_if(before) {
            items.push(other);
        }
        items.push(item);
    }
    items.extend(others.map(|(_, item)| item));
}

/// Merges items by their key; returns the number of new ones, which come last.
fn merge_items(schema: Schema<'_>, key: &str, items: &mut Vec<Value>, changes: &[Value]) -> usize {
    let mut added = 0;
    if changes.iter().any(|change| text(change, "/$patch") == "replace") {
        items.clear();
    }
    for change in changes {
        let position = items.iter().position(|item| item.get(key).is_some() && item.get(key) == change.get(key));
        match (text(change, "/$patch"), position) {
            ("delete", Some(position)) => drop(items.remove(position)),
            ("delete", None) => {}
            ("replace", _) if change.get(key).is_none() => {}
            (_, Some(position)) => {
                if let Some(item) = items.get_mut(position) {
                    strategic_patch(schema.item(), item, change);
                }
            }
            (_, None) => {
                items.push(without_directives(change));
                added += 1;
            }
        }
    }
    added
}

fn take_values(members: &mut Map<String, Value>, list: &str, values: &Value) {
    if let (Some(Value::Array(items)), Value::Array(values)) = (members.get_mut(list), values) {
        items.retain(|item| !values.contains(item));
    }
}

/// Puts the items that the patch names into its order, those that it does not name behind them.
fn reorder(schema: Schema<'_>, target: Option<&mut Value>, order: &Value) {
    let (Some(Value::Array(items)), Value::Array(order)) = (target, order) else { return };
    let key = match schema.list() {
        List::Map(keys) => keys.into_iter().next(),
        _ => None,
    };
    let place = |item: &Value| {
        let same = |other: &Value| match &key {
            Some(key) => item.get(key).is_some() && item.get(key) == other.get(key),
            None => item == other,
        };
        order.iter().position(same).unwrap_or(order.len())
    };
    items.sort_by_key(place);
}

/// The value of a patch where there is none yet.
fn without_directives(patch: &Value) -> Value {
    match patch {
        Value::Object(members) => {
            let said = members.iter().filter(|(name, value)| !name.starts_with('$') && !value.is_null());
            Value::Object(said.map(|(name, value)| (name.clone(), without_directives(value))).collect())
        }
        Value::Array(items) => {
            let directive = |item: &&Value| item.get(DIRECTIVE).is_none();
            items.iter().filter(directive).map(without_directives).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merges_lists_by_their_keys() {
        let target = json!({"spec": {"containers": [{"name": "a", "image": "1", "env": [{"name": "x", "value": "1"}]}, {"name": "b"}],
                                     "tolerations": [{"key": "k"}]},
                            "metadata": {"finalizers": ["f"], "labels": {"l": "1"}}});
        let cases = [
            (
                json!({"spec": {"containers": [{"name": "a", "image": "2"}]}}),
                "/spec/containers/0/env/0/value",
                json!("1"),
            ),
            (json!({"spec": {"containers": [{"name": "a", "image": "2"}]}}), "/spec/containers/0/image", json!("2")),
            (json!({"spec": {"containers": [{"name": "c"}]}}), "/spec/containers/0", json!({"name": "c"})),
            (
                json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
                "/spec/containers",
                json!([{"name": "b"}]),
            ),
            (
                json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "c"}]}}),
                "/spec/containers",
                json!([{"name": "c"}]),
            ),
            (
                json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}),
                "/spec/containers/0/name",
                json!("b"),
            ),
            (json!({"spec": {"tolerations": [{"key": "j"}]}}), "/spec/tolerations", json!([{"key": "j"}])),
            (json!({"metadata": {"finalizers": ["g"]}}), "/metadata/finalizers", json!(["g", "f"])),
            (json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["f"]}}), "/metadata/finalizers", json!([])),
            (json!({"metadata": {"labels": {"l": null, "m": "2"}}}), "/metadata/labels", json!({"m": "2"})),
            (json!({"metadata": {"labels": {"$patch": "replace", "m": "2"}}}), "/metadata/labels", json!({"m": "2"})),
        ];
        for (patch, pointer, wanted) in cases {
            let mut patched = target.clone();
            strategic_patch(Schema::Named { parent: "", name: "" }, &mut patched, &patch);
            assert_eq!(patched.pointer(pointer), Some(&wanted), "{patch}");
        }
    }
}
