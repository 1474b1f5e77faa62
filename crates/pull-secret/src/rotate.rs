//! `pull-secret rotate`: new pull secrets for many clusters, in waves.

mod common;
mod page;
mod plan;
mod progress;
mod request;
mod work;

use std::process::ExitCode;

use anyhow::Context as _;
use daemon::output;
use rotation::status::Page;

use crate::cli::RotateCommand;
use common::{records, show};

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
                let records = records(arguments.record).await?;
                let names = match arguments.name {
                    Some(name) => vec![name],
                    None => records.names().await?,
                };
                if names.is_empty() {
                    output::note("there is no rotation");
                }
                for name in names {
                    show(&Page::of(records.find(&name).await?), arguments.output)?;
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    })
}
