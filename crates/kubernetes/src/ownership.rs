//! Field ownership: the entries of `metadata.managedFields`, and their transfer to one manager's server-side apply.
//!
//! An apply removes what its manager no longer sets only if it set that by an earlier apply. What the manager has created or
//! updated otherwise, and what other managers have added to fields that are its alone, is transferred to it first, as
//! client-go's `csaupgrade` does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use serde_json::{Map, Value};

/// A tree of fields, whose edges are written as `FieldsV1` writes them: `f:name`, `k:{"key":"value"}`.
pub type Fields = Map<String, Value>;

/// The fields that a manager owns.
pub fn owned(metadata: &ObjectMeta, manager: &str) -> Fields {
    fields_of(metadata, |entry| entry.manager.as_deref() == Some(manager))
}

/// The fields that a manager owns by its server-side apply.
pub fn applied(metadata: &ObjectMeta, manager: &str) -> Fields {
    fields_of(metadata, |entry| entry.manager.as_deref() == Some(manager) && is_apply(entry))
}

fn fields_of(metadata: &ObjectMeta, is_wanted: impl Fn(&ManagedFieldsEntry) -> bool) -> Fields {
    let mut all = Fields::new();
    for entry in metadata.managed_fields.iter().flatten().filter(|entry| is_wanted(entry)) {
        unite(&mut all, fields(entry));
    }
    all
}

fn is_apply(entry: &ManagedFieldsEntry) -> bool {
    entry.operation.as_deref() == Some("Apply")
}

/// Returns true if another manager owns a field at or below one of these paths, such as `spec.template.spec`.
pub fn is_shared(metadata: &ObjectMeta, manager: &str, exclusive: &[&str]) -> bool {
    let mut others = metadata.managed_fields.iter().flatten().filter(|entry| entry.manager.as_deref() != Some(manager));
    others.any(|entry| {
        let fields = fields(entry);
        exclusive
            .iter()
            .any(|path| steps(path).try_fold(&fields, |fields, step| fields.get(&step)?.as_object()).is_some())
    })
}

/// The entries after the transfer to `manager`: all of its own fields, and those of others at and below `exclusive`. `None` if
/// there is nothing to transfer.
pub(crate) fn transferred(
    entries: &[ManagedFieldsEntry],
    manager: &str,
    exclusive: &[&str],
) -> Option<Vec<ManagedFieldsEntry>> {
    let mut applied = None;
    let mut kept = Vec::new();
    let mut taken = Fields::new();
    let mut source = None;
    for entry in entries {
        let is_own =
            entry.manager.as_deref() == Some(manager) && entry.subresource.as_deref().is_none_or(str::is_empty);
        if is_own && is_apply(entry) {
            applied = Some(entry.clone());
            continue;
        }
        let mut rest = fields(entry);
        let part = if is_own { std::mem::take(&mut rest) } else { cut_all(&mut rest, exclusive) };
        if part.is_empty() {
            kept.push(entry.clone());
            continue;
        }
        unite(&mut taken, part);
        source.get_or_insert(entry);
        if !rest.is_empty() {
            kept.push(ManagedFieldsEntry { fields_v1: Some(FieldsV1(Value::Object(rest))), ..entry.clone() });
        }
    }
    let source = source?;
    let mut applied = applied.unwrap_or_else(|| ManagedFieldsEntry {
        manager: Some(manager.to_owned()),
        operation: Some("Apply".to_owned()),
        subresource: None,
        fields_v1: None,
        ..source.clone()
    });
    unite(&mut taken, fields(&applied));
    applied.fields_v1 = Some(FieldsV1(Value::Object(taken)));
    kept.insert(0, applied);
    Some(kept)
}

fn fields(entry: &ManagedFieldsEntry) -> Fields {
    let fields = entry.fields_v1.as_ref().and_then(|FieldsV1(fields)| fields.as_object());
    fields.cloned().unwrap_or_default()
}

/// The edges of a path in a tree of fields.
fn steps(path: &str) -> impl Iterator<Item = String> {
    path.split('.').map(|name| format!("f:{name}"))
}

/// Takes the fields at and below the paths out of a tree, as a tree.
fn cut_all(fields: &mut Fields, paths: &[&str]) -> Fields {
    let mut taken = Fields::new();
    for path in paths {
        let steps: Vec<String> = steps(path).collect();
        unite(&mut taken, cut(fields, &steps));
    }
    taken
}

fn cut(fields: &mut Fields, steps: &[String]) -> Fields {
    let Some((first, rest)) = steps.split_first() else { return std::mem::take(fields) };
    let Some(Value::Object(mut below)) = fields.remove(first) else { return Fields::new() };
    let is_leaf = below.is_empty();
    let part = cut(&mut below, rest);
    let is_taken = !part.is_empty() || (is_leaf && rest.is_empty());
    if !below.is_empty() || !is_taken {
        fields.insert(first.clone(), Value::Object(below));
    }
    if is_taken { Fields::from_iter([(first.clone(), Value::Object(part))]) } else { Fields::new() }
}

/// Adds a tree to another; a field that is itself in either is in the result, beside what is below it.
fn unite(fields: &mut Fields, other: Fields) {
    for (step, theirs) in other {
        match (fields.get_mut(&step), theirs) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => {
                if ours.is_empty() != theirs.is_empty() {
                    ours.insert(".".to_owned(), Value::Object(Fields::new()));
                }
                unite(ours, theirs);
            }
            (_, theirs) => drop(fields.insert(step, theirs)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some(operation.to_owned()),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    fn shown(entries: &[ManagedFieldsEntry]) -> Value {
        let line = |entry: &ManagedFieldsEntry| json!([entry.manager, entry.operation, fields(entry)]);
        entries.iter().map(line).collect()
    }

    #[test]
    fn own_updates_become_applied() {
        let created = entry("us", "Update", json!({"f:data": {".": {}, "f:a": {}}}));
        let theirs = entry("them", "Update", json!({"f:data": {"f:b": {}}}));
        let after = transferred(&[created.clone(), theirs.clone()], "us", &[]).unwrap();
        assert_eq!(
            shown(&after),
            json!([["us", "Apply", {"f:data": {".": {}, "f:a": {}}}], ["them", "Update", {"f:data": {"f:b": {}}}]])
        );
        assert_eq!(transferred(&after, "us", &[]), None);
        let applied = entry("us", "Apply", json!({"f:data": {"f:c": {}}}));
        let after = transferred(&[applied, created], "us", &[]).unwrap();
        assert_eq!(shown(&after), json!([["us", "Apply", {"f:data": {".": {}, "f:a": {}, "f:c": {}}}]]));
    }

    #[test]
    fn exclusive_fields_of_others_are_taken_over() {
        let applied = entry("us", "Apply", json!({"f:spec": {"f:pod": {"f:image": {}}}}));
        let theirs = entry("them", "Apply", json!({"f:spec": {"f:pod": {"f:env": {"k:{}": {}}}, "f:other": {}}}));
        let whole = entry("more", "Update", json!({"f:spec": {"f:pod": {}}}));
        let entries = [applied.clone(), theirs, whole];
        let after = transferred(&entries, "us", &["spec.pod"]).unwrap();
        let ours = json!({"f:spec": {"f:pod": {".": {}, "f:env": {"k:{}": {}}, "f:image": {}}}});
        assert_eq!(shown(&after), json!([["us", "Apply", ours], ["them", "Apply", {"f:spec": {"f:other": {}}}]]));
        let metadata = |entries: &[ManagedFieldsEntry]| ObjectMeta {
            managed_fields: Some(entries.to_vec()),
            ..ObjectMeta::default()
        };
        assert!(is_shared(&metadata(&entries), "us", &["data", "spec.pod"]));
        assert!(!is_shared(&metadata(&entries), "us", &["data"]));
        assert!(!is_shared(&metadata(&after), "us", &["spec.pod"]));
    }

    #[test]
    fn a_status_is_not_taken_over() {
        let mut status = entry("us", "Update", json!({"f:status": {"f:ready": {}}}));
        status.subresource = Some("status".to_owned());
        assert_eq!(transferred(&[status], "us", &["spec"]), None);
    }
}
