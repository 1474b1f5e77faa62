//! The registry of kinds: the descriptors of the configuration, checked.

mod check;
mod descriptor;

pub use descriptor::{
    ConditionMapping, Descriptor, MAX_NAME, MappingExpression, MappingOutput, OnParentDelete, ReferenceRule,
};

/// The base of every path.
pub const BASE_PATH: &str = "/api/hyperfleet/v1";

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
        let errors: Vec<String> = (0..registry.descriptors.len())
            .flat_map(|index| {
                let faults = check::faults(&registry.descriptors, index);
                faults.into_iter().map(move |fault| format!("entities[{index}].{fault}"))
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
}
