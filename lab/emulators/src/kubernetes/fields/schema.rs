//! Schema of lists: maps by a key, sets, and lists that are replaced as a whole.

use serde_json::Value;

use super::super::resources::Resource;
use super::super::value::{list, text};

/// The schema at a path of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Schema<'a> {
    /// A place in a built-in kind: the name of the field around it, and its own.
    Named { parent: &'a str, name: &'a str },
    /// A place in a custom kind, with its `OpenAPI` schema if it has one.
    Custom(Option<&'a Value>),
    /// The whole of a custom object.
    CustomRoot(Option<&'a Value>),
}

/// The merge strategy of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Replaced as a whole.
    Atomic,
    /// Its items are values, each once.
    Set,
    /// Its items are objects, identified by these members.
    Map(Vec<String>),
}

/// Lists whose items are identified by members: the list's name, the name around it (empty for any), the members.
const MAPS: [(&str, &str, &[&str]); 20] = [
    ("containers", "", &["name"]),
    ("initContainers", "", &["name"]),
    ("ephemeralContainers", "", &["name"]),
    ("env", "", &["name"]),
    ("volumes", "", &["name"]),
    ("volumeMounts", "", &["mountPath"]),
    ("volumeDevices", "", &["devicePath"]),
    ("ports", "containers", &["containerPort", "protocol"]),
    ("ports", "initContainers", &["containerPort", "protocol"]),
    ("ports", "spec", &["port", "protocol"]),
    ("imagePullSecrets", "", &["name"]),
    ("secrets", "", &["name"]),
    ("ownerReferences", "", &["uid"]),
    ("conditions", "", &["type"]),
    ("hostAliases", "", &["ip"]),
    ("podIPs", "", &["ip"]),
    ("addresses", "", &["type"]),
    ("topologySpreadConstraints", "", &["topologyKey", "whenUnsatisfiable"]),
    ("schedulingGates", "", &["name"]),
    ("resourceClaims", "", &["name"]),
];

/// The names by which a whole Job and its status are distinguished from those of other kinds.
const JOB: &str = "Job";
const JOB_STATUS: &str = "status of a Job";

/// Objects that are replaced as a whole.
const ATOMIC: [&str; 15] = [
    "selector",
    "nodeSelector",
    "labelSelector",
    "secretKeyRef",
    "configMapKeyRef",
    "fieldRef",
    "resourceFieldRef",
    "roleRef",
    "involvedObject",
    "regarding",
    "related",
    "ownerReferences",
    "imagePullSecrets",
    "nodeSelectorTerms",
    "managedFields",
];

/// Members that a typed object has even where nothing is said, so that saying something in them adds no member.
const ALWAYS_THERE: [&str; 9] =
    ["metadata", "spec", "status", "template", "containers", "updateStrategy", "strategy", "names", "source"];

impl<'a> Schema<'a> {
    pub(crate) fn of(resource: &'a Resource) -> Self {
        match &resource.custom {
            Some(_) => Self::CustomRoot(resource.schema()),
            None if resource.storage == "jobs.batch" => Self::Named { parent: "", name: JOB },
            None => Self::Named { parent: "", name: "" },
        }
    }

    /// A member's schema.
    pub(crate) fn member(self, member: &'a str) -> Self {
        match self {
            Self::Named { name: JOB, .. } if member == "status" => Self::Named { parent: JOB, name: JOB_STATUS },
            Self::Named { name, .. } => Self::Named { parent: name, name: member },
            Self::CustomRoot(_) if member == "metadata" => Self::Named { parent: "", name: member },
            Self::CustomRoot(schema) | Self::Custom(schema) => {
                let named = schema.and_then(|schema| schema.get("properties")?.get(member));
                Self::Custom(named.or_else(|| schema?.get("additionalProperties")))
            }
        }
    }

    /// The schema of a list's items.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Named { .. } => self,
            Self::CustomRoot(schema) | Self::Custom(schema) => {
                Self::Custom(schema.and_then(|schema| schema.get("items")))
            }
        }
    }

    /// The merge strategy of the list at this path.
    pub(crate) fn list(self) -> List {
        match self {
            Self::Named { name: "finalizers", .. } => List::Set,
            // Unlike those of other kinds, the conditions of a Job are no map.
            Self::Named { parent: JOB_STATUS, name: "conditions" } => List::Atomic,
            Self::Named { parent, name } => {
                let found =
                    MAPS.iter().find(|(list, around, _)| *list == name && (around.is_empty() || *around == parent));
                found.map_or(List::Atomic, |(_, _, keys)| List::Map(keys.iter().map(|key| (*key).to_owned()).collect()))
            }
            Self::CustomRoot(schema) | Self::Custom(schema) => {
                let Some(schema) = schema else { return List::Atomic };
                match text(schema, "/x-kubernetes-list-type") {
                    "set" => List::Set,
                    "map" => {
                        let keys = list(schema, "/x-kubernetes-list-map-keys").iter();
                        List::Map(keys.filter_map(Value::as_str).map(str::to_owned).collect())
                    }
                    _ => List::Atomic,
                }
            }
        }
    }

    /// True if an object at this place is replaced as a whole.
    pub(crate) fn is_atomic(self) -> bool {
        match self {
            Self::Named { name, .. } => ATOMIC.contains(&name),
            Self::CustomRoot(schema) | Self::Custom(schema) => {
                schema.is_some_and(|schema| text(schema, "/x-kubernetes-map-type") == "atomic")
            }
        }
    }

    /// True if what is at this path is there in every object of the kind.
    pub(crate) fn is_always_there(self, path: &[String]) -> bool {
        let mut names = path.iter().map(|step| step.strip_prefix("f:"));
        match self {
            Self::Named { .. } => names.all(|name| name.is_some_and(|name| ALWAYS_THERE.contains(&name))),
            Self::CustomRoot(_) | Self::Custom(_) => path.is_empty(),
        }
    }
}

/// The step of a `FieldsV1` path to an item of a list; none if the item has no such members.
///
/// A port's protocol is TCP where it is left out.
pub(crate) fn step(keys: &[String], item: &Value) -> Option<String> {
    let mut values = serde_json::Map::new();
    for key in keys {
        let value = match item.get(key) {
            Some(value) => value.clone(),
            None if key == "protocol" => Value::from("TCP"),
            None => return None,
        };
        values.insert(key.clone(), value);
    }
    Some(format!("k:{}", Value::Object(values)))
}
