//! The command line.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand, ValueEnum};
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::log;
use tokio::runtime::Builder;

use crate::server::{self, Server};
use crate::settings::Checked;
use crate::settings::table::TABLE;
use crate::{explain, offline};

/// The crates whose events are logged.
const CRATES: &[&str] = &["daemon", "global_pull_secret", "kubernetes"];

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "global-pull-secret",
    version,
    about = "Brings a hosted cluster's additional pull secrets to its nodes"
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the controller of a hosted cluster until SIGTERM or Ctrl-C
    Run(Box<Flags>),
    /// Show which Secret each registry's entry is from, and which key wins for an image
    ///
    /// Reads the controller's objects in the hosted cluster, and prints no credential. Exit code: 0, or 1 if nothing is deployed.
    Explain(ExplainArguments),
    /// Merge files as the controller merges Secrets, offline
    ///
    /// Prints which entry was taken and why; with --write also the merged document. Exit code: 0, 3 for a file that is refused.
    Merge(MergeArguments),
}

daemon::flags!(
    pub Flags,
    daemon::settings::flags::Flags {
        table: TABLE,
        config: Some("[env: GLOBAL_PULL_SECRET_CONFIG]"),
        repeated: &["protected-prefix", "probe-deny"],
    }
);

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// The image, as a Pod has it; without one, all registries
    pub image: Option<String>,
    /// The hosted cluster's kubeconfig; without one the user's own
    #[arg(long, value_name = "PATH", env = "GLOBAL_PULL_SECRET_HOSTED_KUBECONFIG")]
    pub hosted_kubeconfig: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct MergeArguments {
    /// The original pull secret
    #[arg(long, value_name = "FILE")]
    pub original: PathBuf,
    /// An additional one; of several, the first comes before the second
    #[arg(long, value_name = "FILE", required = true)]
    pub additional: Vec<PathBuf>,
    /// The winner where both name a registry
    #[arg(long, value_parser = ["additional-wins", "original-wins"], default_value = "additional-wins")]
    pub conflict_policy: String,
    /// A registry, or a part of one, that only the original may set; may be repeated
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    pub protected_prefix: Vec<String>,
    /// Handling of an invalid entry
    #[arg(long, value_parser = ["reject-all", "skip"], default_value = "reject-all")]
    pub invalid_entries: String,
    /// Write the merged document, with its credentials, to this file (mode 0600)
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Runs the command.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(flags) => run(flags.0),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Merge(arguments) => offline::merge(&arguments),
    };
    done.unwrap_or_else(|error| {
        // Without stderr there is no way to report the error.
        let _unwritable = writeln!(io::stderr().lock(), "error: {error:#}");
        let is_configuration = error.is::<Faults>();
        ExitCode::from(if is_configuration { 2 } else { 1 })
    })
}

fn run(flags: BTreeMap<&'static str, String>) -> anyhow::Result<ExitCode> {
    let checked = Checked::load(flags, &ProcessEnvironment).map_err(Faults::of_configuration)?;
    log::start(checked.settings.log.of(CRATES))?;
    runtime()?.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let server = Server::prepare(checked).await.map_err(start_error)?;
        tracing::info!(
            operation = "start",
            health = %server.health_address(),
            metrics = %server.metrics_address(),
            "controller started"
        );
        Box::pin(server.run(stop)).await;
        tracing::info!(operation = "stop", "stopped");
        Ok(ExitCode::SUCCESS)
    })
}

fn start_error(error: server::StartError) -> anyhow::Error {
    anyhow::Error::from(error)
}

pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start tokio")
}

/// Writes a command's result to stdout. A reader that has gone is not an error: it has read enough.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    let written = write!(io::stdout().lock(), "{text}").and_then(|()| io::stdout().lock().flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
    }
}
