//! Pages about rotations.

use std::fmt::Write as _;
use std::time::Duration;

use credentials::decide::rotation::{calls, rotation_eta};
use credentials::rotation::{GroupCounts, Member, Rotation, RotationName, RotationPlan};
use daemon::output::{self, plain};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::page::time;
use crate::cli::OutputFormat;

/// The plan of a rotation that is about to start.
pub(super) struct Proposal<'a> {
    pub(super) name: &'a RotationName,
    pub(super) plan: &'a RotationPlan,
    pub(super) counts: &'a [GroupCounts],
    pub(super) per_minute: u32,
    /// The expected time that one cluster takes.
    pub(super) each: Duration,
    pub(super) now: Timestamp,
}

/// A rotation and its progress.
pub(super) struct Progress<'a> {
    pub(super) rotation: &'a Rotation,
    pub(super) counts: &'a [GroupCounts],
    pub(super) failed: &'a [Member],
    /// The rate of the registry; `None` if it is not configured.
    pub(super) per_minute: Option<u32>,
    /// The time that one cluster takes.
    pub(super) each: Duration,
    pub(super) now: Timestamp,
}

/// The plan of a rotation that is about to start.
pub(super) fn proposal(proposal: &Proposal<'_>, format: OutputFormat) -> String {
    let Proposal { name, plan, counts, per_minute, each, now } = *proposal;
    let calls = counts.iter().map(GroupCounts::all).sum::<u64>().saturating_mul(calls(plan).into());
    let per_minute = plan.max_calls_per_minute.map_or(per_minute, |most| per_minute.min(most.get()));
    let eta = rotation_eta(plan, counts, per_minute, each, now);
    if format == OutputFormat::Json {
        let groups = groups(plan, counts);
        let document = json!({
            "name": name.to_string(), "plan": plan, "groups": groups, "registryCalls": calls, "callsPerMinute": per_minute,
            "expectedEnd": eta,
        });
        return format!("{document:#}\n");
    }
    let mut text = rules(name, plan);
    // Writing to a String cannot fail, here and below.
    let _infallible = writeln!(text, "CALLS       {calls} of the registry, at up to {per_minute} a minute");
    let _infallible = writeln!(text, "EXPECTED    the end at {}", time(eta));
    let row = |(name, counts): (&String, &GroupCounts)| [plain(name), counts.all().to_string()];
    text.push_str(&output::table(["GROUP", "CLUSTERS"], plan.groups.iter().zip(counts).map(row)));
    text
}

/// A rotation and its progress.
pub(super) fn progress(progress: &Progress<'_>, format: OutputFormat) -> String {
    let Progress { rotation, counts, failed, per_minute, each, now } = *progress;
    let Rotation { name, registry, plan, phase, reason, group, started, updated, history, .. } = rotation;
    let is_open = !phase.is_final();
    let eta = per_minute.filter(|_| is_open).and_then(|rate| rotation_eta(plan, counts, rate, each, now));
    if format == OutputFormat::Json {
        let member = |member: &Member| {
            let Member { credential, cluster, cause, started, ended, .. } = member;
            json!({
                "cluster": cluster, "credential": credential.to_string(), "cause": cause, "started": started, "ended": ended,
            })
        };
        let mut document = object(rotation);
        if let Some(members) = document.as_object_mut() {
            members.insert("groups".to_owned(), groups(plan, counts));
            members.insert("failed".to_owned(), failed.iter().map(member).collect());
            members.insert("expectedEnd".to_owned(), json!(eta));
            members.insert("history".to_owned(), json!(history));
        }
        return format!("{document:#}\n");
    }
    let mut text = rules(name, plan);
    let _infallible = writeln!(text, "REGISTRY    {registry}");
    let _infallible = writeln!(text, "PHASE       {phase}: {}", phase.meaning());
    let _infallible = writeln!(text, "REASON      {reason}: {}", reason.meaning());
    let _infallible = writeln!(text, "STARTED     {started}, last change {updated}");
    if is_open {
        let _infallible = writeln!(text, "EXPECTED    the end at {}", time(eta));
    }
    for request in history {
        let (actor, reason) = (plain(&request.actor), plain(&request.reason));
        let _infallible = writeln!(text, "REQUEST     {}, by {actor} at {}: {reason}", request.request, request.at);
    }
    let row = |(index, (name, counts)): (usize, (&String, &GroupCounts))| {
        let marker = if index == *group && is_open { "*" } else { "" };
        let GroupCounts { waiting, in_progress, succeeded, failed, skipped } = counts;
        let numbers = [waiting, in_progress, succeeded, failed, skipped].map(u64::to_string);
        let [waiting, in_progress, succeeded, failed, skipped] = numbers;
        [format!("{marker}{}", plain(name)), waiting, in_progress, succeeded, failed, skipped]
    };
    let header = ["GROUP", "WAITING", "IN PROGRESS", "SUCCEEDED", "FAILED", "SKIPPED"];
    text.push_str(&output::table(header, plan.groups.iter().zip(counts).enumerate().map(row)));
    if !failed.is_empty() {
        let row = |member: &Member| {
            [plain(&member.cluster), member.credential.to_string(), member.cause.clone().unwrap_or_default()]
        };
        text.push_str(&output::table(["FAILED CLUSTER", "OLD CREDENTIAL", "CAUSE"], failed.iter().map(row)));
    }
    text
}

/// The list of rotations.
pub(super) fn list(found: &[Rotation], format: OutputFormat) -> String {
    match format {
        OutputFormat::Json => format!("{:#}\n", found.iter().map(object).collect::<Value>()),
        OutputFormat::Table => {
            let row = |rotation: &Rotation| {
                let Rotation { name, registry, phase, reason, started, updated, .. } = rotation;
                [
                    name.to_string(),
                    registry.to_string(),
                    phase.to_string(),
                    reason.to_string(),
                    started.to_string(),
                    updated.to_string(),
                ]
            };
            output::table(["NAME", "REGISTRY", "PHASE", "REASON", "STARTED", "UPDATED"], found.iter().map(row))
        }
    }
}

fn object(rotation: &Rotation) -> Value {
    let Rotation { name, registry, plan, phase, reason, group, tolerated, started, updated, .. } = rotation;
    json!({
        "name": name.to_string(), "registry": registry.as_str(), "plan": plan, "phase": phase.as_str(),
        "reason": reason.as_str(), "meaning": reason.meaning(), "group": group, "toleratedFailures": tolerated,
        "started": started, "updated": updated,
    })
}

fn groups(plan: &RotationPlan, counts: &[GroupCounts]) -> Value {
    let group = |(search, counts): (&String, &GroupCounts)| json!({ "group": search, "clusters": counts });
    plan.groups.iter().zip(counts).map(group).collect()
}

fn rules(name: &RotationName, plan: &RotationPlan) -> String {
    let RotationPlan { max_concurrency, max_failures, min_success_time, progress_deadline, window, .. } = plan;
    let budget =
        plan.max_calls_per_minute.map(|calls| format!(", {calls} calls of the registry a minute")).unwrap_or_default();
    let window = window.map_or_else(|| "always".to_owned(), |window| format!("{window} UTC"));
    format!(
        "ROTATION    {name}\nRULES       {max_concurrency} clusters at the same time, {max_failures} may fail after the first \
         groups{budget}\nTIMES       {min_success_time:#} of use each, {progress_deadline:#} to get there, begun: {window}\n"
    )
}
