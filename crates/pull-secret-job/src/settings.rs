//! What a run is to do, from flags and environment, checked before anything is done.

mod kubernetes_secret;
mod parse;
pub mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fleet_model::{ClusterId, Generation, TraceContext};
use kubernetes::SecretKey;
use secrecy::SecretString;
use secret_store::{Replication, SecretId, google};
use tracing::level_filters::LevelFilter;

pub use table::{SETTINGS, Setting};

/// What a run is to do. After [`resolve`] nothing is missing and nothing contradicts.
#[derive(Debug)]
pub struct Settings {
    /// Whether the secret is to be there, or to be gone.
    pub task: Task,
    /// Look and tell, change nothing.
    pub dry_run: bool,
    /// Whose pull secret.
    pub cluster: ClusterId,
    /// Under which name it rests.
    pub secret: SecretId,
    /// In which store.
    pub store: google::Settings,
    /// The edition of the cluster's specification that this run acts for.
    pub generation: Option<Generation>,
    /// The trace that the run belongs to.
    pub trace: Option<TraceContext>,
    /// The longest that the whole run may take.
    pub run_timeout: Duration,
    /// Kubernetes Secret to apply for HyperShift; `None` skips that phase.
    pub kubernetes_secret: Option<KubernetesSecretSettings>,
    /// Where the result file goes; `None` for nowhere.
    pub results_path: Option<PathBuf>,
    /// Where the termination message goes, if there is a file.
    pub termination_log: PathBuf,
}

/// What the run is for.
#[derive(Debug)]
pub enum Task {
    /// The secret is to hold the pull secret.
    Store(Box<StoreTask>),
    /// The secret is to be gone.
    Delete,
}

/// How the pull secret is to be stored.
#[derive(Debug)]
pub struct StoreTask {
    /// Where the pull secret comes from.
    pub source: Source,
    /// The labels to be on the secret.
    pub labels: BTreeMap<String, String>,
    /// Label values that were changed to fit the store's rules.
    pub changed_labels: Vec<ChangedLabel>,
    /// Where the content rests, if the secret is to be created.
    pub replication: Replication,
    /// How many versions are kept; 0 keeps all.
    pub retain: usize,
    /// Add a version even where the newest one holds the content.
    pub always_add: bool,
    /// The file with the key of the digests that may be shown.
    pub digest_key_file: Option<PathBuf>,
}

/// Kubernetes Secret to apply for HyperShift.
#[derive(Debug)]
pub struct KubernetesSecretSettings {
    /// The Kubernetes Secret.
    pub key: SecretKey,
    /// The API server that has it.
    pub cluster: kubernetes::Settings,
    /// The labels of the Secret.
    pub labels: BTreeMap<String, String>,
    /// Take a Secret over that is not this cluster's.
    pub adopt: bool,
}

/// Where the pull secret comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, mounted from a Kubernetes Secret.
    File(PathBuf),
    /// The environment.
    Text(SecretString),
    /// The specification's fake for tests.
    Fake,
}

/// A label value that was changed to fit the store's rules.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedLabel {
    /// The label's key.
    pub key: String,
    /// The value as given.
    pub given: String,
    /// The value as written.
    pub written: String,
}

/// How a run logs; resolved on its own, so that the problems of the rest can be logged.
#[derive(Clone, Copy, Debug)]
pub struct LogSettings {
    /// How a line looks.
    pub format: daemon::log::Format,
    /// The least severe level that is written.
    pub level: LevelFilter,
}

/// Everything that is wrong with flags and environment.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub struct InvalidSettings(pub Vec<String>);

/// Where values are found: flags first, then the environment.
pub trait Values {
    /// The value of a setting as given, without surrounding blanks; a blank one counts as missing.
    fn get(&self, setting: &Setting) -> Result<Option<String>, String>;

    /// The value as given, blanks and all; a blank one counts as missing.
    fn verbatim(&self, setting: &Setting) -> Result<Option<SecretString>, String>;
}

/// Reads and checks everything; names all that is wrong at once.
pub fn resolve(values: &dyn Values) -> Result<Settings, InvalidSettings> {
    let mut parser = parse::Parser::new(values);
    let settings = parser.settings();
    match settings {
        Some(settings) if parser.problems.is_empty() => Ok(settings),
        _ => Err(InvalidSettings(parser.problems)),
    }
}

/// The patch that makes a `HostedCluster` use the Kubernetes Secret, if it is asked for.
pub fn hosted_cluster_patch(values: &dyn Values) -> Option<Result<String, InvalidSettings>> {
    let mut parser = parse::Parser::new(values);
    if !parser.switch(&table::PRINT_HOSTED_CLUSTER_PATCH) {
        return None;
    }
    let patch = parser.hosted_cluster_patch().filter(|_| parser.problems.is_empty());
    Some(patch.ok_or(InvalidSettings(parser.problems)))
}

/// Reads how to log. What is wrong with it falls back to the default and is told by [`resolve`].
pub fn resolve_log(values: &dyn Values) -> LogSettings {
    let mut parser = parse::Parser::new(values);
    LogSettings {
        format: parser.parsed(&table::LOG_FORMAT).unwrap_or_default(),
        level: parser.log_level().unwrap_or(LevelFilter::INFO),
    }
}

/// Where a result goes: the result file, if there is to be one, and the termination message.
pub fn resolve_paths(values: &dyn Values) -> (Option<PathBuf>, PathBuf) {
    let mut parser = parse::Parser::new(values);
    let results_path = parser.results_path().filter(|_| parser.problems.is_empty());
    (results_path, parser.termination_log())
}

/// Whether a setting has a value of its own.
pub fn is_given(values: &dyn Values, setting: &Setting) -> bool {
    values.get(setting).is_ok_and(|value| value.is_some())
}

/// A duration as settings take it: from 1 ms to 24 h, such as `30s`, `2m` or `1m30s`.
pub fn duration(text: &str) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_hours(24);
    let duration: Duration = text.parse::<jiff::SignedDuration>().ok()?.try_into().ok()?;
    Some(duration).filter(|duration| (Duration::from_millis(1)..=LONGEST).contains(duration))
}

impl fmt::Display for InvalidSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("; "))
    }
}

#[cfg(test)]
mod tests;
