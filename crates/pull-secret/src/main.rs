//! The fleet plane's command line.

use std::process::ExitCode;

/// A server that takes writes spends a tenth of its CPU in the C library's allocator, and less in this one
/// (`make bench BENCH=api`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    daemon::memory::protect();
    pull_secret::main()
}
