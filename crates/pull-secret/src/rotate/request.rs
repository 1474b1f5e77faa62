//! `pull-secret rotate pause` and `abort`.

use std::process::ExitCode;

use daemon::output;
use rotation::record::{RecordError, Records};
use rotation::run::ABORTED;
use rotation::state::{Phase, Request, State};
use rotation::status::Page;

use super::common::{records, show};
use crate::cli::{RotateAbortArguments, RotateNameArguments};
use crate::context::Chosen;

/// Ends the process that works on a rotation.
pub(super) async fn pause(arguments: RotateNameArguments) -> anyhow::Result<ExitCode> {
    let records = records(arguments.record, &Chosen::of(&arguments.context)?).await?;
    request(&records, &arguments.name, Request::Pause).await?;
    show(&Page::of(records.find(&arguments.name).await?), arguments.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Gives a rotation up.
pub(super) async fn abort(arguments: RotateAbortArguments) -> anyhow::Result<ExitCode> {
    let RotateNameArguments { name, context, record, output: format } = arguments.rotation;
    let records = records(record, &Chosen::of(&context)?).await?;
    if arguments.yes {
        request(&records, &name, Request::Abort).await?;
    }
    let recorded = records.find(&name).await?;
    if arguments.yes && recorded.state.phase != Phase::Aborted {
        output::note("the process that works on it is asked to end; if it is gone, give the command again");
    }
    show(&Page::of(recorded), format)?;
    output::note(if arguments.yes { ABORTED } else { "nothing was changed: add --yes" });
    Ok(ExitCode::SUCCESS)
}

/// Hands a request to the process that works on the rotation, or carries it out where none does.
async fn request(records: &Records, name: &str, request: Request) -> Result<(), RecordError> {
    let is_worked_on = records.find(name).await?.holder.is_some();
    let change = |state: &mut State| {
        match request {
            // A pause does not take an abortion back.
            Request::Pause => state.check_unfinished(name)?,
            // The process that was asked before may be gone.
            Request::Abort => state.check_not_over(name)?,
        }
        state.request = is_worked_on.then_some(request);
        if !is_worked_on && request == Request::Abort {
            (state.phase, state.because) = (Phase::Aborted, ABORTED.to_owned());
        } else if !is_worked_on && state.phase == Phase::Running {
            state.phase = Phase::Paused;
        }
        Ok(())
    };
    records.change(name, change).await.map(drop)
}
