//! The node syncer's process.

use std::process::ExitCode;

fn main() -> ExitCode {
    daemon::memory::protect();
    sync_global_pullsecret::main()
}
