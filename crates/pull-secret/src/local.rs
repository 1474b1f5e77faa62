//! `pull-secret local`: the main job on embedded parts, on this machine alone.

mod demo;

use std::process::ExitCode;

use anyhow::Context as _;
use daemon::environment::{Environment as _, ProcessEnvironment};

use crate::proxy;

/// Shows the main job: stored, unchanged, rotated.
pub(crate) fn demo() -> anyhow::Result<ExitCode> {
    if proxy::VARIABLES.iter().any(|name| matches!(ProcessEnvironment.text(name), Ok(Some(_)))) {
        return without_proxies();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(demo::run())
}

/// Everything of the demo is on this machine, so a proxy has no place in it: the same again, without one.
fn without_proxies() -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = std::process::Command::new(program);
    for name in proxy::VARIABLES {
        command.env_remove(name);
    }
    let status = command.args(["local", "demo"]).status().context("cannot start the demo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
