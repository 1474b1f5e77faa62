//! Shared parts of the commands of `rotate`: records, new pull secrets, pages.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::output;
use jiff::Timestamp;
use kubernetes::Cluster;
use rotation::record::Records;
use rotation::source::{SourceError, Sources};
use rotation::status::Page;
use serde_json::json;

use crate::cli::{OutputFormat, RecordFlags, SourceFlags};
use crate::context::Chosen;

/// Maximum time of a call to Kubernetes.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Prints the page of a rotation.
pub(super) fn show(page: &Page, format: OutputFormat) -> anyhow::Result<()> {
    match format {
        OutputFormat::Table => output::print(page.text(Timestamp::now()))?,
        OutputFormat::Json => output::print(format_args!("{}\n", json!(page)))?,
    };
    Ok(())
}

/// The records of rotations in the management cluster, where flags, environment and context have it.
pub(super) async fn records(flags: RecordFlags, context: &Chosen) -> anyhow::Result<Records> {
    let access = context.kubernetes(flags.kubeconfig.as_ref())?;
    if access.kubeconfig.is_none() {
        bail!("no access to the record of rotations: give --kubeconfig, or set KUBECONFIG");
    }
    let cluster = Cluster::connect(&access.settings(CALL_TIMEOUT)).await?;
    Ok(Records::new(cluster, &context.namespace(flags.namespace.as_ref())))
}

/// The new pull secrets.
pub(super) fn sources(flags: SourceFlags) -> anyhow::Result<Sources> {
    let key = match flags.digest_key_file {
        Some(path) => Some(path),
        None => ProcessEnvironment.text("DIGEST_KEY_FILE")?.map(PathBuf::from),
    };
    let key = key.context(
        "contents cannot be compared: give the API's pull_secret.digest_key_file with --digest-key-file, or set DIGEST_KEY_FILE",
    )?;
    Sources::open(&flags.from, &key).map_err(anyhow::Error::from)
}

/// The exit code of new pull secrets that cannot be used, as `validate` has it.
fn exit_code(error: &SourceError) -> u8 {
    match error {
        SourceError::Invalid(_) | SourceError::OfCluster { .. } => {
            fleet_model::job::Reason::InvalidPullSecret.exit_code()
        }
        _ => 2,
    }
}

/// Returns the exit code of new pull secrets that cannot be used; other errors are returned.
pub(super) fn unusable(error: anyhow::Error) -> anyhow::Result<ExitCode> {
    let source = error.downcast::<SourceError>()?;
    let code = exit_code(&source);
    output::note(format_args!("error: {:#}", anyhow::Error::from(source)));
    Ok(ExitCode::from(code))
}
