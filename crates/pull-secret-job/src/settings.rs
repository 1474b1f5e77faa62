//! Settings of a run, from flags and environment, checked before the run starts.

mod aws;
mod aws_store;
mod azure;
mod azure_store;
mod kubernetes_secret;
mod parse;
mod resolve;
mod store;
pub mod table;
mod vault;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fleet_model::TraceContext;
use kubernetes::SecretKey;
use secrecy::SecretString;
use secret_store::{ProjectId, Replication, SecretId, StoreSettings};

pub use resolve::{
    hosted_cluster_patch, resolve, resolve_export, resolve_log, resolve_names, resolve_paths, resolve_store,
};
pub use table::TABLE;

use crate::decide::Identity;

/// Name of the phase that applies the Kubernetes Secret, which HyperShift reads.
pub(crate) const KUBERNETES_SECRET_PHASE: &str = "k8s-secret";

/// The flags that were given, by their names.
pub type Flags = BTreeMap<&'static str, String>;

/// Settings of a run. After [`resolve()`] none is missing and none contradicts another.
#[derive(Debug)]
pub struct Settings {
    /// Task of the run: to store the secret, or to delete it.
    pub task: Task,
    /// Observe and report, change nothing.
    pub dry_run: bool,
    /// Cluster whose pull secret it is, and the generation of its specification that the run acts for.
    pub identity: Identity,
    /// Name of the secret in the store.
    pub secret: SecretId,
    /// The store; `None` if the run deletes a Kubernetes Secret only.
    pub store: Option<StoreSettings>,
    /// The second store, of another kind, that gets the same pull secret; `None` without a mirror.
    pub mirror: Option<StoreSettings>,
    /// Trace that the run belongs to.
    pub trace: Option<TraceContext>,
    /// Maximum time of the whole run.
    pub run_timeout: Duration,
    /// Kubernetes Secret that is applied for HyperShift; `None` skips that phase.
    pub kubernetes_secret: Option<KubernetesSecretSettings>,
    /// File that the result is written to; `None` for no file.
    pub results_path: Option<PathBuf>,
    /// File that the termination message is written to, if it exists.
    pub termination_log: PathBuf,
}

/// Task of a run.
#[derive(Debug)]
pub enum Task {
    /// Store the pull secret.
    Store(Box<StoreTask>),
    /// Delete the secret and the Kubernetes Secret.
    Delete,
    /// Delete only the Kubernetes Secret.
    DeleteKubernetesSecret,
}

/// Settings of storing.
#[derive(Debug)]
pub struct StoreTask {
    /// Source of the pull secret.
    pub source: Source,
    /// Labels of the secret.
    pub labels: BTreeMap<String, String>,
    /// Label values that were changed to satisfy the store's rules.
    pub changed_labels: Vec<ChangedLabel>,
    /// Replication of a new secret.
    pub replication: Replication,
    /// Replication of a new secret in the mirror.
    pub mirror_replication: Replication,
    /// Take over a secret of another incarnation of the cluster.
    pub adopt: bool,
    /// Number of versions that are kept; 0 keeps all.
    pub retain: usize,
    /// Add a version even if the newest one holds the content.
    pub always_add: bool,
    /// File with the key of the digests that are published.
    pub digest_key_file: Option<PathBuf>,
}

/// The Kubernetes Secret that is applied for HyperShift.
#[derive(Debug)]
pub struct KubernetesSecretSettings {
    /// Namespace and name of the Secret.
    pub key: SecretKey,
    /// Cluster that stores it.
    pub cluster: kubernetes::Settings,
    /// The labels of the Secret.
    pub labels: BTreeMap<String, String>,
    /// Take over a Secret that is not managed for this cluster, or belongs to another incarnation of it.
    pub adopt: bool,
}

/// Source of the pull secret.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, mounted from a Kubernetes Secret.
    File(PathBuf),
    /// The environment.
    Text(SecretString),
    /// The specification's fake for tests.
    Fake,
}

/// A label value that was changed to satisfy the store's rules.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedLabel {
    /// The label's key.
    pub key: String,
    /// The value as given.
    pub given: String,
    /// The value as written.
    pub written: String,
}

/// All faults of flags and environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidSettings(pub Vec<String>);

impl fmt::Display for InvalidSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("; "))
    }
}

// === impl Settings ===

impl Settings {
    /// Returns the project at Google; `None` for another store.
    pub fn project(&self) -> Option<&ProjectId> {
        let Some(StoreSettings::Google(settings)) = &self.store else { return None };
        Some(&settings.project)
    }

    /// Returns the name of the store, for people.
    pub(crate) fn store_name(&self) -> &'static str {
        self.store.as_ref().map_or("no store", StoreSettings::name)
    }

    /// Returns the name of the phase that stores the pull secret, or else of the only one.
    pub(crate) fn phase(&self) -> &'static str {
        self.store.as_ref().map_or(KUBERNETES_SECRET_PHASE, phase_of)
    }
}

/// Returns the name of the phase that stores the pull secret in this store.
pub(crate) fn phase_of(store: &StoreSettings) -> &'static str {
    match store {
        StoreSettings::Google(_) => "gcp-secret-manager",
        StoreSettings::Vault(_) => "vault",
        StoreSettings::Aws(_) => "aws-secrets-manager",
        StoreSettings::Azure(_) => "azure-key-vault",
    }
}

#[cfg(test)]
mod tests;
