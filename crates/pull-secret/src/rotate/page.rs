//! The page of a plan.

use std::fmt::Write as _;

use daemon::output::{self, plain};
use diagnosis::decide::age;
use diagnosis::retry::WRITES_PER_MINUTE;
use jiff::SignedDuration;
use rotation::decide::{Estimate, estimate};
use rotation::plan::{Options, Plan};
use serde_json::json;

use crate::cli::OutputFormat;

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
