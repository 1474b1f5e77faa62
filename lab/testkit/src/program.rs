//! The programs under test, as cargo has built them beside the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::SystemTime;

use tokio::process::Command;

/// The file of a program of this workspace.
///
/// # Panics
///
/// If it is missing or older than one of its sources; the message has the command that builds it.
pub fn path(name: &str) -> PathBuf {
    let running = std::env::current_exe().unwrap();
    // A test is in `deps`, the programs are one folder up.
    let folder = running.parent().and_then(Path::parent).unwrap();
    let program = folder.join(name);
    let built = modified(&program);
    let sources = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let newer = sources.split_whitespace().skip(1).find(|source| modified(Path::new(source)) > built);
    assert!(
        built.is_some() && newer.is_none(),
        "{} is missing or older than its sources; build it with: cargo test --workspace --no-run",
        program.display()
    );
    program
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}

/// `pull-secret` with these arguments, an empty environment and captured output.
pub fn pull_secret(arguments: &[&str]) -> Command {
    command("pull-secret", arguments)
}

/// `pull-secret-local` with these arguments, an empty environment and captured output.
pub fn local(arguments: &[&str]) -> Command {
    command("pull-secret-local", arguments)
}

fn command(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(path(name));
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}
