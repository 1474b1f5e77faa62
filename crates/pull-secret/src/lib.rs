//! The fleet plane's command line: it names the concrete parts and puts them together.

pub mod cli;

mod emulator;
mod local;
mod output;
mod run_job;
mod validate;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{Cli, Command, EmulatorCommand, LocalCommand, RunJobCommand};

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            output::tell(format_args!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::RunJob { job: RunJobCommand::PullSecret(flags) } => run_job::pull_secret(flags),
        Command::Validate(arguments) => validate::validate(&arguments),
        Command::Emulator { emulator: EmulatorCommand::SecretManager(arguments) } => {
            emulator::secret_manager(*arguments)
        }
        Command::Local { local: LocalCommand::Demo } => local::demo(),
        Command::Version => output::print(cli::version_info()),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pull-secret", &mut script);
            output::print(String::from_utf8_lossy(&script))
        }
    }
}
