//! The kinds of objects: the built-in table, and the kinds of `CustomResourceDefinitions`.

use std::sync::Arc;

use serde_json::Value;

use super::status::About;
use super::value::{list, text};

/// A kind of object in one version of its group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    flags: u16,
    /// Subresources besides the status.
    pub(crate) subresources: &'static [&'static str],
    /// Under which name its objects are kept; two views of the same objects share it.
    pub(crate) storage: String,
    /// The version's entry in its `CustomResourceDefinition`.
    pub(crate) custom: Option<Arc<Value>>,
}

/// All kinds, built in and custom.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    resources: Vec<Arc<Resource>>,
}

const NAMESPACED: u16 = 1;
const STATUS: u16 = 1 << 1;
const GENERATION: u16 = 1 << 2;
const CONDITIONAL: u16 = 1 << 3;
const UPSERT: u16 = 1 << 4;
const RETURNED: u16 = 1 << 5;
const REVIEW: u16 = 1 << 6;

/// Group, version, plural, kind, short names, flags.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static [&'static str], u16);

const ROWS: [Row; 22] = [
    ("", "v1", "namespaces", "Namespace", &["ns"], STATUS | RETURNED),
    ("", "v1", "secrets", "Secret", &[], NAMESPACED),
    ("", "v1", "serviceaccounts", "ServiceAccount", &["sa"], NAMESPACED | RETURNED),
    ("", "v1", "pods", "Pod", &["po"], NAMESPACED | STATUS | GENERATION | RETURNED),
    ("", "v1", "configmaps", "ConfigMap", &["cm"], NAMESPACED),
    ("", "v1", "events", "Event", &["ev"], NAMESPACED | UPSERT),
    ("", "v1", "nodes", "Node", &["no"], STATUS),
    ("batch", "v1", "jobs", "Job", &[], NAMESPACED | STATUS | GENERATION),
    ("apps", "v1", "daemonsets", "DaemonSet", &["ds"], NAMESPACED | STATUS | GENERATION),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", &[], NAMESPACED | UPSERT),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", &[], NAMESPACED | UPSERT),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", &[], UPSERT),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", &[], UPSERT),
    ("coordination.k8s.io", "v1", "leases", "Lease", &[], NAMESPACED | CONDITIONAL | UPSERT),
    ("events.k8s.io", "v1", "events", "Event", &["ev"], NAMESPACED | UPSERT),
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", &[], REVIEW),
    ("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", &[], REVIEW),
    ("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", &[], REVIEW),
    (
        CRD_GROUP,
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        &["crd", "crds"],
        STATUS | GENERATION | RETURNED,
    ),
    ("", "v1", "resourcequotas", "ResourceQuota", &["quota"], NAMESPACED | STATUS),
    ("", "v1", "services", "Service", &["svc"], NAMESPACED | STATUS),
    ("apps", "v1", "deployments", "Deployment", &["deploy"], NAMESPACED | STATUS | GENERATION),
];

/// The group of `CustomResourceDefinitions`.
pub(crate) const CRD_GROUP: &str = "apiextensions.k8s.io";

// === impl Resource ===

impl Resource {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The same for objects that are kept elsewhere.
    pub(crate) fn stored_as(&self, storage: &str) -> Self {
        Self { storage: storage.to_owned(), ..self.clone() }
    }

    /// The schema of a custom kind.
    pub(crate) fn schema(&self) -> Option<&Value> {
        self.custom.as_ref().and_then(|version| version.pointer("/schema/openAPIV3Schema"))
    }

    /// The subject of a refusal that names the resource.
    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.group, kind: &self.plural, name }
    }

    /// The subject of a refusal that names the kind.
    pub(crate) fn about_kind<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.group, kind: &self.kind, name }
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.flags & NAMESPACED != 0
    }

    /// True if it has a status subresource.
    pub(crate) fn has_status(&self) -> bool {
        self.flags & STATUS != 0
    }

    /// True if `metadata.generation` counts changes of its specification.
    pub(crate) fn has_generation(&self) -> bool {
        self.flags & GENERATION != 0
    }

    /// True if an update must say which state it is meant for.
    pub(crate) fn is_conditional(&self) -> bool {
        self.flags & CONDITIONAL != 0
    }

    /// True if an update of what is not there creates it.
    pub(crate) fn creates_on_update(&self) -> bool {
        self.flags & UPSERT != 0
    }

    /// True if a deletion answers with the object rather than with a status.
    pub(crate) fn returns_deleted(&self) -> bool {
        self.flags & RETURNED != 0
    }

    /// True if nothing is stored: create is a question.
    pub(crate) fn is_review(&self) -> bool {
        self.flags & REVIEW != 0
    }

    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        name == "status" && self.has_status() || self.subresources.contains(&name)
    }

    /// The verbs of discovery.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        if self.is_review() {
            &["create"]
        } else if self.plural == "namespaces" {
            &["create", "delete", "get", "list", "patch", "update", "watch"]
        } else {
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        }
    }

    /// A kind that a `CustomResourceDefinition` declares, in one of its versions.
    fn custom(definition: &Value, version: &Value) -> Self {
        let names =
            |pointer: &str| list(definition, pointer).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let (plural, group) = (text(definition, "/spec/names/plural"), text(definition, "/spec/group"));
        let kind = text(definition, "/spec/names/kind");
        let or = |pointer: &str, otherwise: String| match text(definition, pointer) {
            "" => otherwise,
            given => given.to_owned(),
        };
        Self {
            group: group.to_owned(),
            version: text(version, "/name").to_owned(),
            plural: plural.to_owned(),
            singular: or("/spec/names/singular", kind.to_lowercase()),
            list_kind: or("/spec/names/listKind", format!("{kind}List")),
            kind: kind.to_owned(),
            short_names: names("/spec/names/shortNames"),
            categories: names("/spec/names/categories"),
            flags: GENERATION
                | CONDITIONAL
                | if text(definition, "/spec/scope") == "Namespaced" { NAMESPACED } else { 0 }
                | if version.pointer("/subresources/status").is_some() { STATUS } else { 0 },
            subresources: &[],
            storage: format!("{plural}.{group}"),
            custom: Some(Arc::new(version.clone())),
        }
    }
}

impl From<&Row> for Resource {
    fn from((group, version, plural, kind, short_names, flags): &Row) -> Self {
        let storage = match (*group, *plural) {
            ("", _) | ("events.k8s.io", "events") => (*plural).to_owned(),
            _ => format!("{plural}.{group}"),
        };
        Self {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            plural: (*plural).to_owned(),
            singular: kind.to_lowercase(),
            kind: (*kind).to_owned(),
            list_kind: format!("{kind}List"),
            short_names: short_names.iter().map(|name| (*name).to_owned()).collect(),
            categories: if matches!(*plural, "pods" | "jobs" | "daemonsets" | "services" | "deployments") {
                vec!["all".to_owned()]
            } else {
                Vec::new()
            },
            flags: *flags,
            subresources: match *plural {
                "pods" => &["log"],
                "serviceaccounts" => &["token"],
                _ => &[],
            },
            storage,
            custom: None,
        }
    }
}

// === impl Catalog ===

impl Default for Catalog {
    fn default() -> Self {
        Self { resources: ROWS.iter().map(|row| Arc::new(Resource::from(row))).collect() }
    }
}

impl Catalog {
    pub(crate) fn all(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let wanted = |resource: &&Arc<Resource>| {
            resource.group == group && resource.version == version && resource.plural == plural
        };
        self.resources.iter().find(wanted)
    }

    /// By plural and group, such as `jobs.batch`.
    pub(crate) fn by_id(&self, id: &str) -> Option<&Arc<Resource>> {
        let (plural, group) = id.split_once('.').unwrap_or((id, ""));
        self.resources.iter().find(|resource| resource.plural == plural && resource.group == group)
    }

    /// Takes the kind that a definition declares in, in place of what an earlier form of it declared.
    pub(crate) fn define(&mut self, definition: &Value) {
        self.forget(definition);
        let served = |version: &&Value| version.get("served").and_then(Value::as_bool) == Some(true);
        let versions = list(definition, "/spec/versions").iter().filter(served);
        self.resources.extend(versions.map(|version| Arc::new(Resource::custom(definition, version))));
    }

    /// Forgets the kind that a definition declared.
    pub(crate) fn forget(&mut self, definition: &Value) {
        let (plural, group) = (text(definition, "/spec/names/plural"), text(definition, "/spec/group"));
        let theirs =
            |resource: &Resource| resource.custom.is_some() && resource.plural == plural && resource.group == group;
        self.resources.retain(|resource| !theirs(resource));
    }
}
