//! The controller of the global pull secret, as a program.

use std::process::ExitCode;

fn main() -> ExitCode {
    daemon::memory::protect();
    global_pull_secret::cli::main()
}
