//! `pull-secret rotate`: new pull secrets for many clusters, in waves.

mod common;
mod page;
mod plan;
mod progress;
mod request;
mod status;
mod work;

use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::RotateCommand;
use crate::context::Chosen;

/// Runs a command of `rotate`.
pub(crate) fn rotate(command: RotateCommand) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        match command {
            RotateCommand::Plan(arguments) => plan::plan(arguments).await,
            RotateCommand::Start(arguments) => work::start(*arguments).await,
            RotateCommand::Resume(arguments) => work::resume(*arguments).await,
            RotateCommand::Pause(arguments) => request::pause(arguments).await,
            RotateCommand::Abort(arguments) => request::abort(arguments).await,
            RotateCommand::Status(arguments) => {
                let records = common::records(arguments.record, &Chosen::of(&arguments.context)?).await?;
                status::status(&records, arguments.name.as_deref(), arguments.output).await
            }
        }
    })
}
