//! `pull-secret local`: runs the program `pull-secret-local`, as git and kubectl run theirs.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use daemon::environment::ProcessEnvironment;

const PROGRAM: &str = "pull-secret-local";

/// Becomes `pull-secret-local` with these arguments.
pub(crate) fn run(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let running = std::env::current_exe().context("cannot find this program's own file")?;
    let program = daemon::program::find(PROGRAM, &running, &ProcessEnvironment)?.with_context(|| {
        format!("{PROGRAM} is neither beside this program nor on PATH; build it with: cargo build --package {PROGRAM}")
    })?;
    Err(Command::new(&program).args(arguments).exec()).with_context(|| format!("cannot run {}", program.display()))
}
