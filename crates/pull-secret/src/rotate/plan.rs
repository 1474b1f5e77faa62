//! `pull-secret rotate plan`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use daemon::output::{self, plain};
use daemon::retry::Budget;
use diagnosis::decide::age;
use diagnosis::retry::{Selection, WRITES_PER_MINUTE};
use jiff::SignedDuration;
use rotation::decide::{Estimate, estimate};
use rotation::observe;
use rotation::plan::{Options, Plan};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cli::{OutputFormat, RotatePlanArguments};
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
    let sources = match super::sources(source) {
        Ok(sources) => sources,
        Err(error) => return super::work::unusable(error),
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

/// Prints a plan with its cost.
pub(super) fn print(plan: &Plan, format: OutputFormat) -> anyhow::Result<()> {
    let estimate = estimate(plan);
    match format {
        OutputFormat::Json => {
            let mut page = serde_json::to_value(plan)?;
            page.as_object_mut().map(|page| page.insert("estimate".to_owned(), json!(estimate)));
            output::print(format_args!("{page}\n"))?
        }
        OutputFormat::Table => output::print(text(plan, &estimate))?,
    };
    Ok(())
}

fn text(plan: &Plan, estimate: &Estimate) -> String {
    let Options { per_minute, max_failures, wave_timeout, .. } = plan.options;
    let clusters = plan.clusters();
    let mut text = format!("CLUSTERS  {clusters} to rotate, {} skipped\n", plan.skipped.len());
    for (index, wave) in plan.waves.iter().enumerate() {
        let ids: Vec<&str> = wave.iter().take(5).map(|planned| planned.id.as_str()).collect();
        let more = if wave.len() > ids.len() { ", …" } else { "" };
        let _infallible = writeln!(text, "WAVE {:<4} {:>5}  {}{more}", index + 1, wave.len(), ids.join(", "));
    }
    for skipped in &plan.skipped {
        let (cluster, message) = (plain(&skipped.cluster), plain(&skipped.message));
        let _infallible = writeln!(text, "SKIPPED   {cluster}  {}: {message}", skipped.reason);
    }
    if plan.waves.is_empty() {
        return text;
    }
    let projects: Vec<String> =
        plan.projects.iter().map(|(project, clusters)| format!("{} {clusters}", plain(project))).collect();
    let Estimate { store_writes, store_calls, store_writes_per_minute, seconds } = estimate;
    let eta = age(SignedDuration::from_secs(i64::try_from(*seconds).unwrap_or(i64::MAX)));
    let _infallible = write!(
        text,
        "COST      {store_writes} writes of {store_calls} calls of Secret Manager; at {per_minute} clusters a minute, up to \
         {store_writes_per_minute} of the {WRITES_PER_MINUTE} writes a minute that a project has\nPROJECTS  {}\n\
         STOPS     at the first failure of wave 1; in later waves after more than {max_failures}; a cluster fails too if it is \
         not available {wave_timeout} s after the last write of its wave\n\
         TIME      about {eta}: the rate, and a minute for each wave until its last Job is done\n",
        projects.join(", "),
    );
    if *store_writes_per_minute > u64::from(WRITES_PER_MINUTE) {
        text.push_str("WARNING   this is more than one project's quota: Jobs will wait for it; lower --per-minute\n");
    }
    text
}
