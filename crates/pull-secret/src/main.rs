//! The fleet plane's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    daemon::memory::protect();
    pull_secret::main()
}
