//! Checks a descriptor of the configuration: every fault names the member, the value and the rule.

use fleet_model::names::condition::{LAST_KNOWN_RECONCILED, RECONCILED};

use super::descriptor::{Descriptor, MAX_NAME, OnParentDelete};
use crate::decide::aggregate::condition_type;
use crate::excerpt::excerpt;

/// Path segments after an id that are not children.
const RESERVED_SEGMENTS: [&str; 4] = ["statuses", "force-delete", "tombstones", "causes"];
/// Maximum number of characters of a computed condition's type, as in HyperFleet's API.
const MAX_TYPE: usize = 100;

/// The faults of one descriptor.
struct Faults(Vec<String>);

/// Returns the faults of the descriptor at that index, each with the member's path below it.
pub(super) fn faults(all: &[Descriptor], index: usize) -> Vec<String> {
    let mut faults = Faults(Vec::new());
    if let Some(descriptor) = all.get(index) {
        faults.names(all, index, descriptor);
        faults.parent(all, descriptor);
        faults.lengths(descriptor);
        faults.adapters(descriptor);
        faults.references(all, descriptor);
        faults.conditions(all, descriptor);
    }
    faults.0
}

fn find<'a>(all: &'a [Descriptor], kind: &str) -> Option<&'a Descriptor> {
    all.iter().find(|descriptor| descriptor.kind == kind)
}

fn is_own_ancestor(all: &[Descriptor], kind: &str) -> bool {
    let parent_of = |kind: &str| find(all, kind).and_then(|descriptor| descriptor.parent_kind.as_deref());
    let mut ancestor = parent_of(kind);
    // A circle has at most as many kinds as are configured.
    for _ in all {
        match ancestor {
            Some(ancestor) if ancestor == kind => return true,
            Some(other) => ancestor = parent_of(other),
            None => return false,
        }
    }
    false
}

// === impl Faults ===

impl Faults {
    fn check(&mut self, valid: bool, member: &str, value: &dyn ToString, rule: &str) {
        if !valid {
            self.0.push(format!("{member}: '{}' {rule}", excerpt(&value.to_string())));
        }
    }

    fn names(&mut self, all: &[Descriptor], index: usize, Descriptor { kind, plural, .. }: &Descriptor) {
        let before = || all.iter().take(index);
        let is_kind = (1..=20).contains(&kind.len())
            && kind.starts_with(|first: char| first.is_ascii_uppercase())
            && kind.chars().all(|char| char.is_ascii_alphanumeric());
        self.check(is_kind, "kind", kind, "must be 1 to 20 letters and digits, beginning with a capital letter");
        self.check(before().all(|other| other.kind != *kind), "kind", kind, "is defined twice");
        let is_label = fleet_model::id::is_dns_label(plural);
        self.check(is_label, "plural", plural, "must be lower-case letters, digits and hyphens");
        self.check(plural != "resources", "plural", plural, "is reserved for the endpoints of all kinds");
        self.check(!RESERVED_SEGMENTS.contains(&plural.as_str()), "plural", plural, "is reserved");
        self.check(before().all(|other| other.plural != *plural), "plural", plural, "is defined twice");
    }

    fn parent(&mut self, all: &[Descriptor], Descriptor { kind, parent_kind, on_parent_delete, .. }: &Descriptor) {
        if let Some(parent) = parent_kind {
            self.check(find(all, parent).is_some(), "parent_kind", parent, "is not a configured kind");
            self.check(!is_own_ancestor(all, kind), "parent_kind", parent, "makes the kind its own ancestor");
        } else {
            let cascades = *on_parent_delete == OnParentDelete::Cascade;
            self.check(!cascades, "on_parent_delete", &"cascade", "has no effect without parent_kind");
        }
    }

    fn lengths(&mut self, descriptor: &Descriptor) {
        let (shortest, longest) = (descriptor.name_min_len, descriptor.max_name_length());
        self.check(longest <= MAX_NAME, "name_max_len", &longest, "must be at most 100");
        self.check(shortest <= longest, "name_min_len", &shortest, "must not be more than name_max_len");
        let schema = &descriptor.spec_schema_name;
        let has_effect = !descriptor.require_spec_schema || schema.is_some();
        self.check(has_effect, "require_spec_schema", &"true", "has no effect without spec_schema_name");
    }

    fn adapters(&mut self, Descriptor { required_adapters, .. }: &Descriptor) {
        for (at, adapter) in required_adapters.iter().enumerate() {
            let member = format!("required_adapters[{at}]");
            self.check(!adapter.trim().is_empty(), &member, adapter, "is an empty name");
            let mut earlier = required_adapters.iter().take(at);
            if earlier.any(|other| other == adapter) {
                self.check(false, &member, adapter, "names an adapter twice");
                continue;
            }
            let mut earlier = required_adapters.iter().take(at);
            let is_new = earlier.all(|other| condition_type(other) != condition_type(adapter));
            self.check(is_new, &member, adapter, "has the same condition type as an earlier adapter");
        }
    }

    fn references(&mut self, all: &[Descriptor], Descriptor { references, .. }: &Descriptor) {
        for (at, rule) in references.iter().enumerate() {
            let member = |name: &str| format!("references[{at}].{name}");
            let is_new = references.iter().take(at).all(|other| other.ref_type != rule.ref_type);
            self.check(is_new, &member("ref_type"), &rule.ref_type, "is defined twice");
            let is_short = (1..=63).contains(&rule.ref_type.len());
            self.check(is_short, &member("ref_type"), &rule.ref_type, "must have 1 to 63 characters");
            let is_kind = find(all, &rule.target_kind).is_some();
            self.check(is_kind, &member("target_kind"), &rule.target_kind, "is not a configured kind");
            let fits = rule.max == 0 || rule.min <= rule.max;
            self.check(fits, &member("min"), &rule.min, "must not be more than max");
        }
    }

    /// Checks the types of computed conditions. Those that the API derives from the reports of any kind's adapters are reserved.
    fn conditions(&mut self, all: &[Descriptor], Descriptor { conditions, .. }: &Descriptor) {
        let adapters = all.iter().flat_map(|other| &other.required_adapters);
        let reserved: Vec<String> = adapters.map(|adapter| condition_type(adapter)).collect();
        for (at, mapping) in conditions.iter().enumerate() {
            let (member, kind) = (format!("conditions[{at}].type"), &mapping.kind);
            self.check(!kind.is_empty(), &member, kind, "is empty");
            let is_short = kind.chars().count() <= MAX_TYPE;
            self.check(is_short, &member, kind, "has more than 100 characters");
            let is_free = ![RECONCILED, LAST_KNOWN_RECONCILED].contains(&kind.as_str()) && !reserved.contains(kind);
            self.check(is_free, &member, kind, "is reserved: the API derives the condition itself");
            let is_new = conditions.iter().take(at).all(|other| other.kind != *kind);
            self.check(is_new, &member, kind, "is defined twice");
        }
    }
}
