//! The rules for ids, names, labels and references.

use std::collections::{BTreeMap, BTreeSet};

use super::body::References;
use crate::entity::Descriptor;
use crate::problem::{FieldError, Problem, shown};
use crate::resource::Target;

/// The longest label key that the store takes.
const LONGEST_LABEL_KEY: usize = 255;

/// The id that a client may choose: a DNS label.
pub fn id(id: &str) -> Result<(), Problem> {
    if fleet_model::id::is_dns_label(id) {
        return Ok(());
    }
    let message =
        "id must be 1 to 63 lowercase letters, numbers and hyphens, and start and end with a letter or number";
    Err(Problem::validation(message).at(vec![FieldError::new("id", "pattern", message)]))
}

/// The name of a resource of that kind.
pub fn name(name: &str, descriptor: &Descriptor) -> Result<(), Problem> {
    let fault = |constraint, message: String| {
        Err(Problem::validation(message.clone()).at(vec![FieldError::new("name", constraint, message)]))
    };
    let length = name.chars().count();
    if name.is_empty() {
        return fault("required", "name is required".to_owned());
    }
    if length < descriptor.shortest_name() {
        return fault("min_length", format!("name must be at least {} characters", descriptor.shortest_name()));
    }
    if length > descriptor.longest_name() {
        return fault("max_length", format!("name must be at most {} characters", descriptor.longest_name()));
    }
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let right = bytes.iter().all(|byte| edge(byte) || *byte == b'-')
        && bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge);
    if right {
        return Ok(());
    }
    fault(
        "pattern",
        "name must start and end with lowercase letter or number, and contain only lowercase letters, numbers, and \
         hyphens"
            .to_owned(),
    )
}

/// Labels, by the syntax of Kubernetes.
pub fn labels(labels: &BTreeMap<String, String>) -> Result<(), Problem> {
    let mut faults = Vec::new();
    for (key, value) in labels {
        if !is_label_key(key) {
            let message = "must be a label key: an optional DNS prefix and `/`, then up to 63 letters, digits, `-`, `_`, \
                           `.`, beginning and ending with a letter or digit";
            faults.push(FieldError::new("labels", "pattern", message).with_value(shown(key)));
        } else if !value.is_empty() && !is_label_text(value) {
            let message = "must be empty or up to 63 letters, digits, `-`, `_`, `.`, beginning and ending with a letter \
                           or digit";
            faults.push(FieldError::new(format!("labels[{key}]"), "pattern", message).with_value(shown(value)));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Problem::validation("label validation failed").at(faults)) }
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    key.len() <= LONGEST_LABEL_KEY && prefix.is_none_or(fleet_model::id::is_dns_subdomain) && is_label_text(name)
}

fn is_label_text(text: &str) -> bool {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(inside)
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// A reference of a request: whose type and kind are right, but whose target is yet to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sought {
    /// The type of reference.
    pub ref_type: String,
    /// The kind that the target must have.
    pub kind: String,
    /// The target's id.
    pub id: String,
}

/// What a target turns out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// There is no such resource, or it is of another kind.
    Nothing,
    /// Its deletion has been asked for.
    Deleting,
    /// It can be referred to.
    Living(Target),
}

/// The references of a request, as far as they can be checked without looking at targets; in the order of ids.
pub fn references(given: &References, descriptor: &Descriptor) -> Result<Vec<Sought>, Problem> {
    let kind = &descriptor.kind;
    for rule in &descriptor.references {
        let count = given.get(&rule.ref_type).map_or(0, Vec::len);
        if count < rule.min {
            let detail = format!("required reference type \"{}\" missing for {kind} (min {})", rule.ref_type, rule.min);
            return Err(reference_fault(detail));
        }
    }
    let mut sought = Vec::new();
    for (ref_type, targets) in given {
        let Some(rule) = descriptor.references.iter().find(|rule| rule.ref_type == *ref_type) else {
            return Err(reference_fault(format!("unknown reference type \"{}\" for {kind}", shown(ref_type))));
        };
        let subject = format!("reference type \"{ref_type}\" for {kind}");
        if rule.max > 0 && targets.len() > rule.max {
            let detail = format!("{subject} exceeds max count {} (got {})", rule.max, targets.len());
            return Err(reference_fault(detail));
        }
        let mut seen = BTreeSet::new();
        for target in targets {
            let fault = if target.id.is_empty() {
                Some("id is required".to_owned())
            } else if !seen.insert(&target.id) {
                Some("duplicate target id".to_owned())
            } else {
                target.kind.as_ref().filter(|kind| **kind != rule.target_kind).map(|kind| {
                    format!("kind \"{}\" does not match expected target kind \"{}\"", shown(kind), rule.target_kind)
                })
            };
            if let Some(fault) = fault {
                return Err(reference_fault(format!("{subject}: {fault}")));
            }
            let kind = rule.target_kind.clone();
            sought.push(Sought { ref_type: ref_type.clone(), kind, id: target.id.clone() });
        }
    }
    // Targets are locked in one order, so that two writers never wait for each other.
    sought.sort_by(|one, other| (&one.id, &one.ref_type).cmp(&(&other.id, &other.ref_type)));
    Ok(sought)
}

/// The target of a reference, or why it cannot be referred to.
pub fn target(sought: &Sought, found: Found, descriptor: &Descriptor) -> Result<Target, Problem> {
    let fault = match found {
        Found::Living(target) => return Ok(target),
        Found::Nothing => "not found",
        Found::Deleting => "is marked for deletion",
    };
    let Sought { ref_type, kind, id } = sought;
    let detail =
        format!("reference type \"{ref_type}\" for {}: target {kind} \"{}\" {fault}", descriptor.kind, shown(id));
    Err(reference_fault(detail))
}

fn reference_fault(detail: String) -> Problem {
    let error = FieldError { field: "references".to_owned(), value: None, constraint: None, message: detail.clone() };
    Problem::validation(detail).at(vec![error])
}
