//! A small pure model of HyperFleet's API for sequences of requests, without any code of the server.

mod conclusions;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use self::conclusions::Concluded;
use crate::rig::BASE;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Cluster,
    NodePool,
    Channel,
    Version,
    WifConfig,
}

pub(crate) const KINDS: [Kind; 5] = [Kind::Cluster, Kind::NodePool, Kind::Channel, Kind::Version, Kind::WifConfig];

impl Kind {
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::NodePool => "nodepools",
            Self::Channel => "channels",
            Self::Version => "versions",
            Self::WifConfig => "wifconfigs",
        }
    }

    pub(crate) fn parent(self) -> Option<Self> {
        match self {
            Self::NodePool => Some(Self::Cluster),
            Self::Version => Some(Self::Channel),
            _ => None,
        }
    }

    pub(crate) fn adapters(self) -> &'static [&'static str] {
        match self {
            Self::Cluster => &["validation", "dns", "pullsecret", "hypershift"],
            Self::NodePool => &["validation", "hypershift"],
            _ => &[],
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Create { id: String, resource: New },
    Patch { kind: Kind, id: String, patch: Patch, if_match: Option<i64> },
    Delete { kind: Kind, id: String },
    ForceDelete { kind: Kind, id: String },
    Report { kind: Kind, id: String, report: Report },
}

#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) owner: Option<String>,
    pub(crate) wif: Option<String>,
    pub(crate) n: u8,
}

/// The change of the one reference that a cluster may have.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reference<T> {
    #[default]
    Kept,
    Cleared,
    To(T),
}

impl<T> Reference<T> {
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Reference<U> {
        match self {
            Self::Kept => Reference::Kept,
            Self::Cleared => Reference::Cleared,
            Self::To(target) => Reference::To(map(target)),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Patch {
    pub(crate) spec: Option<u8>,
    pub(crate) label: Option<u8>,
    pub(crate) wif: Reference<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) adapter: String,
    pub(crate) generation: i64,
    /// The order of observation.
    pub(crate) time: i64,
    pub(crate) available: &'static str,
    pub(crate) finalized: Option<&'static str>,
    /// True if it has the mandatory condition `Health`.
    pub(crate) complete: bool,
    pub(crate) reason: u8,
}

impl Report {
    pub(crate) fn conditions(&self) -> Value {
        let mut conditions = vec![
            json!({ "type": "Available", "status": self.available, "reason": format!("R{}", self.reason) }),
            json!({ "type": "Applied", "status": "True" }),
        ];
        if self.complete {
            conditions.push(json!({ "type": "Health", "status": "True" }));
        }
        conditions.extend(self.finalized.map(|status| json!({ "type": "Finalized", "status": status })));
        Value::Array(conditions)
    }

    fn to_json(&self) -> Value {
        json!({
            "adapter": self.adapter, "observed_generation": self.generation,
            "conditions": self.conditions(), "data": {},
        })
    }
}

#[derive(Clone, Debug)]
struct Resource {
    kind: Kind,
    name: String,
    owner: Option<String>,
    wif: Option<String>,
    spec: u8,
    label: Option<u8>,
    generation: i64,
    deleting: bool,
    reports: BTreeMap<String, Report>,
    conditions: Vec<Value>,
    last_known: Option<Concluded>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    resources: BTreeMap<String, Resource>,
}

impl Model {
    /// Applies a request and returns the status of the answer.
    pub(crate) fn answer(&mut self, request: &Request) -> u16 {
        match request {
            Request::Create { id, resource } => self.create(id, resource),
            Request::Patch { kind, id, patch, if_match } => self.patch(*kind, id, patch, *if_match),
            Request::Delete { kind, id } => self.delete(*kind, id),
            Request::ForceDelete { kind, id } => self.force_delete(*kind, id),
            Request::Report { kind, id, report } => self.report(*kind, id, report),
        }
    }

    pub(crate) fn generation(&self, id: &str) -> i64 {
        self.resources.get(id).map_or(1, |resource| resource.generation)
    }

    fn find(&mut self, kind: Kind, id: &str) -> Option<&mut Resource> {
        self.resources.get_mut(id).filter(|resource| resource.kind == kind)
    }

    fn children(&self, id: &str) -> Vec<String> {
        let below = self.resources.iter().filter(|(_, resource)| resource.owner.as_deref() == Some(id));
        below.map(|(id, _)| id.clone()).collect()
    }

    /// Returns true if it can be referred to; wif configurations are removed at once.
    fn is_wif(&self, id: Option<&str>) -> bool {
        id.is_none_or(|id| self.resources.get(id).is_some_and(|target| target.kind == Kind::WifConfig))
    }

    fn create(&mut self, id: &str, New { kind, name, owner, wif, n }: &New) -> u16 {
        if let Some(owner) = owner {
            match self.resources.get(owner) {
                Some(parent) if Some(parent.kind) == kind.parent() => {
                    if parent.deleting {
                        return 409;
                    }
                }
                _ => return 404,
            }
        }
        if !self.is_wif(wif.as_deref()) {
            return 400;
        }
        let same_name =
            |other: &Resource| !other.deleting && other.kind == *kind && other.name == *name && other.owner == *owner;
        if self.resources.contains_key(id) || self.resources.values().any(same_name) {
            return 409;
        }
        let mut resource = Resource {
            kind: *kind,
            name: name.clone(),
            owner: owner.clone(),
            wif: wif.clone(),
            spec: *n,
            label: None,
            generation: 1,
            deleting: false,
            reports: BTreeMap::new(),
            conditions: Vec::new(),
            last_known: None,
        };
        resource.conclude();
        self.resources.insert(id.to_owned(), resource);
        201
    }

    fn patch(&mut self, kind: Kind, id: &str, patch: &Patch, if_match: Option<i64>) -> u16 {
        let keeps = matches!(patch.wif, Reference::Kept);
        if patch.spec.is_none() && patch.label.is_none() && keeps {
            return 400;
        }
        let is_wif = match &patch.wif {
            Reference::To(wif) => self.is_wif(Some(wif)),
            Reference::Kept | Reference::Cleared => true,
        };
        let Some(resource) = self.find(kind, id) else { return 404 };
        if if_match.is_some_and(|generation| generation != resource.generation) {
            return 412;
        }
        if resource.deleting {
            return 409;
        }
        if !is_wif {
            return 400;
        }
        let spec = patch.spec.unwrap_or(resource.spec);
        let label = patch.label.or(resource.label);
        if keeps && spec == resource.spec && label == resource.label {
            return 200;
        }
        (resource.spec, resource.label) = (spec, label);
        match &patch.wif {
            Reference::Kept => {}
            Reference::Cleared => resource.wif = None,
            Reference::To(wif) => resource.wif = Some(wif.clone()),
        }
        resource.generation += 1;
        resource.conclude();
        200
    }

    fn delete(&mut self, kind: Kind, id: &str) -> u16 {
        let Some(resource) = self.find(kind, id) else { return 404 };
        if resource.deleting {
            return 202;
        }
        let children = self.children(id);
        let restricts = kind == Kind::Channel && children.iter().any(|child| !self.resources[child].deleting);
        let is_referred_to = self.resources.values().any(|other| other.wif.as_deref() == Some(id));
        if restricts || is_referred_to {
            return 409;
        }
        for id in children.iter().map(String::as_str).chain([id]) {
            let resource = self.resources.get_mut(id).unwrap();
            if resource.kind.adapters().is_empty() {
                self.resources.remove(id);
            } else if !resource.deleting {
                resource.deleting = true;
                resource.generation += 1;
                resource.wif = None;
                resource.conclude();
            }
        }
        202
    }

    fn force_delete(&mut self, kind: Kind, id: &str) -> u16 {
        let Some(resource) = self.find(kind, id) else { return 404 };
        if !resource.deleting {
            return 409;
        }
        for id in self.children(id).iter().map(String::as_str).chain([id]) {
            self.resources.remove(id);
        }
        204
    }

    fn report(&mut self, kind: Kind, id: &str, report: &Report) -> u16 {
        if report.generation < 1 {
            return 400;
        }
        let has_children = !self.children(id).is_empty();
        let Some(resource) = self.find(kind, id) else { return 404 };
        let stored = resource.reports.get(&report.adapter);
        let is_stale = stored.is_some_and(|stored| {
            report.generation < stored.generation
                || (report.generation == stored.generation && report.time < stored.time)
        });
        if report.generation > resource.generation || is_stale {
            return 204;
        }
        if !report.complete {
            return 400;
        }
        let says = report.available != "Unknown";
        if !says && stored.is_some() {
            return 204;
        }
        // 1000 stands for the server's own time, which never repeats.
        let repeats = |stored: &Report| (stored.generation, stored.time) == (report.generation, report.time);
        if !stored.is_some_and(|stored| report.time < 1000 && repeats(stored)) {
            resource.reports.insert(report.adapter.clone(), report.clone());
            if says {
                resource.conclude();
            }
        }
        let cleaned = |adapter: &&str| {
            let report = resource.reports.get(*adapter);
            report.is_some_and(|report| report.generation == resource.generation && report.finalized == Some("True"))
        };
        let finished = resource.deleting && report.finalized == Some("True") && kind.adapters().iter().all(cleaned);
        if finished && !has_children {
            self.resources.remove(id);
        }
        201
    }

    /// Returns the number of resources of a kind, and of the active ones among them.
    pub(crate) fn totals(&self, kind: Kind) -> (usize, usize) {
        let all = self.resources.values().filter(|resource| resource.kind == kind);
        (all.clone().count(), all.filter(|resource| !resource.deleting).count())
    }

    /// Returns the resource as GET returns it, without times and without additional views.
    pub(crate) fn resource(&self, kind: Kind, id: &str) -> Option<Value> {
        let resource = self.resources.get(id).filter(|resource| resource.kind == kind)?;
        let reference = |kind: Kind, id: &str| {
            let href = format!("{BASE}/{}/{id}", kind.plural());
            json!({ "id": id, "kind": format!("{kind:?}"), "href": href })
        };
        let own = format!("{}/{id}", kind.plural());
        let href = match (&resource.owner, kind.parent()) {
            (Some(owner), Some(parent)) => format!("{BASE}/{}/{owner}/{own}", parent.plural()),
            _ => format!("{BASE}/{own}"),
        };
        let mut shown = Map::new();
        let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
        put("id", json!(id));
        put("kind", json!(format!("{kind:?}")));
        put("name", json!(resource.name));
        put("href", json!(href));
        put("spec", json!({ "n": resource.spec }));
        put("tenancy", json!({}));
        put("generation", json!(resource.generation));
        put("status", json!({ "conditions": resource.conditions }));
        put("created_by", json!("system@hyperfleet.local"));
        put("updated_by", json!("system@hyperfleet.local"));
        if let Some(label) = resource.label {
            put("labels", json!({ "l": label.to_string() }));
        }
        if let Some(wif) = &resource.wif {
            put("references", json!({ "wif_config": [reference(Kind::WifConfig, wif)] }));
        }
        if let (Some(owner), Some(parent)) = (&resource.owner, kind.parent()) {
            put("owner_references", reference(parent, owner));
        }
        if resource.deleting {
            put("deleted_by", json!("system@hyperfleet.local"));
        }
        Some(Value::Object(shown))
    }

    /// Returns its reports by adapter, without times.
    pub(crate) fn reports(&self, id: &str) -> BTreeMap<String, Value> {
        let reports = self.resources.get(id).map(|resource| &resource.reports);
        reports.into_iter().flatten().map(|(adapter, report)| (adapter.clone(), report.to_json())).collect()
    }
}
