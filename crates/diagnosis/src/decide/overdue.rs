//! Overdue reports: since when the adapter should have reported a change, and the causes that keep it from working.

use fleet_model::condition::known_time;
use fleet_model::names;
use hyperfleet_client::{Report, Resource, Status};
use jiff::{SignedDuration, Timestamp};
use kubernetes::LeaseSummary;

use super::message::Parts;
use crate::facts::{Facts, Heartbeat, Observation, Observed, State, Verdict};

/// Reasons of the adapter's condition `Available` that mean that its Job runs or is about to.
const JOB_REASONS: [&str; 2] = ["WorkloadInProgress", "DestinationsRecorded"];
/// The reason of the adapter's condition `Available` that means that a precondition is not met.
const PRECONDITIONS_NOT_MET: &str = "PreconditionsNotMet";
/// The next step where nothing was observed that keeps the adapter from working. The names are those of charts/pull-secret.
const READ_LOG: (&str, &str) = (
    "look at the adapter's log; if it does not name this cluster, check Sentinel and broker",
    "kubectl --namespace hyperfleet-system logs deployment/pullsecret-adapter",
);
/// The next step where no replica runs.
const SEE_PODS: (&str, &str) = (
    "see why the adapter does not run",
    "kubectl --namespace hyperfleet-system describe pods --selector app.kubernetes.io/name=pullsecret-adapter",
);

/// Something that is so and that the adapter has not reported.
pub(super) struct Unreported {
    /// The fact in a sentence.
    pub(super) line: String,
    /// The time since which it is so.
    since: Timestamp,
}

/// Something that was observed and keeps the adapter from working.
struct Blocker {
    line: String,
    /// A hint and a command.
    step: Option<(String, String)>,
}

/// Returns since when the cluster is as it is without a report about that; `None` if the last report is about this state.
pub(crate) fn unreported_since(
    cluster: &Resource,
    report: Option<&Report>,
    heartbeats: &[Heartbeat],
) -> Option<Timestamp> {
    let others = heartbeats.iter().filter(|heartbeat| heartbeat.adapter != names::ADAPTER);
    let changes = others.filter_map(|heartbeat| heartbeat.changed);
    let own = [cluster.created_time, cluster.updated_time, cluster.deleted_time];
    let changed = own.into_iter().flatten().chain(changes).max()?;
    let current = report.filter(|report| report.observed_generation >= cluster.generation);
    let reported = current.and_then(|report| known_time(report.last_report_time));
    reported.is_none_or(|reported| reported < changed).then_some(changed)
}

/// Returns what was observed although the report says otherwise; `None` if the report may be true.
///
/// Only called where all preconditions are met.
pub(super) fn unreported(cluster: &Resource, facts: &Facts) -> Option<Unreported> {
    let current = facts.report.as_ref().filter(|report| report.observed_generation >= cluster.generation);
    let available = current.and_then(|report| report.condition(names::condition::AVAILABLE));
    let reason = available.and_then(|available| available.reason.as_deref());
    if reason.is_none_or(|reason| reason == PRECONDITIONS_NOT_MET) {
        let line = format!("all preconditions of generation {} are met", cluster.generation);
        let since = unreported_since(cluster, facts.report.as_ref(), &facts.heartbeats)?;
        return Some(Unreported { line, since });
    }
    reason.filter(|reason| JOB_REASONS.contains(reason))?;
    let reported = current.and_then(|report| known_time(report.last_report_time))?;
    let unreported = |line: &str, since: Timestamp| Some(Unreported { line: line.to_owned(), since });
    match &facts.observed.job {
        Observation::Found(None) => unreported("the Job does not exist", reported),
        Observation::Found(Some(job)) if job.end.is_some() => {
            unreported("the Job has ended", job.ended.unwrap_or(reported).max(reported))
        }
        Observation::Found(Some(_)) | Observation::NotObserved | Observation::Failed(_) => None,
    }
}

/// Returns what a terminating cluster waits for the adapter to report.
pub(super) fn unreported_deletion(cluster: &Resource, facts: &Facts) -> Option<Unreported> {
    let since = unreported_since(cluster, facts.report.as_ref(), &[])?;
    Some(Unreported { line: "the cluster is terminating".to_owned(), since })
}

impl Unreported {
    /// Returns true if the adapter has had the time to report it.
    pub(super) fn is_overdue(&self, facts: &Facts) -> bool {
        facts.now.duration_since(self.since) >= facts.stale_after
    }

    /// Concludes that the adapter does not report.
    pub(super) fn verdict(self, state: State, facts: &Facts) -> Verdict {
        let Self { line, since } = self;
        let reported = facts.report.as_ref().and_then(|report| known_time(report.last_report_time));
        let passed = |time: Timestamp| age(facts.now.duration_since(time));
        let silence = reported.map_or_else(
            || format!("has never reported about this cluster, {} after its last change", passed(since)),
            |reported| format!("has not reported for {}", passed(reported)),
        );
        let because = vec![format!("{line}, but the adapter {silence}")];
        let mut verdict = Verdict { state, agrees: false, because, hint: None, next: Vec::new() };
        block(&mut verdict, facts);
        verdict.because.extend(elsewhere(facts));
        if verdict.hint.is_none() {
            let (hint, command) = READ_LOG;
            (verdict.hint, verdict.next) = (Some(hint.to_owned()), vec![command.to_owned()]);
        }
        verdict
    }
}

/// Adds to a verdict what keeps the adapter from working, whose next step comes before another one.
pub(super) fn block(verdict: &mut Verdict, facts: &Facts) {
    let mut step = None;
    for blocker in blockers(facts) {
        step = step.or(blocker.step);
        if !verdict.because.contains(&blocker.line) {
            verdict.because.push(blocker.line);
        }
    }
    if let Some((hint, command)) = step {
        (verdict.hint, verdict.next) = (Some(hint), vec![command]);
    }
    // The adapter's own word, unless the failure that it repeats is named already.
    let own = facts
        .report
        .as_ref()
        .and_then(|report| Some((unhealthy(report)?, report.condition(names::condition::HEALTH)?)));
    if let Some((line, health)) = own {
        let fact = Parts::of(health.message.as_deref().unwrap_or_default()).fact;
        if fact.is_empty() || !verdict.because.iter().any(|known| known.contains(fact)) {
            verdict.because.push(line);
        }
    }
}

/// Returns what was observed that keeps the adapter from working, the most important first.
fn blockers(facts: &Facts) -> Vec<Blocker> {
    let Observed { job, namespace, has_namespace, lease, .. } = &facts.observed;
    let mut found = Vec::new();
    if let Observation::Failed(why) = job {
        found.push(Blocker { line: format!("Kubernetes cannot be read: {why}"), step: None });
    }
    if let Observation::Found(Some(false)) = has_namespace {
        let line = format!("namespace {namespace}, in which Jobs run, does not exist");
        let hint = "create it, or name the namespace of Jobs with --namespace, if it is another one".to_owned();
        found.push(Blocker { line, step: Some((hint, format!("kubectl create namespace {namespace}"))) });
    }
    if let Observation::Found(Some(lease)) = lease {
        found.extend(expired(lease, facts.now));
    }
    found
}

/// Returns that no replica holds the Lease, if so. Twice the Lease's duration allows for the difference of two clocks.
fn expired(lease: &LeaseSummary, now: Timestamp) -> Option<Blocker> {
    let LeaseSummary { name, holder, renewed, duration } = lease;
    let silence = renewed.map(|renewed| now.duration_since(renewed));
    let line = match (holder, silence) {
        (None, _) => format!("no replica of the adapter runs: Lease {name} was released"),
        (Some(holder), Some(silence)) if silence > *duration + *duration => {
            format!(
                "no replica of the adapter runs: {holder} has renewed Lease {name} for the last time {} ago",
                age(silence)
            )
        }
        (Some(_), _) => return None,
    };
    let (hint, command) = SEE_PODS;
    Some(Blocker { line, step: Some((hint.to_owned(), command.to_owned())) })
}

/// Returns the adapter's own word that it cannot work, if it has reported one.
pub(super) fn unhealthy(report: &Report) -> Option<String> {
    let health = report.condition(names::condition::HEALTH).filter(|health| health.status == Status::False)?;
    let (reason, message) = (health.reason.as_deref(), health.message.as_deref());
    Some(format!("the adapter reports that it cannot work: {}: {}", reason.unwrap_or("-"), message.unwrap_or("-")))
}

/// Returns the adapter's work on other clusters.
fn elsewhere(facts: &Facts) -> Option<String> {
    let own = facts.heartbeats.iter().find(|heartbeat| heartbeat.adapter == names::ADAPTER)?;
    if own.reported_any <= own.reported {
        return Some("it has not reported about other clusters either".to_owned());
    }
    let silence = facts.now.duration_since(own.reported_any?);
    Some(format!("its last report about another cluster is {} old", age(silence)))
}

/// Formats an age in seconds, minutes, hours or days.
pub fn age(age: SignedDuration) -> String {
    match age.as_secs().max(0) {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7_200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}
