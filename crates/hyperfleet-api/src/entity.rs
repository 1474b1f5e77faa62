//! Which kinds of resources there are: the descriptors of the configuration, checked.

use serde::Deserialize;

/// One kind of resource, as the configuration's `entities[]` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// Such as `Cluster`.
    pub kind: String,
    /// The path segment under which it is served, such as `clusters`.
    pub plural: String,
    /// The kind that each resource of this kind belongs to one of.
    #[serde(default)]
    pub parent_kind: Option<String>,
    /// The component of the `OpenAPI` document that specs must satisfy.
    #[serde(default)]
    pub spec_schema_name: Option<String>,
    /// Whether starting without that component is an error.
    #[serde(default)]
    pub require_spec_schema: bool,
    /// What becomes of resources of this kind when their parent is deleted.
    #[serde(default)]
    pub on_parent_delete: OnParentDelete,
    /// The adapters whose reports decide whether a resource is reconciled.
    #[serde(default)]
    pub required_adapters: Vec<String>,
    /// What a resource may or must refer to.
    #[serde(default)]
    pub references: Vec<ReferenceRule>,
    /// Further conditions, computed from the reports.
    #[serde(default)]
    pub conditions: Vec<ConditionMapping>,
    /// The fewest characters of a name; 0 means 1.
    #[serde(default)]
    pub name_min_len: usize,
    /// The most characters of a name; 0 means the store's own limit, 100.
    #[serde(default)]
    pub name_max_len: usize,
}

/// What becomes of children when their parent is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnParentDelete {
    /// Living children forbid it.
    #[default]
    Restrict,
    /// They are deleted with it.
    Cascade,
}

/// A type of reference.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceRule {
    /// Its name, such as `wif_config`.
    pub ref_type: String,
    /// The kind that it points to.
    pub target_kind: String,
    /// How many there must be at least.
    #[serde(default)]
    pub min: usize,
    /// How many there may be; 0 means any number.
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
    /// An expression that is true or false, or one of the texts `True` and `False`.
    pub status: String,
    /// An expression whose text becomes the reason.
    #[serde(default)]
    pub reason: Option<String>,
    /// An expression whose text becomes the message.
    #[serde(default)]
    pub message: Option<String>,
}
