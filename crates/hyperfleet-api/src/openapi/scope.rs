//! The resources of a group of paths: a kind, a kind below its parent, or every kind.

use serde_json::Value;

use super::parameters;
use super::reference::schema;
use crate::entity::{BASE_PATH, Descriptor};

/// The tag of the paths for every kind. No kind can have that name, since it contains a blank.
pub(super) const ANY_KIND: &str = "Any kind";

/// The resources of a group of paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    /// The kind; `None` means every kind.
    pub(super) descriptor: Option<&'a Descriptor>,
    /// The kind of the owner in the path.
    pub(super) parent: Option<&'a Descriptor>,
}

impl Scope<'_> {
    /// The path of the collection.
    pub(super) fn collection(&self) -> String {
        let plural = self.descriptor.map_or("resources", |descriptor| &descriptor.plural);
        match self.parent {
            Some(parent) => format!("{BASE_PATH}/{}/{{{}}}/{plural}", parent.plural, id_parameter(&parent.kind)),
            None => format!("{BASE_PATH}/{plural}"),
        }
    }

    /// The path of one resource.
    pub(super) fn item(&self) -> String {
        format!("{}/{{{}}}", self.collection(), self.id_parameter())
    }

    /// The name in the ids of operations, such as `NodePoolOfCluster`.
    pub(super) fn word(&self) -> String {
        let kind = self.descriptor.map_or("AnyResource", |descriptor| &descriptor.kind);
        match self.parent {
            Some(parent) => format!("{kind}Of{}", parent.kind),
            None => kind.to_owned(),
        }
    }

    /// One resource in a sentence, such as `a NodePool of a Cluster`.
    pub(super) fn one(&self) -> String {
        let article = |kind: &str| if kind.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
        match (self.descriptor, self.parent) {
            (None, _) => "a resource of any kind".to_owned(),
            (Some(own), None) => format!("{} {}", article(&own.kind), own.kind),
            (Some(own), Some(parent)) => {
                format!("{} {} of {} {}", article(&own.kind), own.kind, article(&parent.kind), parent.kind)
            }
        }
    }

    /// All resources in a sentence.
    pub(super) fn all(&self) -> String {
        match (self.descriptor, self.parent) {
            (None, _) => "the resources of all kinds".to_owned(),
            (Some(own), None) => format!("the {}", own.plural),
            (Some(own), Some(parent)) => format!("the {} of a {}", own.plural, parent.kind),
        }
    }

    /// The tag of the operations.
    pub(super) fn tag(&self) -> String {
        self.descriptor.map_or(ANY_KIND, |descriptor| &descriptor.kind).to_owned()
    }

    /// The schema of a resource.
    pub(super) fn resource(&self) -> Value {
        schema(self.descriptor.map_or("Resource", |descriptor| &descriptor.kind))
    }

    /// The schema of a list.
    pub(super) fn list(&self) -> Value {
        schema(&format!("{}List", self.descriptor.map_or("Resource", |descriptor| &descriptor.kind)))
    }

    /// The schema of a PATCH body.
    pub(super) fn patch(&self) -> Value {
        schema(&format!("{}Patch", self.descriptor.map_or("Resource", |descriptor| &descriptor.kind)))
    }

    /// The schema of a POST body.
    pub(super) fn creation(&self) -> Value {
        schema(&format!("{}Create", self.descriptor.map_or("Resource", |descriptor| &descriptor.kind)))
    }

    /// True if nothing can be created at the collection, since the path names no owner.
    pub(super) fn misses_owner(&self) -> bool {
        self.parent.is_none() && self.descriptor.is_some_and(|descriptor| descriptor.parent_kind.is_some())
    }

    /// The path parameters of the collection.
    pub(super) fn owner_parameters(&self) -> Vec<Value> {
        let of = |parent: &Descriptor| parameters::id(&id_parameter(&parent.kind), &parent.kind);
        self.parent.map(of).into_iter().collect()
    }

    /// The path parameters of one resource.
    pub(super) fn item_parameters(&self) -> Vec<Value> {
        let kind = self.descriptor.map_or("resource", |descriptor| &descriptor.kind);
        let mut parameters = self.owner_parameters();
        parameters.push(parameters::id(&self.id_parameter(), kind));
        parameters
    }

    fn id_parameter(&self) -> String {
        id_parameter(self.descriptor.map_or("resource", |descriptor| &descriptor.kind))
    }
}

fn id_parameter(kind: &str) -> String {
    format!("{}_id", kind.to_lowercase())
}
