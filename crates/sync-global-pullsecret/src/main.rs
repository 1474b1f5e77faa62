//! The node syncer's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    sync_global_pullsecret::main()
}
