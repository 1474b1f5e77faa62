//! The registry of kinds: the descriptors of the configuration, checked.

use serde::Deserialize;

use crate::decide::aggregate::condition_type;

/// One kind of resource, as the configuration's `entities[]` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Descriptor {
    /// The kind's name, such as `Cluster`.
    pub kind: String,
    /// The path segment under which it is served, such as `clusters`.
    pub plural: String,
    /// The kind of the parent, if resources of this kind have one.
    #[serde(default)]
    pub parent_kind: Option<String>,
    /// The component of the `OpenAPI` document that specs must satisfy.
    #[serde(default)]
    pub spec_schema_name: Option<String>,
    /// True if the server does not start without that component.
    #[serde(default)]
    pub require_spec_schema: bool,
    /// The effect of the parent's deletion on resources of this kind.
    #[serde(default)]
    pub on_parent_delete: OnParentDelete,
    /// The adapters whose reports decide whether a resource is reconciled.
    #[serde(default)]
    pub required_adapters: Vec<String>,
    /// The types of references that a resource may or must have.
    #[serde(default)]
    pub references: Vec<ReferenceRule>,
    /// Further conditions, computed from the reports.
    #[serde(default)]
    pub conditions: Vec<ConditionMapping>,
    /// Minimum number of characters of a name; 0 means 1.
    #[serde(default)]
    pub name_min_len: usize,
    /// Maximum number of characters of a name; 0 means the store's own limit, 100.
    #[serde(default)]
    pub name_max_len: usize,
}

/// The effect of a parent's deletion on its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnParentDelete {
    /// Active children forbid it.
    #[default]
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
    /// An expression that is true or false, or one of the texts `True` and `False`.
    pub status: String,
    /// An expression whose text becomes the reason.
    #[serde(default)]
    pub reason: Option<String>,
    /// An expression whose text becomes the message.
    #[serde(default)]
    pub message: Option<String>,
}

/// The base of every path.
pub const BASE_PATH: &str = "/api/hyperfleet/v1";

/// Maximum number of characters of a name that the store accepts.
pub const MAX_NAME: usize = 100;

/// Path segments after an id that are not children.
const RESERVED_SEGMENTS: [&str; 3] = ["statuses", "force-delete", "tombstones"];

/// The kinds that are served.
#[derive(Clone, Debug)]
pub struct Registry {
    descriptors: Vec<Descriptor>,
}

// === impl Registry ===

impl Registry {
    /// Returns the registry of these descriptors, or all errors in them, each with its path.
    pub fn new(descriptors: Vec<Descriptor>) -> Result<Self, Vec<String>> {
        let registry = Self { descriptors };
        let errors: Vec<String> = registry
            .descriptors
            .iter()
            .enumerate()
            .flat_map(|(index, descriptor)| {
                let errors = registry.errors(index, descriptor);
                errors.into_iter().map(move |(member, error)| format!("entities[{index}].{member}: {error}"))
            })
            .collect();
        if errors.is_empty() { Ok(registry) } else { Err(errors) }
    }

    /// Returns HyperFleet's own kinds, which are served if the configuration names none.
    pub fn standard() -> Self {
        let adapters = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let plain = |kind: &str, plural: &str| Descriptor {
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            ..Descriptor::default()
        };
        let cluster = Descriptor {
            required_adapters: adapters(&["validation", "dns", "pullsecret", "hypershift"]),
            references: vec![ReferenceRule {
                ref_type: "wif_config".to_owned(),
                target_kind: "WifConfig".to_owned(),
                min: 0,
                max: 1,
            }],
            name_min_len: 3,
            name_max_len: 53,
            ..plain("Cluster", "clusters")
        };
        let node_pool = Descriptor {
            parent_kind: Some("Cluster".to_owned()),
            on_parent_delete: OnParentDelete::Cascade,
            required_adapters: adapters(&["validation", "hypershift"]),
            name_min_len: 3,
            name_max_len: 15,
            ..plain("NodePool", "nodepools")
        };
        let version = Descriptor { parent_kind: Some("Channel".to_owned()), ..plain("Version", "versions") };
        let descriptors =
            vec![cluster, node_pool, plain("Channel", "channels"), version, plain("WifConfig", "wifconfigs")];
        Self { descriptors }
    }

    /// Returns all descriptors, in the order of the configuration.
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    /// Returns the descriptor of a kind.
    pub fn kind(&self, kind: &str) -> Option<&Descriptor> {
        self.descriptors.iter().find(|descriptor| descriptor.kind == kind)
    }

    /// Returns the descriptor that is served under a path segment.
    pub fn plural(&self, plural: &str) -> Option<&Descriptor> {
        self.descriptors.iter().find(|descriptor| descriptor.plural == plural)
    }

    /// Returns the descriptors of the kinds whose parent is `kind`.
    pub fn children(&self, kind: &str) -> impl Iterator<Item = &Descriptor> {
        self.descriptors.iter().filter(move |descriptor| descriptor.parent_kind.as_deref() == Some(kind))
    }

    /// Returns the path of a resource: below its owner if it has one.
    pub fn href(&self, kind: &str, id: &str, owner_id: Option<&str>) -> String {
        let plural = |kind: &str| self.kind(kind).map_or("resources", |descriptor| &descriptor.plural);
        let parent = self.kind(kind).and_then(|descriptor| descriptor.parent_kind.as_deref());
        match (parent, owner_id) {
            (Some(parent), Some(owner)) => format!("{BASE_PATH}/{}/{owner}/{}/{id}", plural(parent), plural(kind)),
            _ => format!("{BASE_PATH}/{}/{id}", plural(kind)),
        }
    }

    fn errors(&self, index: usize, descriptor: &Descriptor) -> Vec<(&'static str, String)> {
        let mut errors = Vec::new();
        let mut check = |valid: bool, member: &'static str, error: &str| {
            if !valid {
                errors.push((member, error.to_owned()));
            }
        };
        let before = || self.descriptors.iter().take(index);
        let Descriptor { kind, plural, parent_kind, references, required_adapters, .. } = descriptor;
        let is_kind = |kind: &str| {
            (1..=20).contains(&kind.len())
                && kind.starts_with(|first: char| first.is_ascii_uppercase())
                && kind.chars().all(|char| char.is_ascii_alphanumeric())
        };
        check(is_kind(kind), "kind", "must be 1 to 20 letters and digits, beginning with a capital letter");
        check(before().all(|other| other.kind != *kind), "kind", "is defined twice");
        check(fleet_model::id::is_dns_label(plural), "plural", "must be lower-case letters, digits and hyphens");
        check(plural != "resources", "plural", "`resources` is reserved for the endpoints of all kinds");
        check(!RESERVED_SEGMENTS.contains(&plural.as_str()), "plural", "is reserved");
        check(before().all(|other| other.plural != *plural), "plural", "is defined twice");
        if let Some(parent) = parent_kind {
            check(self.kind(parent).is_some(), "parent_kind", "there is no entity of that kind");
            check(!self.is_own_ancestor(kind), "parent_kind", "is its own ancestor");
        } else {
            let cascades = descriptor.on_parent_delete == OnParentDelete::Cascade;
            check(!cascades, "on_parent_delete", "has no effect without parent_kind");
        }
        let longest = descriptor.max_name_length();
        check(longest <= MAX_NAME, "name_max_len", "must be at most 100");
        check(descriptor.name_min_len <= longest, "name_min_len", "must not be more than name_max_len");
        check(required_adapters.iter().all(|name| !name.trim().is_empty()), "required_adapters", "has an empty name");
        let has_duplicates =
            |names: &[&str]| names.iter().enumerate().any(|(at, name)| names.iter().take(at).any(|n| n == name));
        let adapters: Vec<&str> = required_adapters.iter().map(String::as_str).collect();
        let types: Vec<String> = required_adapters.iter().map(|name| condition_type(name)).collect();
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        check(
            has_duplicates(&adapters) || !has_duplicates(&types),
            "required_adapters",
            "names two adapters whose conditions would have the same type",
        );
        check(!has_duplicates(&adapters), "required_adapters", "names an adapter twice");
        let types: Vec<&str> = references.iter().map(|rule| rule.ref_type.as_str()).collect();
        check(!has_duplicates(&types), "references", "has a ref_type twice");
        for rule in references {
            check(
                !rule.ref_type.is_empty() && rule.ref_type.len() <= 63,
                "references",
                "ref_type must have 1 to 63 characters",
            );
            check(self.kind(&rule.target_kind).is_some(), "references", "there is no entity of a target_kind");
            check(rule.max == 0 || rule.min <= rule.max, "references", "min must not be more than max");
        }
        check(
            !descriptor.require_spec_schema || descriptor.spec_schema_name.is_some(),
            "require_spec_schema",
            "has no effect without spec_schema_name",
        );
        errors
    }

    fn is_own_ancestor(&self, kind: &str) -> bool {
        let mut ancestor = self.kind(kind).and_then(|descriptor| descriptor.parent_kind.as_deref());
        // A circle has at most as many kinds as are configured.
        for _ in &self.descriptors {
            match ancestor {
                Some(ancestor) if ancestor == kind => return true,
                Some(other) => ancestor = self.kind(other).and_then(|descriptor| descriptor.parent_kind.as_deref()),
                None => return false,
            }
        }
        false
    }
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
