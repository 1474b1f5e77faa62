//! The command line.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use daemon::environment::ProcessEnvironment;
use daemon::log;
use daemon::settings::{Kind, Row};
use tokio::runtime::Builder;

use crate::server::{self, Server};
use crate::settings::table::{TABLE, variable};
use crate::settings::{CONFIG, CONFIG_VARIABLE, Checked, Settings};
use crate::{explain, offline};

/// The crates whose events are logged.
const CRATES: &[&str] = &["daemon", "global_pull_secret", "kubernetes"];

/// What a user types.
#[derive(Debug, Parser)]
#[command(
    name = "global-pull-secret",
    version,
    about = "Brings a hosted cluster's additional pull secrets to its nodes"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look after a hosted cluster until SIGTERM or Ctrl-C
    Run(Box<Flags>),
    /// Say which registries' entries are from which Secret, and which key wins for an image
    ///
    /// Reads what the controller has written into the hosted cluster, and no credential. Exit code: 0, or 1 where nothing is
    /// deployed.
    Explain(ExplainArguments),
    /// Merge files as the controller merges Secrets, offline
    ///
    /// Prints which entry was taken and why; with --write also the merged document. Exit code: 0, 3 for a file that is refused.
    Merge(MergeArguments),
}

/// The flags of settings that were given, by their names.
#[derive(Debug, Default)]
pub struct Flags(pub BTreeMap<&'static str, String>);

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// The image, as a Pod has it; without one, all registries
    pub image: Option<String>,
    /// The hosted cluster's kubeconfig; without one the user's own
    #[arg(long, value_name = "PATH", env = "GLOBAL_PULL_SECRET_HOSTED_KUBECONFIG")]
    pub hosted_kubeconfig: Option<PathBuf>,
    /// How to print
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
    /// Who wins where both name a registry
    #[arg(long, value_parser = ["additional-wins", "original-wins"], default_value = "additional-wins")]
    pub conflict_policy: String,
    /// A registry, or a part of one, in which only the original has a say; may be repeated
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    pub protected_prefix: Vec<String>,
    /// What a bad entry does
    #[arg(long, value_parser = ["reject-all", "skip"], default_value = "reject-all")]
    pub invalid_entries: String,
    /// Write the merged document, with its credentials, to this file (mode 0600)
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Does what the command line says.
pub fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(flags) => run(flags.0),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Merge(arguments) => offline::merge(&arguments),
    };
    done.unwrap_or_else(|error| {
        // Nobody is left to tell when stderr is gone.
        let _unwritable = writeln!(io::stderr().lock(), "error: {error:#}");
        let is_configuration = error.to_string().starts_with("invalid configuration");
        ExitCode::from(if is_configuration { 2 } else { 1 })
    })
}

fn run(flags: BTreeMap<&'static str, String>) -> anyhow::Result<ExitCode> {
    let checked = Settings::load(flags, &ProcessEnvironment).and_then(Settings::check);
    let checked = checked.map_err(|faults| anyhow::anyhow!("invalid configuration\n  {}", faults.join("\n  ")))?;
    start_log(&checked)?;
    runtime()?.block_on(async {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let server = Server::prepare(checked).await.map_err(told)?;
        tracing::info!(
            operation = "start",
            health = %server.health_address(),
            metrics = %server.metrics_address(),
            "looks after the hosted cluster"
        );
        Box::pin(server.run(stop)).await;
        tracing::info!(operation = "stop", "stopped");
        Ok(ExitCode::SUCCESS)
    })
}

fn told(error: server::StartError) -> anyhow::Error {
    anyhow::Error::from(error)
}

pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start tokio")
}

fn start_log(checked: &Checked) -> anyhow::Result<()> {
    let settings = &checked.settings.log;
    let level =
        log::level(&settings.level).map_err(|error| anyhow::anyhow!("invalid configuration\n  log.level: {error}"))?;
    let Ok(format) = settings.format.parse() else {
        bail!("invalid configuration\n  log.format: must be json or text")
    };
    let subscriber = log::subscriber(log::Settings { format, level, crates: CRATES }, io::stdout());
    tracing::subscriber::set_global_default(subscriber).context("cannot start the log")
}

/// Writes a command's result to stdout. A reader that has gone is not an error: it has read enough.
pub(crate) fn print(text: impl Display) -> anyhow::Result<()> {
    let written = write!(io::stdout().lock(), "{text}").and_then(|()| io::stdout().lock().flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("cannot write to stdout"),
        _ => Ok(()),
    }
}

// === impl Flags ===

impl Args for Flags {
    fn augment_args(command: clap::Command) -> clap::Command {
        let help = format!("The configuration file, YAML [env: {CONFIG_VARIABLE}]");
        let config = Arg::new(CONFIG).long(CONFIG).short('c').value_name("FILE").action(ArgAction::Set).help(help);
        TABLE.rows.iter().filter_map(argument).fold(command.arg(config), clap::Command::arg)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = TABLE.rows.iter().filter_map(|row| row.flag).chain([CONFIG]);
        let given = names.filter_map(|name| {
            let values: Vec<String> = matches.get_many::<String>(name)?.cloned().collect();
            Some((name, values.join(",")))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

fn argument(row: &'static Row) -> Option<Arg> {
    let flag = row.flag?;
    let default = if row.default.is_empty() { String::new() } else { format!(" [default: {}]", row.default) };
    let help = format!("{} [env: {}]{default}", row.help, variable(row.path));
    let action = if ["protected-prefix", "probe-deny"].contains(&flag) { ArgAction::Append } else { ArgAction::Set };
    let argument = Arg::new(flag).long(flag).help(help).action(action).value_name(row.kind.placeholder());
    Some(match row.kind {
        Kind::Switch => argument.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => argument,
    })
}
