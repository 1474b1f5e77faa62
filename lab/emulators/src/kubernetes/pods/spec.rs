//! The members of a Pod that the runner reads. Nothing here has a `Debug`: a container's environment may hold secrets.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::controllers::model::Meta;

/// A Pod as the runner sees it.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    pub(crate) metadata: Meta,
    pub(crate) spec: Spec,
    /// As it is, so that what others wrote into it stays.
    pub(crate) status: Map<String, Value>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) containers: Vec<Container>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) restart_policy: String,
    pub(crate) service_account_name: String,
    pub(crate) node_name: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) command: Vec<String>,
    pub(crate) args: Vec<String>,
    pub(crate) working_dir: String,
    pub(crate) env: Vec<Variable>,
    pub(crate) env_from: Vec<VariablesFrom>,
    pub(crate) volume_mounts: Vec<VolumeMount>,
    pub(crate) termination_message_path: String,
    pub(crate) termination_message_policy: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) value_from: Option<ValueFrom>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ValueFrom {
    #[serde(rename = "secretKeyRef")]
    pub(crate) secret: Option<KeyRef>,
    #[serde(rename = "configMapKeyRef")]
    pub(crate) config_map: Option<KeyRef>,
    #[serde(rename = "fieldRef")]
    pub(crate) field: Option<FieldRef>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KeyRef {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) optional: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FieldRef {
    pub(crate) field_path: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VariablesFrom {
    pub(crate) prefix: String,
    pub(crate) secret_ref: Option<NameRef>,
    pub(crate) config_map_ref: Option<NameRef>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NameRef {
    pub(crate) name: String,
    pub(crate) optional: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VolumeMount {
    pub(crate) name: String,
    pub(crate) mount_path: String,
    pub(crate) sub_path: String,
    pub(crate) read_only: bool,
}

/// A volume. A source that is not named here is none that the runner can provide.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) empty_dir: Option<Value>,
    pub(crate) secret: Option<ObjectFiles>,
    pub(crate) config_map: Option<ObjectFiles>,
    #[serde(rename = "downwardAPI")]
    pub(crate) downward_api: Option<FieldFiles>,
    pub(crate) projected: Option<Projected>,
}

/// The keys of a Secret or a `ConfigMap` as files.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ObjectFiles {
    /// A `ConfigMap`'s, or a projected Secret's.
    pub(crate) name: String,
    pub(crate) secret_name: String,
    pub(crate) items: Vec<Item>,
    pub(crate) default_mode: Option<u32>,
    pub(crate) optional: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Item {
    pub(crate) key: String,
    pub(crate) path: String,
    pub(crate) mode: Option<u32>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FieldFiles {
    pub(crate) items: Vec<FieldItem>,
    pub(crate) default_mode: Option<u32>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FieldItem {
    pub(crate) path: String,
    pub(crate) field_ref: Option<FieldRef>,
    pub(crate) mode: Option<u32>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Projected {
    pub(crate) sources: Vec<ProjectedSource>,
    pub(crate) default_mode: Option<u32>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProjectedSource {
    pub(crate) secret: Option<ObjectFiles>,
    pub(crate) config_map: Option<ObjectFiles>,
    #[serde(rename = "downwardAPI")]
    pub(crate) downward_api: Option<FieldFiles>,
    pub(crate) service_account_token: Option<TokenFile>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TokenFile {
    pub(crate) path: String,
    pub(crate) expiration_seconds: Option<i64>,
}

/// The content of a Secret or a `ConfigMap`.
pub(crate) type Data = BTreeMap<String, Vec<u8>>;

/// The objects that a Pod's specification references, in the Pod's namespace.
pub(crate) trait Sources {
    /// A Secret's content.
    fn secret(&self, name: &str) -> Option<Data>;
    /// A `ConfigMap`'s content.
    fn config_map(&self, name: &str) -> Option<Data>;
    /// A token for a `ServiceAccount` that is good for so many seconds.
    fn token(&self, account: &str, seconds: i64) -> Option<String>;
}

// === impl Pod ===

impl Pod {
    pub(crate) fn phase(&self) -> &str {
        self.status.get("phase").and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.phase(), "Succeeded" | "Failed")
    }

    /// The `ServiceAccount` it runs as.
    pub(crate) fn account(&self) -> &str {
        let name = &self.spec.service_account_name;
        if name.is_empty() { "default" } else { name }
    }

    /// The value of a field as the downward API names it.
    pub(crate) fn field(&self, path: &str) -> Option<String> {
        let meta = &self.metadata;
        if let Some((map, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
            let map = match map {
                "metadata.labels" => &meta.labels,
                "metadata.annotations" => &meta.annotations,
                _ => return None,
            };
            return Some(map.get(key).cloned().unwrap_or_default());
        }
        let text = match path {
            "metadata.name" => &meta.name,
            "metadata.namespace" => &meta.namespace,
            "metadata.uid" => &meta.uid,
            "spec.nodeName" => &self.spec.node_name,
            "spec.serviceAccountName" => self.account(),
            "status.podIP" | "status.podIPs" | "status.hostIP" | "status.hostIPs" => "127.0.0.1",
            _ => return None,
        };
        Some(text.to_owned())
    }
}
