//! `pull-secret local`: the main job on embedded parts, on this machine alone.

mod demo;

use std::process::ExitCode;

use anyhow::Context as _;

/// Shows the main job: stored, unchanged, rotated.
pub(crate) fn demo() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(demo::run())
}
