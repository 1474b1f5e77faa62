//! The fleet plane's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    pull_secret::main()
}
