//! Reads the settings of a run from flags and environment, and checks them before the run starts.

mod kubernetes_secret;
mod parse;
pub mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use daemon::environment::Environment;
use daemon::settings::Loaded;
use fleet_model::{ClusterId, Generation, TraceContext};
use kubernetes::SecretKey;
use secrecy::SecretString;
use secret_store::{Replication, SecretId};
use tracing::level_filters::LevelFilter;

pub use table::TABLE;

/// The flags that were given, by their names.
pub type Flags = BTreeMap<&'static str, String>;

/// Settings of a run. After [`resolve`] none is missing and none contradicts another.
#[derive(Debug)]
pub struct Settings {
    /// Task of the run: to store the secret, or to delete it.
    pub task: Task,
    /// Observe and report, change nothing.
    pub dry_run: bool,
    /// Cluster whose pull secret it is.
    pub cluster: ClusterId,
    /// Name of the secret in the store.
    pub secret: SecretId,
    /// The store.
    pub store: secret_store::Settings,
    /// Generation of the cluster's specification that this run acts for.
    pub generation: Option<Generation>,
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
    /// Delete the secret.
    Delete,
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
    /// Take over a Secret that is not managed for this cluster.
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
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidSettings(pub Vec<String>);

/// Reads and checks everything.
///
/// # Errors
///
/// All faults at once.
pub fn resolve(flags: &Flags, environment: &impl Environment) -> Result<Settings, InvalidSettings> {
    let is_deletion = flags.get("delete").is_some_and(|value| value.trim() == "true");
    let ignored = if is_deletion { table::STORING_ONLY.to_vec() } else { Vec::new() };
    let document = environment.verbatim("PULL_SECRET_DATA").ok().flatten().map(SecretString::from);
    let checked = loaded(flags, environment, ignored).then(|mut given| {
        // The content is stored as it is given, blanks and all.
        given.pull_secret_data = document.filter(|_| given.pull_secret_data.is_some());
        let mut parser = parse::Parser::new(&given);
        let settings = parser.settings();
        settings.filter(|_| parser.problems.is_empty()).ok_or(parser.problems)
    });
    checked.map_err(InvalidSettings)
}

/// The patch that makes a `HostedCluster` use the Kubernetes Secret, if it is asked for.
pub fn hosted_cluster_patch(flags: &Flags, environment: &impl Environment) -> Option<Result<String, InvalidSettings>> {
    let is_needed = |path: &str| ["cluster_id", "k8s_secret_name", "print_hosted_cluster_patch"].contains(&path);
    let ignored = TABLE.scalars().into_iter().map(|row| row.path).filter(|path| !is_needed(path)).collect();
    let loaded = loaded(flags, environment, ignored);
    if !loaded.settings().is_some_and(|given| given.print_hosted_cluster_patch) {
        return None;
    }
    let patch = loaded.then(|given| {
        let mut parser = parse::Parser::new(&given);
        let patch = parser.hosted_cluster_patch();
        patch.filter(|_| parser.problems.is_empty()).ok_or(parser.problems)
    });
    Some(patch.map_err(InvalidSettings))
}

/// Settings of the log. A faulty one falls back to its default; [`resolve`] reports it.
pub fn resolve_log(
    flags: &Flags,
    environment: &impl Environment,
    crates: &'static [&'static str],
) -> daemon::log::Settings {
    let loaded = loaded(flags, environment, Vec::new());
    let log = loaded.settings().map(|given| given.log.of(crates));
    log.unwrap_or(daemon::log::Settings { format: daemon::log::Format::Json, level: LevelFilter::INFO, crates })
}

/// Files that a result is written to, as far as the settings are valid: the result file, if there is to be one, and the
/// termination message.
pub fn resolve_paths(flags: &Flags, environment: &impl Environment) -> (Option<PathBuf>, PathBuf) {
    let loaded = loaded(flags, environment, Vec::new());
    let Some(given) = loaded.settings() else { return (None, PathBuf::new()) };
    let mut parser = parse::Parser::new(given);
    let results_path = parser.results_path().filter(|_| parser.problems.is_empty());
    (results_path, given.termination_log_path.clone())
}

fn loaded(flags: &Flags, environment: &impl Environment, ignored: Vec<&'static str>) -> Loaded<table::Given> {
    let given = daemon::settings::Given { file: None, flags: flags.clone(), ignored };
    daemon::settings::load(&TABLE, environment, &given)
}

impl fmt::Display for InvalidSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("; "))
    }
}

#[cfg(test)]
mod tests;
