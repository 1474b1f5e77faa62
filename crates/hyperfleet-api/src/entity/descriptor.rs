//! Kinds of resources as the configuration describes them.

use serde::{Deserialize, Deserializer};

/// Maximum number of characters of a name that the store accepts.
pub const MAX_NAME: usize = 100;

/// One kind of resource, as the configuration's `entities[]` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// The kind's name, such as `Cluster`.
    pub kind: String,
    /// The path segment under which it is served, such as `clusters`.
    pub plural: String,
    /// The kind of the parent, if resources of this kind have one.
    #[serde(default, deserialize_with = "not_blank")]
    pub parent_kind: Option<String>,
    /// The component of the `OpenAPI` document that specs must satisfy.
    #[serde(default, deserialize_with = "not_blank")]
    pub spec_schema_name: Option<String>,
    /// True if the server does not start without that component.
    #[serde(default)]
    pub require_spec_schema: bool,
    /// The effect of the parent's deletion on resources of this kind.
    #[serde(default, deserialize_with = "null_is_default")]
    pub on_parent_delete: OnParentDelete,
    /// The adapters whose reports decide whether a resource is reconciled.
    #[serde(default, deserialize_with = "null_is_default")]
    pub required_adapters: Vec<String>,
    /// The types of references that a resource may or must have.
    #[serde(default, deserialize_with = "null_is_default")]
    pub references: Vec<ReferenceRule>,
    /// Further conditions, computed from the reports.
    #[serde(default, deserialize_with = "null_is_default")]
    pub conditions: Vec<ConditionMapping>,
    /// Minimum number of characters of a name; 0 means 1.
    #[serde(default)]
    pub name_min_len: usize,
    /// Maximum number of characters of a name; 0 means the store's own limit, 100.
    #[serde(default)]
    pub name_max_len: usize,
    /// Fields that HyperFleet's API once kept from searches; has no effect.
    #[serde(default)]
    pub search_disallowed_fields: Option<Vec<String>>,
}

/// The effect of a parent's deletion on its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnParentDelete {
    /// Active children forbid it.
    #[default]
    #[serde(alias = "")]
    Restrict,
    /// They are deleted with it.
    Cascade,
}

/// A type of reference.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceRule {
    /// The type's name, such as `wif_config`.
    pub ref_type: String,
    /// The kind of the targets.
    pub target_kind: String,
    /// Minimum number of references.
    #[serde(default)]
    pub min: usize,
    /// Maximum number of references; 0 means any number.
    #[serde(default)]
    pub max: usize,
}

/// A condition that is computed from the reports by CEL expressions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionMapping {
    /// The condition's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// True while the resource has the condition.
    pub when: MappingExpression,
    /// The condition.
    pub output: MappingOutput,
}

/// The expressions of a computed condition.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingOutput {
    /// `True` or `False`, in any case.
    pub status: MappingExpression,
    /// The reason.
    pub reason: MappingExpression,
    /// The message.
    pub message: MappingExpression,
}

/// One expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingExpression {
    /// The source, in CEL.
    pub expression: String,
}

/// Reads null as the default.
fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(given: D) -> Result<T, D::Error> {
    Option::deserialize(given).map(Option::unwrap_or_default)
}

/// Reads a blank text as none.
fn not_blank<'de, D: Deserializer<'de>>(given: D) -> Result<Option<String>, D::Error> {
    let given: Option<String> = Option::deserialize(given)?;
    Ok(given.filter(|text| !text.trim().is_empty()))
}

// === impl Descriptor ===

impl Descriptor {
    /// Returns the maximum number of characters of a name.
    pub fn max_name_length(&self) -> usize {
        if self.name_max_len == 0 { MAX_NAME } else { self.name_max_len }
    }

    /// Returns the minimum number of characters of a name.
    pub fn min_name_length(&self) -> usize {
        self.name_min_len.max(1)
    }

    /// Returns true if adapters reconcile resources of this kind.
    pub fn has_adapters(&self) -> bool {
        !self.required_adapters.is_empty()
    }
}
