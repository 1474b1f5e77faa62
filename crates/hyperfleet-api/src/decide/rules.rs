//! Rules for ids, names, labels and references.

use std::collections::{BTreeMap, BTreeSet};

use super::body::References;
use crate::entity::Descriptor;
use crate::excerpt::excerpt;
use crate::resource::Target;

/// Maximum length of a label key that the database stores.
const MAX_LABEL_KEY: usize = 255;

/// An id, a name, labels or a reference that breaks a rule. The text is the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// The id is not a DNS label.
    #[error("id must be 1 to 63 lowercase letters, numbers and hyphens, and start and end with a letter or number")]
    Id,
    /// The name breaks a rule.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Labels break the syntax of Kubernetes.
    #[error("label validation failed")]
    Labels(Vec<LabelError>),
    /// A reference is not allowed or its target is not usable.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// A name that breaks a rule of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is no name.
    #[error("name is required")]
    Missing,
    /// The name has fewer characters than the kind allows.
    #[error("name must be at least {0} characters")]
    TooShort(usize),
    /// The name has more characters than the kind allows.
    #[error("name must be at most {0} characters")]
    TooLong(usize),
    /// The name has characters that are not allowed.
    #[error(
        "name must start and end with lowercase letter or number, and contain only lowercase letters, numbers, and \
         hyphens"
    )]
    Pattern,
}

/// A label that breaks the syntax of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The key is not a label key.
    #[error(
        "must be a label key: an optional DNS prefix and `/`, then up to 63 letters, digits, `-`, `_`, `.`, beginning \
         and ending with a letter or digit"
    )]
    Key(String),
    /// The value is not a label value.
    #[error("must be empty or up to 63 letters, digits, `-`, `_`, `.`, beginning and ending with a letter or digit")]
    Value {
        /// The label's key.
        key: String,
        /// The label's value.
        value: String,
    },
}

/// A reference that is not allowed, or whose target is not usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// Fewer references of a type than the kind requires.
    #[error("required reference type \"{ref_type}\" missing for {kind} (min {min})")]
    Missing {
        /// The type of reference.
        ref_type: String,
        /// The kind of the referring resource.
        kind: String,
        /// Minimum number of references.
        min: usize,
    },
    /// The kind has no references of that type.
    #[error("unknown reference type \"{}\" for {kind}", excerpt(.ref_type))]
    UnknownType {
        /// The type of reference.
        ref_type: String,
        /// The kind of the referring resource.
        kind: String,
    },
    /// More references of a type than the kind allows.
    #[error("reference type \"{ref_type}\" for {kind} exceeds max count {max} (got {given})")]
    TooMany {
        /// The type of reference.
        ref_type: String,
        /// The kind of the referring resource.
        kind: String,
        /// Maximum number of references.
        max: usize,
        /// Number of references in the request.
        given: usize,
    },
    /// One target is not usable.
    #[error("reference type \"{ref_type}\" for {kind}: {cause}")]
    Target {
        /// The type of reference.
        ref_type: String,
        /// The kind of the referring resource.
        kind: String,
        /// The cause.
        cause: TargetError,
    },
}

/// The cause why a target cannot be referred to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The reference has no id.
    #[error("id is required")]
    NoId,
    /// The target is named twice.
    #[error("duplicate target id")]
    Duplicate,
    /// The reference names another kind than the type has.
    #[error("kind \"{}\" does not match expected target kind \"{expected}\"", excerpt(.given))]
    WrongKind {
        /// The kind in the request.
        given: String,
        /// The kind that the type of reference has.
        expected: String,
    },
    /// No resource of that kind has that id.
    #[error("target {kind} \"{}\" not found", excerpt(.id))]
    NotFound {
        /// The target's kind.
        kind: String,
        /// The target's id.
        id: String,
    },
    /// The target's deletion has been requested.
    #[error("target {kind} \"{}\" is marked for deletion", excerpt(.id))]
    Terminating {
        /// The target's kind.
        kind: String,
        /// The target's id.
        id: String,
    },
}

/// Checks the id that a client chose: a DNS label.
pub fn id(id: &str) -> Result<(), RuleError> {
    if fleet_model::id::is_dns_label(id) { Ok(()) } else { Err(RuleError::Id) }
}

/// Checks the name of a resource of that kind.
pub fn name(name: &str, descriptor: &Descriptor) -> Result<(), NameError> {
    let length = name.chars().count();
    if name.is_empty() {
        return Err(NameError::Missing);
    }
    if length < descriptor.min_name_length() {
        return Err(NameError::TooShort(descriptor.min_name_length()));
    }
    if length > descriptor.max_name_length() {
        return Err(NameError::TooLong(descriptor.max_name_length()));
    }
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let matches = bytes.iter().all(|byte| edge(byte) || *byte == b'-')
        && bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge);
    if matches { Ok(()) } else { Err(NameError::Pattern) }
}

/// Checks labels by the syntax of Kubernetes; the error lists every label that breaks it.
pub fn labels(labels: &BTreeMap<String, String>) -> Result<(), RuleError> {
    let errors: Vec<LabelError> = labels
        .iter()
        .flat_map(|(key, value)| {
            let bad_key = (!is_label_key(key)).then(|| LabelError::Key(key.clone()));
            let is_value = value.is_empty() || is_label_text(value);
            let bad_value = (!is_value).then(|| LabelError::Value { key: key.clone(), value: value.clone() });
            bad_key.into_iter().chain(bad_value)
        })
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(RuleError::Labels(errors)) }
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    key.len() <= MAX_LABEL_KEY && prefix.is_none_or(fleet_model::id::is_dns_subdomain) && is_label_text(name)
}

fn is_label_text(text: &str) -> bool {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(inside)
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// A reference of a request whose type and kind are checked and whose target is still to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingReference {
    /// The type of reference.
    pub ref_type: String,
    /// The kind that the target must have.
    pub kind: String,
    /// The target's id.
    pub id: String,
}

/// The observed state of a reference's target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetState {
    /// No resource of that kind has that id.
    Missing,
    /// Its deletion has been requested.
    Terminating,
    /// It can be referred to.
    Active(Target),
}

/// Checks the references of a request as far as is possible without their targets; returns them sorted by id.
pub fn references(given: &References, descriptor: &Descriptor) -> Result<Vec<PendingReference>, ReferenceError> {
    let kind = || descriptor.kind.clone();
    for rule in &descriptor.references {
        if given.get(&rule.ref_type).map_or(0, Vec::len) < rule.min {
            return Err(ReferenceError::Missing { ref_type: rule.ref_type.clone(), kind: kind(), min: rule.min });
        }
    }
    let mut pending = Vec::new();
    for (ref_type, targets) in given {
        let ref_type = || ref_type.clone();
        let Some(rule) = descriptor.references.iter().find(|rule| rule.ref_type == ref_type()) else {
            return Err(ReferenceError::UnknownType { ref_type: ref_type(), kind: kind() });
        };
        if rule.max > 0 && targets.len() > rule.max {
            let (max, given) = (rule.max, targets.len());
            return Err(ReferenceError::TooMany { ref_type: ref_type(), kind: kind(), max, given });
        }
        let mut ids = BTreeSet::new();
        for target in targets {
            let expected = rule.target_kind.clone();
            let cause = if target.id.is_empty() {
                Some(TargetError::NoId)
            } else if !ids.insert(&target.id) {
                Some(TargetError::Duplicate)
            } else {
                let wrong = target.kind.clone().filter(|kind| *kind != expected);
                wrong.map(|given| TargetError::WrongKind { given, expected: expected.clone() })
            };
            if let Some(cause) = cause {
                return Err(ReferenceError::Target { ref_type: ref_type(), kind: kind(), cause });
            }
            pending.push(PendingReference { ref_type: ref_type(), kind: expected, id: target.id.clone() });
        }
    }
    // Targets are locked in one order, so that two writers never wait for each other.
    pending.sort_by(|one, other| (&one.id, &one.ref_type).cmp(&(&other.id, &other.ref_type)));
    Ok(pending)
}

/// Returns the target of a reference if it can be referred to.
pub fn target(
    pending: &PendingReference,
    state: TargetState,
    descriptor: &Descriptor,
) -> Result<Target, ReferenceError> {
    let PendingReference { ref_type, kind, id } = pending.clone();
    let cause = match state {
        TargetState::Active(target) => return Ok(target),
        TargetState::Missing => TargetError::NotFound { kind, id },
        TargetState::Terminating => TargetError::Terminating { kind, id },
    };
    Err(ReferenceError::Target { ref_type, kind: descriptor.kind.clone(), cause })
}
