//! The secret store of the pull secret adapter's Jobs.

use daemon::settings::Row;
use fleet_model::StoredCopy;
use fleet_model::names::{self, variable};
use schemars::JsonSchema;
use secret_store::{EndpointUrl, Location, StorePath};

use crate::binding::{FieldPath, ValueSource};

/// The field by which a resource chooses its folder.
pub(crate) const FOLDER: &str = "spec.pullSecret.folder";

daemon::settings! {
    /// The secret store of the pull secret adapter's Jobs. Their identity there is given by variables of the Job's template.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct SecretStore {
        /// Secret store of the Jobs
        #[serde(rename = "type")]
        pub kind: StoreKind = Row::at("spec.secretStore.type").default("google"),
        /// Mirror: a second secret store, of another kind, that gets the same pull secrets after the first one
        #[serde(default)]
        pub mirror: Option<StoreKind> = Row::at("spec.secretStore.mirror").unset("none: one store"),
        /// Folder of the secrets in OpenBao, Vault or AWS, for resources whose `spec.pullSecret.folder` names no other
        #[serde(default)]
        pub folder: Option<String> = Row::at("spec.secretStore.folder").unset("`pull-secrets`"),
        /// OpenBao or Vault
        pub vault: Vault,
        /// AWS Secrets Manager
        pub aws: Aws,
        /// Azure Key Vault
        pub azure: Azure,
    }
}

daemon::settings! {
    /// The place of pull secrets in OpenBao or Vault.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Vault {
        /// Address of OpenBao or Vault: https, or http to this machine
        #[serde(default)]
        pub address: Option<String> =
            Row::at("spec.secretStore.vault.address").unset("required with spec.secretStore.type or mirror vault"),
        /// Namespace at that server
        #[serde(default)]
        pub namespace: Option<String> = Row::at("spec.secretStore.vault.namespace").unset("the root"),
        /// Mount of the KV engine, version 2
        #[serde(default)]
        pub mount: Option<String> = Row::at("spec.secretStore.vault.mount").unset("`secret`"),
    }
}

daemon::settings! {
    /// The place of pull secrets in AWS Secrets Manager.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Aws {
        /// Region of AWS Secrets Manager
        #[serde(default)]
        pub region: Option<String> =
            Row::at("spec.secretStore.aws.region").unset("required with spec.secretStore.type or mirror aws"),
    }
}

daemon::settings! {
    /// The place of pull secrets in Azure Key Vault.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct Azure {
        /// Address of the vault in Azure Key Vault, such as https://NAME.vault.azure.net
        #[serde(default)]
        pub vault_url: Option<String> =
            Row::at("spec.secretStore.azure.vaultUrl").unset("required with spec.secretStore.type or mirror azure"),
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
        /// AWS Secrets Manager.
        Aws = "aws",
        /// Azure Key Vault.
        Azure = "azure",
    }
}

/// The secret store, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorePlan {
    /// Google Secret Manager; the variables of the Job's template name the project.
    Google,
    /// OpenBao or Vault.
    Vault(VaultPlan),
    /// AWS Secrets Manager.
    Aws(AwsPlan),
    /// The vault in Azure Key Vault.
    Azure(EndpointUrl),
}

/// The place of pull secrets in OpenBao or Vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultPlan {
    /// The address of the server.
    pub address: EndpointUrl,
    /// The namespace at the server; `None` for the root.
    pub namespace: Option<StorePath>,
    /// The mount of the KV engine.
    pub mount: StorePath,
    /// The folder of a resource.
    pub folder: ValueSource,
}

/// The place of pull secrets in AWS Secrets Manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsPlan {
    /// The region.
    pub region: Location,
    /// The folder of a resource.
    pub folder: ValueSource,
}

/// Returns the folder of resources, of which each may name its own.
pub(super) fn folder(built_in: &StorePath) -> ValueSource {
    ValueSource { from: FOLDER.parse::<FieldPath>().into_iter().collect(), value: Some(built_in.to_string()) }
}

/// Returns the setting that decides about a variable, which the Job's template must not have therefore.
pub(super) fn setting_of(name: &str) -> Option<&'static str> {
    match name {
        variable::SECRET_STORE => Some("spec.secretStore.type"),
        variable::SECRET_STORE_MIRROR => Some("spec.secretStore.mirror"),
        variable::VAULT_ADDR => Some("spec.secretStore.vault.address"),
        variable::VAULT_NAMESPACE => Some("spec.secretStore.vault.namespace"),
        variable::VAULT_MOUNT => Some("spec.secretStore.vault.mount"),
        variable::VAULT_FOLDER | variable::AWS_FOLDER => Some("spec.secretStore.folder"),
        variable::AWS_REGION => Some("spec.secretStore.aws.region"),
        variable::AZURE_KEY_VAULT_URL => Some("spec.secretStore.azure.vaultUrl"),
        _ => None,
    }
}

/// Returns true for a variable that decides as whom a Job acts at a store, or at which address.
pub(super) fn is_of_identity(name: &str) -> bool {
    let families = ["VAULT_", "AWS_", "AZURE_", "SECRET_MANAGER_", "GOOGLE_"];
    name == "GCP_SECRET_MANAGER_ENDPOINT" || families.iter().any(|family| name.starts_with(family))
}

// === impl StoreKind ===

impl StoreKind {
    /// Returns true if a run at this store is to have a variable of the Job's template; `None` is a run without a store.
    pub fn takes(store: Option<Self>, name: &str) -> bool {
        let begins = |prefix: &str| name.starts_with(prefix);
        if name == variable::REPLICATION_POLICY {
            matches!(store, Some(Self::Google | Self::Aws))
        } else if begins("VAULT_") {
            store == Some(Self::Vault)
        } else if begins("AWS_") {
            store == Some(Self::Aws)
        } else if begins("AZURE_") {
            store == Some(Self::Azure)
        } else {
            store == Some(Self::Google) || !(begins("GCP_") || begins("SECRET_MANAGER_"))
        }
    }

    /// Returns true if a run with this mirror is to have a variable of the Job's template. The replication is the first store's.
    pub fn takes_as_mirror(self, name: &str) -> bool {
        name != variable::REPLICATION_POLICY && Self::takes(Some(self), name)
    }

    /// Returns the store of a copy; `None` for a Kubernetes Secret.
    pub fn of(copy: &StoredCopy) -> Option<Self> {
        match copy {
            StoredCopy::Secret { .. } => Some(Self::Google),
            StoredCopy::VaultSecret { .. } => Some(Self::Vault),
            StoredCopy::AwsSecret { .. } => Some(Self::Aws),
            StoredCopy::AzureSecret { .. } => Some(Self::Azure),
            StoredCopy::KubernetesSecret { .. } => None,
        }
    }

    /// Returns the value of `SECRET_STORE`; Google's is the Job's default.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Google => None,
            Self::Vault => Some(names::STORE_VAULT),
            Self::Aws => Some(names::STORE_AWS),
            Self::Azure => Some(names::STORE_AZURE),
        }
    }
}

// === impl StorePlan ===

impl StorePlan {
    /// Returns the kind of the store.
    pub fn kind(&self) -> StoreKind {
        match self {
            Self::Google => StoreKind::Google,
            Self::Vault(_) => StoreKind::Vault,
            Self::Aws(_) => StoreKind::Aws,
            Self::Azure(_) => StoreKind::Azure,
        }
    }
}
