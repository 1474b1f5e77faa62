//! `pull-secret rotate pause` and `abort`.

use std::process::ExitCode;

use daemon::output;
use rotation::record::{RecordError, Records};
use rotation::run::ABORTED;
use rotation::state::{Phase, Request, State};
use rotation::status::Page;

use super::common::{records, show};
use crate::cli::{RotateAbortArguments, RotateNameArguments};

/// Ends the process that works on a rotation.
pub(super) async fn pause(arguments: RotateNameArguments) -> anyhow::Result<ExitCode> {
    let records = records(arguments.record).await?;
    request(&records, &arguments.name, Request::Pause).await?;
    show(&Page::of(records.find(&arguments.name).await?), arguments.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Gives a rotation up.
pub(super) async fn abort(arguments: RotateAbortArguments) -> anyhow::Result<ExitCode> {
    let RotateNameArguments { name, record, output: format } = arguments.rotation;
    let records = records(record).await?;
    if arguments.yes {
        request(&records, &name, Request::Abort).await?;
    }
    show(&Page::of(records.find(&name).await?), format)?;
    output::note(if arguments.yes { ABORTED } else { "nothing was changed: add --yes" });
    Ok(ExitCode::SUCCESS)
}

/// Hands a request to the process that works on the rotation, or carries it out where none does.
async fn request(records: &Records, name: &str, request: Request) -> Result<(), RecordError> {
    let recorded = records.find(name).await?;
    recorded.check_unfinished()?;
    let is_worked_on = recorded.holder.is_some();
    let change = |state: &mut State| {
        // An abortion is not taken back by a pause.
        if state.request != Some(Request::Abort) {
            state.request = Some(request);
        }
        if !is_worked_on && request == Request::Abort {
            (state.phase, state.because) = (Phase::Aborted, ABORTED.to_owned());
        } else if !is_worked_on && state.phase == Phase::Running {
            state.phase = Phase::Paused;
        }
    };
    records.change(name, change).await.map(drop)
}
