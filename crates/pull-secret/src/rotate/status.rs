//! `pull-secret rotate status`.

use std::process::ExitCode;

use daemon::output;
use rotation::record::{RecordError, Records};
use rotation::status::Page;

use super::common::show;
use crate::cli::OutputFormat;

/// Shows a rotation, or all. Among all, one that cannot be read does not hide the others.
pub(super) async fn status(records: &Records, name: Option<&str>, format: OutputFormat) -> anyhow::Result<ExitCode> {
    if let Some(name) = name {
        show(&Page::of(records.find(name).await?), format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let names = records.names().await?;
    if names.is_empty() {
        output::note("there is no rotation");
    }
    let mut code = ExitCode::SUCCESS;
    for name in names {
        match records.find(&name).await {
            Ok(recorded) => show(&Page::of(recorded), format)?,
            // It is damaged, or was deleted meanwhile.
            Err(error @ (RecordError::Unreadable { .. } | RecordError::NotFound(_) | RecordError::InvalidName)) => {
                output::note(format_args!("error: rotation {}: {error}", output::plain(&name)));
                code = ExitCode::FAILURE;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(code)
}
