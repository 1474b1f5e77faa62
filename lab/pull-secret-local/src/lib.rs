//! The Pull Secret Service on one machine: the whole fleet plane on embedded parts, its demo, and the emulators.
//!
//! For development and tests only; no image contains this program. `pull-secret local …` runs it.
//!
//! - `up` starts API, Sentinel, adapter, broker, Secret Manager and Kubernetes in one process; Jobs run as processes of the
//!   program `pull-secret`.
//! - `demo` walks one cluster through creation, rotation, repair and deletion, and checks each step.
//! - `demo credentials` walks a cluster's registry accounts through theirs, with a real registry.
//! - `emulator` starts one emulator.

pub mod cli;

mod adapter;
mod credentials;
mod daemons;
mod demo;
mod emulator;
mod fleet;
mod folder;
mod jobs;
mod options;
mod parts;
mod peer_state;
mod peers;
mod ready;
mod scenario;
mod scripted;
mod simulate;
mod store;
mod up;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use daemon::output;

use cli::{Cli, Command, EmulatorCommand, StreamFormat};

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let arguments = Cli::parse();
    // Before anything starts a thread.
    if let Err(error) = emulators::kubernetes::allow_mounts() {
        output::note(format_args!("error: cannot map the user into a user namespace: {error}"));
        return ExitCode::from(2);
    }
    let result = match arguments.command {
        Command::Up(arguments) => up::up(&arguments),
        Command::Demo(arguments) => up::demo(&arguments),
        Command::Emulator { emulator: EmulatorCommand::SecretManager(arguments) } => {
            emulator::secret_manager(*arguments)
        }
        Command::Emulator { emulator: EmulatorCommand::KeyVault(arguments) } => emulator::key_vault(*arguments),
        Command::Emulator { emulator: EmulatorCommand::Quay(arguments) } => emulator::quay(*arguments),
        Command::Emulator { emulator: EmulatorCommand::Kubernetes(arguments) } => emulator::kubernetes(*arguments),
        Command::Version(arguments) => print(&match arguments.output {
            StreamFormat::Text => cli::VERSION.text(),
            StreamFormat::Json => cli::VERSION.json(),
        }),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pull-secret-local", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    };
    result.unwrap_or_else(|error| {
        output::note(format_args!("error: {error:#}"));
        ExitCode::from(2)
    })
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    Ok(output::print(text)?)
}
