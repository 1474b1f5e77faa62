//! Server-side apply: merge a configuration, refuse what others own, remove what is no longer wanted.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::super::meta::stamp;
use super::super::status::{Cause, Status};
use super::super::value::{object, take};
use super::compare::{compare, owned};
use super::managed::{Entry, Writer, entries, strip, write_entries};
use super::schema::{List, Schema, step};
use super::set::Set;

/// An applied configuration.
#[derive(Debug)]
pub(crate) struct Application<'a> {
    pub(crate) schema: Schema<'a>,
    pub(crate) writer: &'a Writer,
    /// True if to take over what others own.
    pub(crate) force: bool,
    pub(crate) now: Timestamp,
}

impl Application<'_> {
    /// The resulting object.
    pub(crate) fn apply(&self, live: &Value, configuration: &Value) -> Result<Value, Status> {
        let mut others = entries(live);
        if others.is_empty() && live.pointer("/metadata/uid").is_some() {
            others.push(self.before_first_apply(live));
        }
        let index = others.iter().position(|entry| entry.is_of(self.writer));
        let mine = index.map(|index| others.remove(index));
        let mut wanted = owned(self.schema, configuration);
        strip(&mut wanted);
        let mut merged = merge(self.schema, live, configuration);
        take(&mut merged, &["metadata", "managedFields"]);
        let mut plain = live.clone();
        take(&mut plain, &["metadata", "managedFields"]);
        let written = compare(self.schema, &plain, &merged).written();
        self.settle_conflicts(&mut others, &written)?;
        let before = mine.as_ref().map(|entry| entry.set.clone()).unwrap_or_default();
        let theirs = others.iter().fold(Set::default(), |all, entry| all.union(&entry.set));
        remove(self.schema, &mut merged, &before.without(&wanted), Some(&theirs));
        let unchanged = merged == plain && before == wanted;
        let mut entry = mine.unwrap_or_else(|| Entry::new(self.writer));
        if !unchanged || entry.time.is_empty() || entry.api_version != self.writer.api_version {
            entry.time = stamp(self.now);
        }
        entry.set = wanted;
        entry.api_version.clone_from(&self.writer.api_version);
        // Where the entry was is where it stays, so that nothing differs when nothing changed.
        others.insert(index.unwrap_or(others.len()).min(others.len()), entry);
        write_entries(&mut merged, &others);
        Ok(merged)
    }

    /// The fields of an object without bookkeeping belong to its earlier writer.
    fn before_first_apply(&self, live: &Value) -> Entry {
        let mut set = owned(self.schema, live);
        strip(&mut set);
        let writer = Writer { name: "before-first-apply".to_owned(), apply: false, ..self.writer.clone() };
        Entry { set, time: stamp(self.now), ..Entry::new(&writer) }
    }

    fn settle_conflicts(&self, others: &mut [Entry], written: &Set) -> Result<(), Status> {
        let mut conflicts = Vec::new();
        for entry in others {
            let disputed = entry.set.and(written);
            if self.force {
                entry.set = entry.set.minus(&disputed);
            } else {
                conflicts.extend(disputed.paths().into_iter().map(|path| (entry.shown(), path)));
            }
        }
        if conflicts.is_empty() { Ok(()) } else { Err(refusal(&conflicts)) }
    }
}

fn refusal(conflicts: &[(String, String)]) -> Status {
    let message = match conflicts {
        [(manager, path)] => format!("Apply failed with 1 conflict: conflict with {manager}: {path}"),
        many => {
            let mut lines = Vec::new();
            let mut last = "";
            for (manager, path) in many {
                if manager != last {
                    lines.push(format!("conflicts with {manager}:"));
                    last = manager;
                }
                lines.push(format!("- {path}"));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    let cause = |(manager, path): &(String, String)| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {manager}"),
        field: path.clone(),
    };
    let causes: Vec<Cause> = conflicts.iter().map(cause).collect();
    Status::new(409, message).with_causes(&causes)
}

/// The live value with everything that the configuration says.
fn merge(schema: Schema<'_>, live: &Value, wanted: &Value) -> Value {
    match (live, wanted) {
        (Value::Object(_), Value::Object(members)) if !schema.is_atomic() => {
            let mut merged = live.clone();
            for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                let before = live.get(name).unwrap_or(&Value::Null);
                object(&mut merged).insert(name.clone(), merge(schema.member(name), before, value));
            }
            merged
        }
        (Value::Array(before), Value::Array(items)) => match schema.list() {
            List::Atomic => wanted.clone(),
            List::Set => {
                let new = items.iter().filter(|item| !before.contains(item));
                before.iter().chain(new).cloned().collect()
            }
            List::Map(keys) => merge_items(schema, &keys, before, items),
        },
        _ => without_nulls(wanted),
    }
}

fn merge_items(schema: Schema<'_>, keys: &[String], before: &[Value], items: &[Value]) -> Value {
    let mut merged = before.to_vec();
    for item in items {
        let key = step(keys, item);
        match merged.iter_mut().find(|other| key.is_some() && step(keys, other) == key) {
            Some(other) => *other = merge(schema.item(), other, item),
            None => merged.push(without_nulls(item)),
        }
    }
    Value::Array(merged)
}

/// A null in a configuration is nothing.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(name, value)| (name.clone(), without_nulls(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Takes away the fields of a set, apart from those that others own or that hold something of theirs.
fn remove(schema: Schema<'_>, value: &mut Value, unwanted: &Set, theirs: Option<&Set>) {
    match value {
        Value::Object(members) => {
            for (step, unwanted) in &unwanted.below {
                let Some(name) = step.strip_prefix("f:") else { continue };
                let theirs = theirs.and_then(|set| set.below.get(step));
                let Some(member) = members.get_mut(name) else { continue };
                if !(unwanted.own && theirs.is_none_or(Set::is_empty)) {
                    remove(schema.member(name), member, unwanted, theirs);
                    if !is_empty(member) || theirs.is_some_and(|set| !set.is_empty()) {
                        continue;
                    }
                }
                members.remove(name);
            }
        }
        Value::Array(items) => {
            let list = schema.list();
            items.retain_mut(|item| {
                let step = match &list {
                    List::Atomic => None,
                    List::Set => Some(format!("v:{item}")),
                    List::Map(keys) => step(keys, item),
                };
                let Some((step, unwanted)) = step.and_then(|step| unwanted.below.get_key_value(&step)) else {
                    return true;
                };
                let theirs = theirs.and_then(|set| set.below.get(step));
                if unwanted.own && theirs.is_none_or(Set::is_empty) {
                    return false;
                }
                remove(schema.item(), item, unwanted, theirs);
                true
            });
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
