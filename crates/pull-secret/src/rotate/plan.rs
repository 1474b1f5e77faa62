//! `pull-secret rotate plan`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use daemon::output::{self, plain};
use daemon::retry::Budget;
use diagnosis::retry::Selection;
use rotation::observe;
use rotation::plan::{Options, Plan};
use tokio_util::sync::CancellationToken;

use super::common::{sources, unusable};
use super::page::print;
use crate::cli::RotatePlanArguments;
use crate::client;

/// Maximum time of all reads.
const TIMEOUT: Duration = Duration::from_mins(30);

/// Plans a rotation and prints it.
pub(super) async fn plan(arguments: RotatePlanArguments) -> anyhow::Result<ExitCode> {
    let RotatePlanArguments { clusters, search, source, api, save, output: format, .. } = arguments;
    let options = Options {
        first_wave: arguments.first_wave.get(),
        wave_size: arguments.wave_size.get(),
        per_minute: arguments.per_minute.get(),
        max_failures: arguments.max_failures,
        wave_timeout: arguments.wave_timeout,
    };
    let sources = match sources(source) {
        Ok(sources) => sources,
        Err(error) => return unusable(error),
    };
    let selection = match search {
        Some(search) => Selection::Search(search),
        None => Selection::Named(clusters),
    };
    let client = client::client(&api)?;
    let budget = Budget::new(TIMEOUT, CancellationToken::new());
    let plan = match observe::plan(&client.within(&budget), &selection, &sources, options).await {
        Ok(plan) => plan,
        Err(error) => return Ok(client::refused(&error)),
    };
    print(&plan, format)?;
    if plan.waves.is_empty() {
        output::note("there is nothing to rotate");
        return Ok(ExitCode::FAILURE);
    }
    match save {
        Some(path) => keep(&plan, &path)?,
        None => output::note("nothing was changed; keep the plan with --save FILE, then `pull-secret rotate start`"),
    }
    Ok(ExitCode::SUCCESS)
}

fn keep(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(&plan)? + "\n";
    if !daemon::file::create(path, text.as_bytes()).context("--save: cannot write the plan")? {
        bail!("--save: the file exists already; give a new one");
    }
    output::note(format_args!(
        "nothing was changed; start it with: pull-secret rotate start NAME --plan {} --yes, and the same --from",
        plain(&path.to_string_lossy())
    ));
    Ok(())
}
