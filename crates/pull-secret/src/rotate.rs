//! `pull-secret rotate`: new pull secrets for many clusters, in waves.

mod plan;
mod progress;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use daemon::environment::{Environment as _, ProcessEnvironment};
use daemon::output;
use jiff::Timestamp;
use kubernetes::Cluster;
use rotation::record::{RecordError, Records};
use rotation::run::ABORTED;
use rotation::source::{SourceError, Sources};
use rotation::state::{Phase, Request, State};
use rotation::status::Page;
use serde_json::json;

use crate::cli::{OutputFormat, RecordFlags, RotateAbortArguments, RotateCommand, RotateNameArguments, SourceFlags};

/// Maximum time of a call to Kubernetes.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a command of `rotate`.
pub(crate) fn rotate(command: RotateCommand) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        match command {
            RotateCommand::Plan(arguments) => plan::plan(arguments).await,
            RotateCommand::Start(arguments) => work::start(*arguments).await,
            RotateCommand::Resume(arguments) => work::resume(*arguments).await,
            RotateCommand::Pause(arguments) => pause(arguments).await,
            RotateCommand::Abort(arguments) => abort(arguments).await,
            RotateCommand::Status(arguments) => {
                let records = records(arguments.record).await?;
                let names = match arguments.name {
                    Some(name) => vec![name],
                    None => records.names().await?,
                };
                if names.is_empty() {
                    output::note("there is no rotation");
                }
                for name in names {
                    show(Page::of(records.find(&name).await?), arguments.output)?;
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    })
}

async fn pause(arguments: RotateNameArguments) -> anyhow::Result<ExitCode> {
    let records = records(arguments.record).await?;
    request(&records, &arguments.name, Request::Pause).await?;
    show(Page::of(records.find(&arguments.name).await?), arguments.output)?;
    Ok(ExitCode::SUCCESS)
}

async fn abort(arguments: RotateAbortArguments) -> anyhow::Result<ExitCode> {
    let RotateNameArguments { name, record, output: format } = arguments.rotation;
    let records = records(record).await?;
    if arguments.yes {
        request(&records, &name, Request::Abort).await?;
    }
    show(Page::of(records.find(&name).await?), format)?;
    output::note(if arguments.yes { ABORTED } else { "nothing was changed: add --yes" });
    Ok(ExitCode::SUCCESS)
}

/// Hands a request to the process that works on the rotation, or carries it out where none does.
async fn request(records: &Records, name: &str, request: Request) -> Result<(), RecordError> {
    let recorded = records.find(name).await?;
    recorded.check_unfinished()?;
    let is_worked_on = recorded.holder.is_some();
    let change = |state: &mut State| {
        // An abortion is not taken back by a pause.
        if state.request != Some(Request::Abort) {
            state.request = Some(request);
        }
        if !is_worked_on && request == Request::Abort {
            (state.phase, state.because) = (Phase::Aborted, ABORTED.to_owned());
        } else if !is_worked_on && state.phase == Phase::Running {
            state.phase = Phase::Paused;
        }
    };
    records.change(name, change).await.map(drop)
}

fn show(page: Page, format: OutputFormat) -> anyhow::Result<()> {
    match format {
        OutputFormat::Table => output::print(page.text(Timestamp::now()))?,
        OutputFormat::Json => output::print(format_args!("{}\n", json!(page)))?,
    };
    Ok(())
}

/// The records of rotations in the management cluster.
async fn records(flags: RecordFlags) -> anyhow::Result<Records> {
    let kubeconfig = match flags.kubeconfig {
        Some(path) => Some(path),
        None => ProcessEnvironment.text("KUBECONFIG")?.map(PathBuf::from),
    };
    if kubeconfig.is_none() {
        bail!("no access to the record of rotations: give --kubeconfig, or set KUBECONFIG");
    }
    let settings = kubernetes::Settings { kubeconfig, call_timeout: CALL_TIMEOUT, ..kubernetes::Settings::default() };
    Ok(Records::new(Cluster::connect(&settings).await?, &flags.namespace))
}

/// The new pull secrets.
fn sources(flags: SourceFlags) -> anyhow::Result<Sources> {
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
