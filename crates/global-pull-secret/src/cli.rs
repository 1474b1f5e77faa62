//! The command line.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use daemon::environment::ProcessEnvironment;
use daemon::faults::Faults;
use daemon::settings::dump::Format;
use daemon::traces::{self, Program};
use daemon::version::Version;
use fleet_model::names::trace::SERVICE_CONTROLLER;
use tokio::runtime::Builder;

use crate::arguments::{CommandResult, ExplainArguments, MergeArguments, Output, PlanArguments, VersionArguments};
use crate::server::{self, Server};
use crate::settings::Checked;
use crate::settings::table::TABLE;
use crate::{explain, image_plan, offline};

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
    /// Show which key serves each running image before and after a change of the additional Secret
    ///
    /// Reads the images of the Pods and the pull secrets in the hosted cluster, changes nothing, and prints no credential. With
    /// --additional or --removed, plans that change; without, shows the effect of the Secrets that are there. An image loses its
    /// key if a Secret that has a key for it has none any more. Exit code: 0, or 3 if an image would lose its key or the
    /// controller would refuse the file.
    Plan(Box<PlanArguments>),
    /// Merge files as the controller merges Secrets, offline
    ///
    /// Prints which entry was taken and why; with --write also the merged document. Exit code: 0, 3 for a file that is refused.
    Merge(MergeArguments),
    /// Print the settings of `run` in effect, each with its source, without credentials
    ///
    /// Exits with 2 and all faults if `run` would refuse them.
    ConfigDump(Box<ConfigDumpArguments>),
    /// Print version, commit and build date
    Version(VersionArguments),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Version, commit and build date of this program.
const VERSION: Version = daemon::version!("global-pull-secret");

/// Arguments of `config-dump`.
#[derive(Debug, Args)]
pub struct ConfigDumpArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Format,
    /// The settings.
    #[command(flatten)]
    pub flags: Flags,
}

daemon::flags!(
    pub Flags,
    daemon::settings::flags::Flags {
        table: TABLE,
        config: Some("[env: GLOBAL_PULL_SECRET_CONFIG]"),
        repeated: &["protected-prefix", "probe-deny"],
        required: daemon::settings::flags::REQUIRED,
    }
);

/// Runs the command.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(flags) => run(flags.0),
        Command::Explain(arguments) => {
            runtime().and_then(|runtime| runtime.block_on(explain::explain(&arguments))).and_then(print)
        }
        Command::Plan(arguments) => {
            runtime().and_then(|runtime| runtime.block_on(image_plan::plan(&arguments))).and_then(print)
        }
        Command::Merge(arguments) => offline::merge(&arguments).and_then(print),
        Command::ConfigDump(arguments) => dump(*arguments),
        Command::Version(arguments) => print(CommandResult::done(match arguments.output {
            Output::Text => VERSION.text(),
            Output::Json => VERSION.json(),
        })),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "global-pull-secret", &mut script);
            print(CommandResult::done(String::from_utf8_lossy(&script).into_owned()))
        }
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
    let export = checked.settings.tracing.export().map_err(Faults::of_configuration)?;
    let program = Program { name: SERVICE_CONTROLLER, version: env!("CARGO_PKG_VERSION") };
    let _traces = traces::start(checked.settings.log.of(CRATES), export, program)?;
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

fn dump(arguments: ConfigDumpArguments) -> anyhow::Result<ExitCode> {
    let dump = Checked::dump(arguments.flags.0, &ProcessEnvironment).map_err(Faults::of_configuration)?;
    print(CommandResult::done(dump.render(arguments.output)))
}

fn start_error(error: server::StartError) -> anyhow::Error {
    anyhow::Error::from(error)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start tokio")
}

/// Writes a command's result to stdout. A reader that has gone is not an error: it has read enough.
fn print(CommandResult { text, code }: CommandResult) -> anyhow::Result<ExitCode> {
    let written = write!(io::stdout().lock(), "{text}").and_then(|()| io::stdout().lock().flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(code),
    }
}
