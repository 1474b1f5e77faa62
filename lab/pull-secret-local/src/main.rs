//! The program `pull-secret-local`.

use std::process::ExitCode;

fn main() -> ExitCode {
    pull_secret_local::main()
}
