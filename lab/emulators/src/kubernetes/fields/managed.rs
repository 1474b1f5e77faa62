//! `metadata.managedFields`: each manager's entry, and what plain writes do to them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::meta::stamp;
use super::super::value::{list, set, take, text};
use super::compare::compare;
use super::schema::Schema;
use super::set::Set;

/// A writer and the operation that is recorded for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) name: String,
    /// `Update` or `Apply`.
    pub(crate) apply: bool,
    pub(crate) api_version: String,
    /// Such as `status`; empty for the object itself.
    pub(crate) subresource: &'static str,
}

/// One manager's entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) manager: String,
    pub(crate) apply: bool,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
    pub(crate) time: String,
    pub(crate) set: Set,
}

/// Fields without a manager.
const UNMANAGED: [&[&str]; 14] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "generateName"],
    &["metadata", "creationTimestamp"],
    &["metadata", "deletionTimestamp"],
    &["metadata", "deletionGracePeriodSeconds"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "generation"],
    &["metadata", "resourceVersion"],
    &["metadata", "managedFields"],
    &["metadata", "clusterName"],
];

impl Entry {
    pub(crate) fn new(writer: &Writer) -> Self {
        Self {
            manager: writer.name.clone(),
            apply: writer.apply,
            api_version: writer.api_version.clone(),
            subresource: writer.subresource.to_owned(),
            time: String::new(),
            set: Set::default(),
        }
    }

    pub(crate) fn is_of(&self, writer: &Writer) -> bool {
        self.manager == writer.name
            && self.apply == writer.apply
            && self.subresource == writer.subresource
            && (self.apply || self.api_version == writer.api_version)
    }

    /// As refusals name the manager.
    pub(crate) fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            shown = format!("{shown} with subresource {:?}", self.subresource);
        }
        if self.apply { shown } else { format!("{shown} using {}", self.api_version) }
    }

    fn read(entry: &Value) -> Self {
        let own = |pointer| text(entry, pointer).to_owned();
        Self {
            manager: own("/manager"),
            apply: text(entry, "/operation") == "Apply",
            api_version: own("/apiVersion"),
            subresource: own("/subresource"),
            time: own("/time"),
            set: entry.get("fieldsV1").map(Set::read).unwrap_or_default(),
        }
    }

    fn json(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": if self.apply { "Apply" } else { "Update" },
            "apiVersion": self.api_version, "time": self.time, "fieldsType": "FieldsV1", "fieldsV1": self.set.json(),
        });
        if !self.subresource.is_empty() {
            set(&mut entry, &["subresource"], self.subresource.clone());
        }
        entry
    }
}

/// The entries that an object has.
pub(crate) fn entries(object: &Value) -> Vec<Entry> {
    list(object, "/metadata/managedFields").iter().map(Entry::read).collect()
}

/// Puts entries into an object, in a real server's order; those that own nothing are left out.
pub(crate) fn write_entries(object: &mut Value, entries: &[Entry]) {
    let mut entries: Vec<&Entry> = entries.iter().filter(|entry| !entry.set.is_empty()).collect();
    entries.sort_by_key(|entry| (!entry.apply, &entry.time, &entry.manager, &entry.api_version, &entry.subresource));
    let entries: Vec<Value> = entries.into_iter().map(Entry::json).collect();
    if entries.is_empty() {
        take(object, &["metadata", "managedFields"]);
    } else {
        set(object, &["metadata", "managedFields"], entries);
    }
}

/// Removes fields without a manager.
pub(crate) fn strip(set: &mut Set) {
    for path in UNMANAGED {
        set.cut(path);
    }
}

/// Records a plain write: the fields that `writer` changed between `old` and `new` become its own alone. Entries that the
/// write itself brings take the place of the old ones.
pub(crate) fn note(schema: Schema<'_>, old: &Value, new: &mut Value, writer: &Writer, now: Timestamp) {
    let mut entries = match new.pointer("/metadata/managedFields") {
        // An empty list is how a client resets the bookkeeping.
        Some(Value::Array(given)) if given.is_empty() || given == &[json!({})] => Vec::new(),
        Some(Value::Array(_)) => entries(new),
        _ => entries(old),
    };
    let difference = compare(schema, old, new);
    let mut written = difference.written();
    strip(&mut written);
    for entry in &mut entries {
        entry.set = entry.set.minus(&difference.removed);
        if !entry.is_of(writer) {
            entry.set = entry.set.minus(&written);
        }
    }
    if !written.is_empty() {
        let index = entries.iter().position(|entry| entry.is_of(writer));
        let mut entry = index.map_or_else(|| Entry::new(writer), |index| entries.remove(index));
        entry.set = std::mem::take(&mut entry.set).union(&written);
        entry.time = stamp(now);
        entries.push(entry);
    }
    write_entries(new, &entries);
}
