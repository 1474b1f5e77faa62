//! The secret store of the pull secret adapter's Jobs.

use std::collections::{BTreeMap, BTreeSet};

use daemon::settings::Row;
use fleet_model::StoredCopy;
use fleet_model::names::{self, variable};
use schemars::JsonSchema;

/// The field by which a resource chooses its folder.
pub(crate) const FOLDER: &str = "spec.pullSecret.folder";

daemon::settings! {
    /// The secret store of the pull secret adapter's Jobs. Their identity there is given by variables of the Job's template.
    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub struct SecretStore {
        /// Secret store of the Jobs
        #[serde(rename = "type", default)]
        pub kind: Option<StoreKind> = Row::at("spec.secretStore.type").unset("`google`"),
        /// Secret stores of the Jobs by the resource's `spec.provider`, instead of one for all: `{gcp: google, aws: aws}`. A
        /// resource with another provider, or without one, is not served
        #[serde(default)]
        pub by_provider: Option<BTreeMap<String, StoreKind>> = Row::at("spec.secretStore.byProvider"),
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
            Row::at("spec.secretStore.vault.address").unset("required with the store vault"),
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
            Row::at("spec.secretStore.aws.region").unset("required with the store aws"),
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
            Row::at("spec.secretStore.azure.vaultUrl").unset("required with the store azure"),
    }
}

daemon::choices! {
    /// Kind of the secret store.
    #[derive(PartialOrd, Ord, JsonSchema)]
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

/// Returns the setting that decides about a variable, which the Job's template must not have therefore.
pub(super) fn setting_of(name: &str) -> Option<&'static str> {
    match name {
        variable::SECRET_STORE => Some("spec.secretStore.type or byProvider"),
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

// === impl SecretStore ===

impl SecretStore {
    /// Returns the stores that the settings name, without the mirror.
    pub(super) fn kinds(&self) -> BTreeSet<StoreKind> {
        let by_provider = self.by_provider.iter().flat_map(BTreeMap::values).copied();
        let one = self.kind.or(self.by_provider.is_none().then_some(StoreKind::Google));
        by_provider.chain(one).collect()
    }
}

// === impl StoreKind ===

impl StoreKind {
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

    /// Returns true if a run at this store is to have a variable of the Job's template; `None` is a run without a store.
    pub fn takes(store: Option<Self>, name: &str) -> bool {
        let begins = |prefix: &str| name.starts_with(prefix);
        if name == variable::REPLICATION_POLICY {
            store.is_some_and(Self::has_replication)
        } else if name == variable::REPLICATION_POLICY_MIRROR {
            false
        } else if begins("VAULT_") {
            store == Some(Self::Vault)
        } else if begins("AWS_") {
            store == Some(Self::Aws)
        } else if begins("AZURE_") {
            store == Some(Self::Azure)
        } else {
            store == Some(Self::Google) || !["GCP_", "SECRET_MANAGER_", "GOOGLE_"].into_iter().any(begins)
        }
    }

    /// Returns true if a run with this mirror is to have a variable of the Job's template. Each store has a replication of its own.
    pub fn takes_as_mirror(self, name: &str) -> bool {
        match name {
            variable::REPLICATION_POLICY => false,
            variable::REPLICATION_POLICY_MIRROR => self.has_replication(),
            _ => Self::takes(Some(self), name),
        }
    }

    fn has_replication(self) -> bool {
        matches!(self, Self::Google | Self::Aws)
    }

    /// Returns the value of `SECRET_STORE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Google => names::STORE_GOOGLE,
            Self::Vault => names::STORE_VAULT,
            Self::Aws => names::STORE_AWS,
            Self::Azure => names::STORE_AZURE,
        }
    }
}
