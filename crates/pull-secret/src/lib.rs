//! The fleet plane's command line: it names the concrete parts and puts them together.

pub mod cli;

mod adapter;
mod api;
mod audit;
mod broker;
mod client;
mod context;
mod credentials;
mod doctor;
mod events;
mod explain;
mod local;
mod prune;
mod rekeyed;
mod retry;
mod rotate;
mod run_job;
mod sentinel;
mod status;
mod store;
mod sweep;
mod validate;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{AuditCommand, Cli, Command, ExplainCommand, OutputFormat, RunJobCommand};
use daemon::output;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            output::note(format_args!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Longest argument that is repeated in an error; a longer one may be a credential in the wrong place.
const LONGEST_SHOWN: usize = 16;

/// Prints the fault of the command line without values that may be credentials.
fn refuse(error: &clap::Error) -> ExitCode {
    let values = std::env::args().skip(1).map(|argument| match argument.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => value.to_owned(),
        _ => argument,
    });
    let hidden = values.filter(|value| !value.starts_with("--") && value.len() > LONGEST_SHOWN);
    let text = hidden.fold(error.render().to_string(), |text, value| text.replace(&value, "(not shown)"));
    if error.use_stderr() {
        output::note(text.trim_end());
        return ExitCode::from(2);
    }
    output::print(text).unwrap_or(ExitCode::FAILURE)
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Api(arguments) => api::api(*arguments),
        Command::Sentinel(arguments) => sentinel::sentinel(*arguments),
        Command::Adapter(arguments) => adapter::adapter(*arguments),
        Command::Credentials { command } => credentials::credentials(command),
        Command::Events { command } => events::events(command),
        Command::RunJob { job: RunJobCommand::PullSecret(flags) } => run_job::pull_secret(flags),
        Command::Audit { command: AuditCommand::Verify(arguments) } => audit::verify(&arguments),
        Command::Validate(arguments) => validate::validate(&arguments),
        Command::Local { arguments } => local::run(arguments),
        Command::Explain { command: ExplainCommand::Cluster(arguments) } => explain::cluster(arguments),
        Command::Status(arguments) => status::status(&arguments),
        Command::Doctor(arguments) => doctor::doctor(&arguments),
        Command::Retry(arguments) => retry::retry(arguments),
        Command::Rotate { command } => rotate::rotate(command),
        Command::Sweep(arguments) => sweep::sweep(&arguments),
        Command::Prune(arguments) => prune::prune(&arguments),
        Command::Context { command } => context::context(command),
        Command::Version(arguments) => Ok(output::print(match arguments.output {
            OutputFormat::Table => cli::VERSION.text(),
            OutputFormat::Json => cli::VERSION.json(),
        })?),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pull-secret", &mut script);
            Ok(output::print(String::from_utf8_lossy(&script))?)
        }
    }
}
