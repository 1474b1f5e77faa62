//! The program `pull-secret-local`.

use std::process::ExitCode;

/// The product's; see `crates/pull-secret/src/main.rs`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pull_secret_local::main()
}
