//! The secret store of the pull secret adapter's Jobs.

use daemon::settings::Row;
use fleet_model::names::{self, variable};
use schemars::JsonSchema;
use secret_store::{EndpointUrl, VaultPath};

use crate::binding::{Binding, FieldPath, Required};

/// The field by which a resource chooses its folder.
const FOLDER: &str = "spec.pullSecret.vaultFolder";

daemon::settings! {
    /// The secret store of the pull secret adapter's Jobs.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct SecretStore {
        /// Secret store of the Jobs
        #[serde(rename = "type")]
        pub kind: StoreKind = Row::at("spec.secretStore.type").default("google"),
        /// OpenBao or Vault
        pub vault: Vault,
    }
}

daemon::settings! {
    /// The place of pull secrets in OpenBao or Vault. The Jobs' identity there is given by variables of the Job's template.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Vault {
        /// Address of OpenBao or Vault: https, or http to this machine
        #[serde(default)]
        pub address: Option<String> =
            Row::at("spec.secretStore.vault.address").unset("required with spec.secretStore.type vault"),
        /// Namespace at that server
        #[serde(default)]
        pub namespace: Option<String> = Row::at("spec.secretStore.vault.namespace").unset("the root"),
        /// Mount of the KV engine, version 2
        pub mount: String = Row::at("spec.secretStore.vault.mount").default("secret"),
        /// Folder of the secrets in that mount, for resources whose `spec.pullSecret.vaultFolder` names no other
        pub folder: String = Row::at("spec.secretStore.vault.folder").default("pull-secrets"),
    }
}

daemon::choices! {
    /// Kind of the secret store.
    #[derive(JsonSchema)]
    pub enum StoreKind {
        /// Google Secret Manager.
        Google = "google",
        /// OpenBao or HashiCorp Vault, KV version 2.
        Vault = "vault" | "openbao",
    }
}

/// The secret store, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlan {
    /// Google Secret Manager; the variables of the Job's template name the project.
    Google,
    /// OpenBao or Vault.
    Vault(VaultPlan),
}

/// The place of pull secrets in OpenBao or Vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultPlan {
    /// The address of the server.
    pub address: EndpointUrl,
    /// The namespace at the server; `None` for the root.
    pub namespace: Option<VaultPath>,
    /// The mount of the KV engine.
    pub mount: VaultPath,
    /// The folder of a resource.
    pub folder: Binding,
}

fn given(name: &str, from: Vec<FieldPath>, value: &str) -> Binding {
    Binding { name: name.to_owned(), from, value: Some(value.to_owned()), required: Required::Always }
}

/// Returns the setting that decides about a variable, which the Job's template must not have therefore.
pub(super) fn setting_of(name: &str) -> Option<&'static str> {
    match name {
        variable::SECRET_STORE => Some("spec.secretStore.type"),
        variable::VAULT_ADDR => Some("spec.secretStore.vault.address"),
        variable::VAULT_NAMESPACE => Some("spec.secretStore.vault.namespace"),
        variable::VAULT_MOUNT => Some("spec.secretStore.vault.mount"),
        variable::VAULT_FOLDER => Some("spec.secretStore.vault.folder"),
        _ => None,
    }
}

// === impl StoreKind ===

impl StoreKind {
    /// Returns the store that a variable of the Job is for; `None` for one that every run has.
    pub fn of_variable(name: &str) -> Option<Self> {
        let is_googles = |name: &str| name.starts_with("GCP_") || name.starts_with("SECRET_MANAGER_");
        if name == variable::SECRET_STORE || name.starts_with("VAULT_") {
            Some(Self::Vault)
        } else if name == variable::REPLICATION_POLICY || is_googles(name) {
            Some(Self::Google)
        } else {
            None
        }
    }
}

// === impl VaultPlan ===

impl VaultPlan {
    /// Returns the folder of resources, of which each may name its own.
    pub(super) fn folder(built_in: &VaultPath) -> Binding {
        given(variable::VAULT_FOLDER, FOLDER.parse::<FieldPath>().into_iter().collect(), built_in.as_str())
    }
}

// === impl StorePlan ===

impl StorePlan {
    /// Returns the kind of the store.
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::Google => StoreKind::Google,
            Self::Vault(_) => StoreKind::Vault,
        }
    }

    /// Returns the variables by which a run finds the store, beside those of the Job's template.
    pub(super) fn bindings(&self) -> Vec<Binding> {
        let Self::Vault(VaultPlan { address, namespace, mount, folder }) = self else { return Vec::new() };
        let fixed = |name: &str, value: &str| given(name, Vec::new(), value);
        let namespace = namespace.as_ref().map(|namespace| fixed(variable::VAULT_NAMESPACE, namespace.as_str()));
        let first = [fixed(variable::SECRET_STORE, names::STORE_VAULT), fixed(variable::VAULT_ADDR, address.as_str())];
        let last = [fixed(variable::VAULT_MOUNT, mount.as_str()), folder.clone()];
        first.into_iter().chain(namespace).chain(last).collect()
    }
}
