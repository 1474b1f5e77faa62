//! `pull-secret rotate start` and `resume`.

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::output;
use daemon::retry::Budget;
use hyperfleet_client::{Client, ListQuery};
use rotation::event::Event;
use rotation::plan::Plan;
use rotation::record::Records;
use rotation::run::{Run, RunError};
use rotation::source::Sources;
use rotation::state::{Phase, State};
use rotation::status::Page;

use super::common::{records, show, sources, unusable};
use super::page::print;
use super::progress::Progress;
use crate::cli::{OutputFormat, RotateResumeArguments, RotateStartArguments, WorkFlags};
use crate::client;
use crate::context::Chosen;

/// Maximum time of a run, far beyond the largest fleet's.
const TIMEOUT: Duration = Duration::from_hours(24 * 30);

/// The parts of a process that works on a rotation.
struct Parts {
    client: Client,
    records: Records,
    sources: Sources,
    identity: String,
}

/// Starts a rotation.
pub(super) async fn start(arguments: RotateStartArguments) -> anyhow::Result<ExitCode> {
    let RotateStartArguments { name, plan, work } = arguments;
    let text = fs::read_to_string(plan).context("--plan: cannot read the file")?;
    let plan: Plan = serde_json::from_str(&text).context("--plan: the file is not of `rotate plan --save`")?;
    let (is_dry, format) = (!work.yes, work.output);
    let parts = match Parts::of(work).await {
        Ok(parts) => parts,
        Err(error) => return unusable(error),
    };
    if is_dry {
        parts.records.check_absent(&name).await?;
        if let Err(error) = parts.sources.check(&plan) {
            return unusable(error.into());
        }
        print(&plan, format)?;
        output::note("nothing was changed: add --yes");
        return Ok(ExitCode::SUCCESS);
    }
    parts.work(&name, &plan, format, true).await
}

/// Goes on with a rotation.
pub(super) async fn resume(arguments: RotateResumeArguments) -> anyhow::Result<ExitCode> {
    let RotateResumeArguments { name, work } = arguments;
    let (is_dry, format) = (!work.yes, work.output);
    let parts = match Parts::of(work).await {
        Ok(parts) => parts,
        Err(error) => return unusable(error),
    };
    let recorded = parts.records.find(&name).await?;
    recorded.state.check_unfinished(&name)?;
    if is_dry {
        if let Err(error) = parts.sources.check(&recorded.plan) {
            return unusable(error.into());
        }
        show(&Page::of(recorded), format)?;
        output::note("nothing was changed: add --yes");
        return Ok(ExitCode::SUCCESS);
    }
    parts.work(&name, &recorded.plan, format, false).await
}

// === impl Parts ===

impl Parts {
    async fn of(flags: WorkFlags) -> anyhow::Result<Self> {
        let sources = sources(flags.source)?;
        let context = Chosen::of_fleet(&flags.api)?;
        let client = client::client_in(&flags.api, &context)?;
        let records = records(flags.record, &context).await?;
        let user = records.cluster().user().await?;
        // Two processes of one person are two holders.
        let identity = format!("{user} (process {}, {:08x})", std::process::id(), rand::random::<u32>());
        Ok(Self { client, records, sources, identity })
    }

    async fn work(&self, name: &str, plan: &Plan, format: OutputFormat, is_new: bool) -> anyhow::Result<ExitCode> {
        let stop = daemon::shutdown::on_signal().context("cannot listen to signals")?;
        let budget = Budget::new(TIMEOUT, stop.clone());
        let calls = self.client.within(&budget);
        // An API that refuses the caller is an error before anything is recorded.
        let query = ListQuery { size: Some(1), fields: vec!["id".to_owned()], ..ListQuery::default() };
        if let Err(error) = calls.list("clusters", &query).await {
            return Ok(client::refused(&error));
        }
        let (records, sources, identity) = (&self.records, &self.sources, self.identity.as_str());
        let run = Run { calls, records, sources, name, identity, stop: &stop };
        let mut progress = Progress::new(plan, format);
        let mut each = |event: &Event, state: &State| progress.show(event, state);
        let ended = if is_new { run.start(plan, &mut each).await } else { run.resume(plan, &mut each).await };
        progress.printed?;
        match ended {
            Ok(state) if state.phase == Phase::Done => Ok(ExitCode::SUCCESS),
            Ok(_) => Ok(ExitCode::FAILURE),
            Err(RunError::Source(error)) => unusable(error.into()),
            Err(error @ RunError::LeaseLost(_)) => {
                output::note(format_args!("error: {error}"));
                Ok(ExitCode::FAILURE)
            }
            Err(error) => Err(error.into()),
        }
    }
}
