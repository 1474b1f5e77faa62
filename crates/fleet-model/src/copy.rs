//! The copies of a cluster's pull secret: every place where a run has stored it or may have.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One copy of a cluster's pull secret. The adapter reports it before a run writes it, and until it is deleted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum StoredCopy {
    /// A secret in Google Secret Manager.
    Secret {
        /// The project.
        project: String,
        /// The location of a regional secret; absent for a global one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        location: Option<String>,
        /// The secret's name.
        name: String,
    },
    /// A secret in OpenBao or Vault.
    VaultSecret {
        /// The address of the server.
        server: String,
        /// The namespace at the server; absent for the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// The mount of the KV engine.
        mount: String,
        /// The folder in the mount.
        folder: String,
        /// The secret's name.
        name: String,
    },
    /// A secret in AWS Secrets Manager.
    AwsSecret {
        /// The region.
        region: String,
        /// The part of the secret's name before the last '/'.
        folder: String,
        /// The rest of its name.
        name: String,
    },
    /// A secret in Azure Key Vault.
    AzureSecret {
        /// The address of the vault.
        vault: String,
        /// The secret's name.
        name: String,
    },
    /// The Kubernetes Secret that HyperShift reads.
    KubernetesSecret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// The member of a report's data that lists the copies.
pub const MEMBER: &str = "copies";
/// The member of a report's data that describes the mirror, by the members that describe the first store beside it.
pub const MIRROR: &str = "mirror";
/// The member of a report's data, or of its mirror, that has the number of the version that was read back.
pub const VERSION: &str = "secretVersion";

/// The member of a report's data that names the project of a secret in Google Secret Manager.
pub const GOOGLES_PLACE: &str = "gcpProject";
/// The member of a report's data that names the server of a secret in OpenBao or Vault.
pub const VAULTS_PLACE: &str = "vaultAddress";
/// The member of a report's data that names the region of a secret in AWS Secrets Manager.
pub const AWSS_PLACE: &str = "awsRegion";
/// The member of a report's data that names the vault of a secret in Azure Key Vault.
pub const AZURES_PLACE: &str = "azureVault";

/// Returns the members of a report's data that describe the mirror.
pub fn mirror(data: &Map<String, Value>) -> Option<&Map<String, Value>> {
    data.get(MIRROR)?.as_object()
}

// === impl StoredCopy ===

impl StoredCopy {
    /// Returns the full name of a secret in OpenBao or Vault as the Job reports it: namespace, mount, folder and name. `None` for
    /// other copies.
    pub fn vault_path(&self) -> Option<String> {
        let Self::VaultSecret { namespace, mount, folder, name, .. } = self else { return None };
        let namespace = namespace.as_ref().filter(|namespace| *namespace != "root");
        Some(
            [namespace.map(String::as_str), Some(mount), Some(folder), Some(name)]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("/"),
        )
    }

    /// Returns the copy without its name: its place.
    #[must_use]
    pub fn without_name(mut self) -> Self {
        match &mut self {
            Self::Secret { name, .. }
            | Self::VaultSecret { name, .. }
            | Self::AwsSecret { name, .. }
            | Self::AzureSecret { name, .. }
            | Self::KubernetesSecret { name, .. } => name.clear(),
        }
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        match self {
            Self::Secret { name, .. }
            | Self::VaultSecret { name, .. }
            | Self::AwsSecret { name, .. }
            | Self::AzureSecret { name, .. }
            | Self::KubernetesSecret { name, .. } => name,
        }
    }

    /// Returns the place of a stored copy, for messages: a project, a folder at a server, a folder in a region.
    pub fn place(&self) -> String {
        match self {
            Self::Secret { project, location: None, .. } => project.clone(),
            Self::Secret { project, location: Some(location), .. } => format!("{project} in {location}"),
            Self::VaultSecret { server, .. } => {
                let path = self.vault_path().unwrap_or_default();
                format!("{} at {server}", path.rsplit_once('/').map_or(path.as_str(), |(folder, _name)| folder))
            }
            Self::AwsSecret { region, folder, .. } => format!("{folder} of AWS in {region}"),
            Self::AzureSecret { vault, .. } => vault.clone(),
            Self::KubernetesSecret { namespace, .. } => namespace.clone(),
        }
    }

    /// Returns true if the data of a run's report name this copy as the one that was written, false if they name another one, or
    /// one in another store, and `None` if they do not say.
    pub fn is_written(&self, data: &Map<String, Value>) -> Option<bool> {
        let text = |member: &str| data.get(member).and_then(Value::as_str);
        let stores = [GOOGLES_PLACE, VAULTS_PLACE, AWSS_PLACE, AZURES_PLACE];
        let is_elsewhere = |own: &str| text(own).is_none() && stores.iter().any(|store| text(store).is_some());
        let path = |path: String| Some(text("secretPath")? == path);
        let named = match self {
            Self::Secret { .. } if is_elsewhere(GOOGLES_PLACE) => return Some(false),
            Self::VaultSecret { .. } if is_elsewhere(VAULTS_PLACE) => return Some(false),
            Self::AwsSecret { .. } if is_elsewhere(AWSS_PLACE) => return Some(false),
            Self::AzureSecret { .. } if is_elsewhere(AZURES_PLACE) => return Some(false),
            Self::Secret { project, location, name } => {
                let location = location.as_ref().map(|location| format!("/locations/{location}")).unwrap_or_default();
                let is_path = path(format!("projects/{project}{location}/secrets/{name}"));
                // Reports of other Jobs have no path.
                (text(GOOGLES_PLACE)? == project, is_path.unwrap_or(text("secretName")? == name))
            }
            Self::VaultSecret { server, .. } => {
                (text(VAULTS_PLACE)? == server, path(self.vault_path().unwrap_or_default())?)
            }
            Self::AwsSecret { region, folder, name } => {
                (text(AWSS_PLACE)? == region, path(format!("{folder}/{name}"))?)
            }
            Self::AzureSecret { vault, name } => (text(AZURES_PLACE)? == vault, text("secretName")? == name),
            Self::KubernetesSecret { namespace, name } => {
                (text("namespace")? == namespace, text("k8sSecretName")? == name)
            }
        };
        Some(named == (true, true))
    }

    /// Returns true if the data of a run's report name this copy as the mirror's, and that it was read back; false if they name
    /// another one or none, and `None` if they do not say.
    pub fn is_mirrored(&self, data: &Map<String, Value>) -> Option<bool> {
        match mirror(data).filter(|mirror| mirror.contains_key(VERSION)) {
            Some(mirror) => self.is_written(mirror),
            None => Some(false),
        }
    }

    /// Returns the copies in a secret store that the data of a run's report list.
    fn stored(data: &Map<String, Value>) -> impl Iterator<Item = Self> {
        let listed = data.get(MEMBER).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let listed = listed.iter().filter_map(|copy| serde_json::from_value::<Self>(copy.clone()).ok());
        listed.filter(|copy| !matches!(copy, Self::KubernetesSecret { .. }))
    }

    /// Returns the copy that the data of a run's report name as the mirror's, whether it was written or not.
    pub fn of_mirror(data: &Map<String, Value>) -> Option<Self> {
        let mirror = mirror(data)?;
        Self::stored(data).find(|copy| copy.is_written(mirror) == Some(true))
    }

    /// Returns the stored copy that the data of a run's report name as the one that was written; a report without a list of copies
    /// is of a global secret at Google.
    pub fn written(data: &Map<String, Value>) -> Option<Self> {
        let written = Self::stored(data).find(|copy| copy.is_written(data) == Some(true));
        let text = |member: &str| data.get(member).and_then(Value::as_str).map(str::to_owned);
        let global = || Some(Self::Secret { project: text(GOOGLES_PLACE)?, location: None, name: text("secretName")? });
        written.or_else(global)
    }

    /// Returns true if both are secrets of one place: of a project and location, a folder at a server, a folder in a region, a
    /// vault, or of the Kubernetes cluster.
    pub fn is_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Secret { project, location, .. },
                Self::Secret { project: other_project, location: other_location, .. },
            ) => (project, location) == (other_project, other_location),
            (Self::VaultSecret { server, .. }, Self::VaultSecret { server: other_server, .. }) => {
                let folder = |copy: &Self| copy.vault_path().and_then(|path| Some(path.rsplit_once('/')?.0.to_owned()));
                server == other_server && folder(self) == folder(other)
            }
            (
                Self::AwsSecret { region, folder, .. },
                Self::AwsSecret { region: other_region, folder: other_folder, .. },
            ) => (region, folder) == (other_region, other_folder),
            (Self::AzureSecret { vault, .. }, Self::AzureSecret { vault: other_vault, .. }) => vault == other_vault,
            (Self::KubernetesSecret { .. }, Self::KubernetesSecret { .. }) => true,
            _ => false,
        }
    }

    /// Returns true if both may be the same secret under another name: one server has several addresses, and a namespace may
    /// be given as the beginning of the mount. Mounts are never within each other, so the full name tells secrets apart.
    pub fn may_be(&self, other: &Self) -> bool {
        self == other || self.vault_path().is_some_and(|path| other.vault_path() == Some(path))
    }
}

impl fmt::Display for StoredCopy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret { project, location: None, name } => write!(formatter, "secret {name} of project {project}"),
            Self::Secret { project, location: Some(location), name } => {
                write!(formatter, "secret {name} of project {project} in {location}")
            }
            Self::VaultSecret { server, .. } => {
                write!(formatter, "secret {} at {server}", self.vault_path().unwrap_or_default())
            }
            Self::AwsSecret { region, folder, name } => write!(formatter, "secret {folder}/{name} of AWS in {region}"),
            Self::AzureSecret { vault, name } => write!(formatter, "secret {name} in {vault}"),
            Self::KubernetesSecret { namespace, name } => write!(formatter, "Kubernetes Secret {namespace}/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_survive_a_report() {
        let written = json!([
            {"kind": "secret", "project": "p-1", "name": "hyperfleet-cls-1-pull-secret"},
            {"kind": "secret", "project": "p-1", "location": "europe-west3", "name": "s"},
            {"kind": "vaultSecret", "server": "https://v:8200", "mount": "secret", "folder": "pull-secrets", "name": "s"},
            {"kind": "vaultSecret", "server": "https://v:8200", "namespace": "fleet/eu", "mount": "kv", "folder": "f", "name": "s"},
            {"kind": "awsSecret", "region": "eu-west-1", "folder": "pull-secrets", "name": "s"},
            {"kind": "azureSecret", "vault": "https://fleet.vault.azure.net", "name": "s"},
            {"kind": "kubernetesSecret", "namespace": "clusters-cls-1", "name": "cls-1-pull-secret"},
        ]);
        let copies: Vec<StoredCopy> = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&copies).unwrap(), written);
        let shown: Vec<_> = copies.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "secret hyperfleet-cls-1-pull-secret of project p-1",
                "secret s of project p-1 in europe-west3",
                "secret secret/pull-secrets/s at https://v:8200",
                "secret fleet/eu/kv/f/s at https://v:8200",
                "secret pull-secrets/s of AWS in eu-west-1",
                "secret s in https://fleet.vault.azure.net",
                "Kubernetes Secret clusters-cls-1/cls-1-pull-secret",
            ]
        );
    }

    #[rstest]
    #[case::the_root("https://v", Some("root"), "kv", "f", true)]
    #[case::another_address("https://w", None, "kv", "f", true)]
    #[case::a_longer_mount("https://v", None, "fleet/kv", "f", false)]
    #[case::another_mount("https://v", None, "kv-2", "f", false)]
    #[case::another_folder("https://v", None, "kv", "g", false)]
    #[case::another_namespace("https://v", Some("fleet"), "kv", "f", false)]
    fn a_secret_in_vault_may_have_other_names(
        #[case] server: &str,
        #[case] namespace: Option<&str>,
        #[case] mount: &str,
        #[case] folder: &str,
        #[case] expected: bool,
    ) {
        let copy = |server: &str, namespace: Option<&str>, mount: &str, folder: &str| {
            let [server, mount, folder, name] = [server, mount, folder, "s"].map(str::to_owned);
            StoredCopy::VaultSecret { server, namespace: namespace.map(str::to_owned), mount, folder, name }
        };
        let one = copy("https://v", None, "kv", "f");
        assert_eq!(copy(server, namespace, mount, folder).may_be(&one), expected);
        assert!(copy("https://v", Some("fleet"), "kv", "f").may_be(&copy("https://w", None, "fleet/kv", "f")));
        let project =
            |project: &str| StoredCopy::Secret { project: project.to_owned(), location: None, name: "s".to_owned() };
        assert!(project("p-1").may_be(&project("p-1")) && !project("p-1").may_be(&project("p-2")));
        assert!(!project("p-1").may_be(&one) && !one.may_be(&project("p-1")));
    }
}
