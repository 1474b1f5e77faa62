//! Reads the settings of a run from flags and environment.

use std::path::PathBuf;

use daemon::environment::Environment;
use daemon::settings::Loaded;
use daemon::settings::traces::Export;
use fleet_model::ClusterId;
use secrecy::SecretString;
use secret_store::{ProjectId, StoreSettings};
use tracing::level_filters::LevelFilter;

use super::parse::Parser;
use super::table::{Given, STORING_ONLY, TABLE};
use super::vault::StoreKind;
use super::{Flags, InvalidSettings, Settings};

/// Reads and checks everything.
///
/// # Errors
///
/// All faults at once.
pub fn resolve(flags: &Flags, environment: &impl Environment) -> Result<Settings, InvalidSettings> {
    let is_deletion = flags.get("delete").is_some_and(|value| value.trim() == "true");
    let ignored = if is_deletion { STORING_ONLY.to_vec() } else { Vec::new() };
    let document = environment.verbatim("PULL_SECRET_DATA").ok().flatten().map(SecretString::from);
    let checked = loaded(flags, environment, ignored).then(|mut given| {
        // The content is stored as it is given, blanks and all.
        given.pull_secret_data = document.filter(|_| given.pull_secret_data.is_some());
        let mut parser = Parser::new(&given);
        let settings = parser.settings();
        settings.filter(|_| parser.problems.is_empty()).ok_or(parser.problems)
    });
    checked.map_err(InvalidSettings)
}

/// Reads the settings of the store alone, as a run has them; `None` for Google's, whose place is not a setting of the store.
/// `kind` takes precedence over the variable.
///
/// # Errors
///
/// All faults at once.
pub fn resolve_store(
    kind: Option<&str>,
    environment: &impl Environment,
) -> Result<Option<StoreSettings>, InvalidSettings> {
    let flags = kind.map(|kind| ("secret-store", kind.to_owned())).into_iter().collect();
    let kept = |keep: &dyn Fn(&str) -> bool| {
        let ignored = TABLE.scalars().into_iter().map(|row| row.path).filter(|path| !keep(path)).collect();
        loaded(&flags, environment, ignored)
    };
    // Variables of other stores say nothing about Google's: their own command lines read some of them too.
    let kind = kept(&|path| path == "secret_store").then(|given| Ok(given.secret_store)).map_err(InvalidSettings)?;
    if kind == StoreKind::Google {
        return Ok(None);
    }
    let blocks = ["secret_store", "vault.", "aws.", "azure."];
    let store = kept(&|path| blocks.iter().any(|block| path.starts_with(block))).then(|given| {
        let mut parser = Parser::new(&given);
        let store = parser.store();
        store.filter(|_| parser.problems.is_empty()).map(Some).ok_or(parser.problems)
    });
    store.map_err(InvalidSettings)
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
        let mut parser = Parser::new(&given);
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

/// Returns the export of traces. Faulty settings export nothing; [`resolve`] reports them.
pub fn resolve_export(flags: &Flags, environment: &impl Environment) -> Option<Export> {
    let loaded = loaded(flags, environment, Vec::new());
    loaded.settings().and_then(|given| given.tracing.export().ok().flatten())
}

/// Files that a result is written to, as far as the settings are valid: the result file, if there is to be one, and the
/// termination message.
pub fn resolve_paths(flags: &Flags, environment: &impl Environment) -> (Option<PathBuf>, PathBuf) {
    let loaded = loaded(flags, environment, Vec::new());
    let Some(given) = loaded.settings() else { return (None, PathBuf::new()) };
    let mut parser = Parser::new(given);
    let results_path = parser.results_path().filter(|_| parser.problems.is_empty());
    (results_path, given.termination_log_path.clone())
}

/// The names that all log lines of a run have, as far as they are valid: the log lines about invalid settings have them too.
pub fn resolve_names(flags: &Flags, environment: &impl Environment) -> (Option<ClusterId>, Option<ProjectId>) {
    let loaded = loaded(flags, environment, Vec::new());
    let Some(given) = loaded.settings() else { return (None, None) };
    let cluster = given.cluster_id.as_deref().and_then(|text| text.parse().ok());
    (cluster, given.gcp_project_id.as_deref().and_then(|text| text.parse().ok()))
}

fn loaded(flags: &Flags, environment: &impl Environment, ignored: Vec<&'static str>) -> Loaded<Given> {
    let given = daemon::settings::Given { file: None, flags: flags.clone(), ignored };
    daemon::settings::load(&TABLE, environment, &given)
}
