//! The fleet plane's command line.

use std::process::ExitCode;

/// A server answers a fifth more reports with it than with the C library's allocator (`make bench BENCH=api`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    daemon::memory::protect();
    pull_secret::main()
}
