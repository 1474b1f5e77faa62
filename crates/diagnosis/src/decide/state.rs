//! The verdict: the state that was observed, its causes, and the next step.

use fleet_model::job::Reason;
use fleet_model::names;
use hyperfleet_client::{Report, ReportedCondition, Resource, Status};
use serde_json::Value;

use super::message::{Parts, failed_pods, result};
use super::next::{self, Step};
use super::overdue::{self, Unreported, age};
use crate::facts::{Facts, Observation, Observed, State, Verdict};

/// Reasons of the adapter's condition `Available` that mean waiting.
const WAITING_REASONS: [&str; 2] = ["PreconditionsNotMet", "WaitingForQuota"];
/// Reasons of the adapter that mean that another process changes what a run has stored.
const DRIFT_REASONS: [adapter::Reason; 2] = [adapter::Reason::Drifted, adapter::Reason::StoreDrifted];
/// The words of the adapter's message about a Job that runs.
const RUNNING: &str = "is running";
/// Time that a Job has before it is called stuck: a run ends within five minutes (`RUN_TIMEOUT`).
const STUCK_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_mins(6);

/// The causes of a state, and the next step.
#[derive(Debug, Default)]
struct Cause {
    because: Vec<String>,
    step: Step,
}

/// The verdict about a cluster that the API does not know.
pub(super) fn absent() -> Verdict {
    let because = vec!["the API knows no cluster of that id".to_owned()];
    let hint = "check the id; a cluster whose deletion is complete is gone from the API";
    let step = Step { hint: Some(hint.to_owned()), commands: vec!["pull-secret status".to_owned()] };
    Cause { because, step }.verdict(State::Absent)
}

/// The adapter's own evaluation comes first: a report that is older than what was observed does not decide.
pub(super) fn verdict(cluster: &Resource, facts: &Facts) -> Verdict {
    let mut verdict = match evaluated(cluster, facts) {
        Evaluated::Concluded(state, cause) => cause.verdict(state),
        Evaluated::Unreported(state, unreported) => return unreported.verdict(state, facts),
    };
    overdue::block(&mut verdict, facts);
    verdict
}

/// The state of a cluster, or the fact that the adapter should have reported.
enum Evaluated {
    Concluded(State, Cause),
    Unreported(State, Unreported),
}

fn evaluated(cluster: &Resource, facts: &Facts) -> Evaluated {
    let conclude = Evaluated::Concluded;
    let current = facts.report.as_ref().filter(|report| report.observed_generation >= cluster.generation);
    if cluster.is_deleting() {
        let unreported = overdue::unreported_deletion(cluster, facts);
        if let Some(unreported) = unreported.filter(|unreported| unreported.is_overdue(facts)) {
            return Evaluated::Unreported(State::Deleting, unreported);
        }
        return conclude(State::Deleting, deletion(cluster, current, facts));
    }
    let available = current.and_then(|report| report.condition(names::condition::AVAILABLE));
    if let (Some(report), Some(Status::True)) = (current, available.map(|condition| condition.status)) {
        let contradictions = contradictions(cluster, report, &facts.observed);
        if contradictions.is_empty() {
            return conclude(State::Available, Cause::said(available, "the adapter reports it as available"));
        }
        let hint = "the next reconcile repairs drift; if it does not, read the adapter's log";
        let mut cause =
            Cause { because: contradictions, step: Step { hint: Some(hint.to_owned()), ..Step::default() } };
        cause.add_missing_namespace(&facts.observed);
        return conclude(State::Contradicted, cause);
    }
    if !facts.unmet.is_empty() {
        return conclude(State::Waiting, waiting(facts));
    }
    if let Some(cause) = current.and_then(|report| failure(cluster, report, facts)) {
        return conclude(State::Failed, cause);
    }
    match overdue::unreported(cluster, facts) {
        Some(unreported) if unreported.is_overdue(facts) => Evaluated::Unreported(State::Stalled, unreported),
        Some(Unreported { line, .. }) => {
            let because = vec![format!("{line}; the adapter is about to report")];
            conclude(State::Running, Cause { because, ..Cause::default() })
        }
        None => reported(cluster, available, facts),
    }
}

/// The state that the adapter reports about a cluster that has not failed and whose preconditions are met.
fn reported(cluster: &Resource, available: Option<&ReportedCondition>, facts: &Facts) -> Evaluated {
    let reason = available.and_then(|condition| condition.reason.as_deref());
    if !reason.is_some_and(|reason| WAITING_REASONS.contains(&reason)) {
        return Evaluated::Concluded(State::Running, running(cluster, available, facts));
    }
    let mut cause = Cause::said(available, "the adapter waits");
    let message = available.and_then(|condition| condition.message.as_deref()).unwrap_or_default();
    cause.step = next::for_reference(cluster, message).unwrap_or_default();
    Evaluated::Concluded(State::Waiting, cause)
}

/// The preconditions that are not met, and what the adapters that they name have reported.
fn waiting(facts: &Facts) -> Cause {
    let mut cause = Cause { because: facts.unmet.clone(), ..Cause::default() };
    for line in &facts.unmet {
        let Some((adapter, _)) = line.strip_prefix("waiting for ").and_then(|line| line.split_once(": ")) else {
            continue;
        };
        // A Secret or a field is waited for in more than one word.
        if adapter.contains([' ', '.']) {
            continue;
        }
        let heartbeat = facts.heartbeats.iter().find(|heartbeat| heartbeat.adapter == adapter);
        cause.because.extend(heartbeat.and_then(|heartbeat| {
            let (status, message) = (heartbeat.available?, heartbeat.message.as_deref()?);
            (status != Status::True).then(|| format!("{adapter} reports: {message}"))
        }));
        if heartbeat.is_none_or(|heartbeat| heartbeat.reported.is_none()) {
            let last = heartbeat.and_then(|heartbeat| heartbeat.reported_any);
            let last = last.map(|last| age(facts.now.duration_since(last)));
            cause.because.push(match last {
                Some(age) => format!("{adapter} works: its last report about another cluster is {age} old"),
                None => format!("{adapter} has reported about no other cluster either: see whether it runs"),
            });
        }
        if cause.step.hint.is_none() {
            cause.step = next::for_adapter(adapter);
        }
    }
    cause
}

/// The causes for which a terminating cluster still exists.
fn deletion(cluster: &Resource, current: Option<&Report>, facts: &Facts) -> Cause {
    if let Some(cause) = current.and_then(|report| failure(cluster, report, facts)) {
        return cause;
    }
    let finalized = current.and_then(|report| report.condition(names::condition::FINALIZED));
    let mut cause = Cause::said(finalized, "the adapter has not reported on the deletion yet");
    if finalized.is_some_and(|finalized| finalized.status == Status::True) {
        cause.because.push("the pull secret is deleted everywhere; the cluster waits for other adapters".to_owned());
    }
    cause
}

/// A Job that runs: since when, what its Pods say, and what failed before.
fn running(cluster: &Resource, available: Option<&ReportedCondition>, facts: &Facts) -> Cause {
    let Observed { job, pods, last_line, warnings, .. } = &facts.observed;
    let message = available.and_then(|condition| condition.message.as_deref()).unwrap_or_default();
    let mut cause = match failed_pods(message) {
        Some((about, reason, failed)) => {
            let parts = Parts::of(failed);
            let mut cause = Cause { because: vec![format!("{reason}: {}", parts.fact)], ..Cause::default() };
            cause.because.push(about.to_owned());
            cause.step = Reason::parse(reason).map(|reason| step(reason, parts, cluster, facts)).unwrap_or_default();
            cause
        }
        None => Cause::said(available, "the adapter is reconciling"),
    };
    let running = job.found().and_then(Option::as_ref).filter(|job| job.end.is_none());
    if let Some(started) = running.and_then(|job| job.started.or(job.created)) {
        cause.add_running_time(facts.now.duration_since(started));
    }
    let newest = pods.found().and_then(|pods| pods.first()).filter(|_| running.is_some());
    let is_started = newest.is_some_and(|pod| pod.phase != "Pending");
    if let Some(pod) = newest.filter(|_| !is_started) {
        let parts = [pod.reason.as_str(), pod.message.as_str()].into_iter().filter(|part| !part.is_empty());
        let parts: Vec<&str> = ["Pending"].into_iter().chain(parts).collect();
        cause.because.push(format!("Pod {} is {}", pod.name, parts.join(": ")));
    }
    if let (Some(_), Observation::Found(Some(line))) = (newest, last_line) {
        cause.add_fact("last log line", line);
    }
    for warning in warnings.found().filter(|_| running.is_some()).into_iter().flatten() {
        cause.add_fact("Kubernetes warns", warning);
    }
    if running.is_some() && cause.step.commands.is_empty() {
        cause.step.commands = next::while_running(cluster, facts, is_started).commands;
    }
    cause.add_missing_namespace(&facts.observed);
    cause
}

/// Returns true for the reason of a condition that says that a run has failed, or that its work was undone.
pub fn is_failure(reason: &str) -> bool {
    Reason::parse(reason).is_some_and(|reason| !reason.is_success())
        || is_drift(reason)
        || reason == adapter::Reason::DestinationNotAllowed.as_str()
        || ["Failed", "Failure", "Error", "Conflict"].iter().any(|end| reason.ends_with(end))
}

fn is_drift(reason: &str) -> bool {
    DRIFT_REASONS.iter().any(|drift| drift.as_str() == reason)
}

/// The causes of the last run's failure, and the next step; `None` if it did not fail.
fn failure(cluster: &Resource, report: &Report, facts: &Facts) -> Option<Cause> {
    let has_failed = |condition: &&ReportedCondition| {
        condition.status == Status::False && condition.reason.as_deref().is_some_and(is_failure)
    };
    let of_kind = |kind: &str| report.condition(kind).filter(has_failed);
    let of_run = of_kind(names::condition::AVAILABLE).or_else(|| of_kind(names::condition::APPLIED));
    let Some(condition) = of_run else {
        let line = overdue::unhealthy(report)?;
        return Some(Cause { because: vec![line], ..Cause::default() });
    };
    let mut cause = Cause::said(Some(condition), "the last run has failed");
    let reason = condition.reason.as_deref().unwrap_or_default();
    let pods = facts.observed.pods.found().map_or(&[][..], Vec::as_slice);
    let (pod_reason, pod_message) = pods.iter().find_map(|pod| result(&pod.message)).unwrap_or_default();
    let of_pod = Parts::of(&pod_message);
    if Reason::parse(reason).is_none() && !pod_message.is_empty() && !is_drift(reason) {
        cause.add(format!("{pod_reason}: {}", of_pod.fact));
    }
    if is_drift(reason) {
        cause.step = next::after_drift(cluster, facts);
    } else if let Some(known) = Reason::parse(reason) {
        cause.step = step(known, Parts::of(condition.message.as_deref().unwrap_or_default()), cluster, facts);
    } else if let Some(known) = Reason::parse(&pod_reason) {
        cause.step = step(known, of_pod, cluster, facts);
    }
    cause.add_missing_namespace(&facts.observed);
    Some(cause)
}

/// The next step: in the words of a fleet, or else the run's own hint, or else the meaning of the reason.
fn step(reason: Reason, parts: Parts<'_>, cluster: &Resource, facts: &Facts) -> Step {
    let mut step = next::after(reason, parts.fact, cluster, facts);
    let hint = step.hint.take().or_else(|| parts.hint.map(str::to_owned));
    step.hint = hint.or_else(|| Some(reason.meaning().to_owned()));
    step
}

/// Observations that contradict the report that the pull secret is available.
fn contradictions(cluster: &Resource, report: &Report, observed: &Observed) -> Vec<String> {
    let mut found = Vec::new();
    let reported = |name: &str| {
        // What the caller may not see is null.
        let value = report.data.get(name).filter(|value| !value.is_null())?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let desired = cluster.spec.pointer("/pullSecret/data/digest").and_then(Value::as_str);
    if let (Some(desired), Some(stored)) = (desired, reported("digest"))
        && desired != stored
    {
        found.push(format!(
            "the stored digest {stored} differs from the desired digest {desired}: other content, or API and Jobs have \
             different digest keys"
        ));
    }
    match &observed.secret {
        Observation::NotObserved => {}
        Observation::Failed(why) => found.push(format!("the Kubernetes Secret cannot be read: {why}")),
        Observation::Found(None) => found.push("the Kubernetes Secret does not exist".to_owned()),
        Observation::Found(Some(secret)) => {
            for (annotation, member, what) in [
                (names::ANNOTATION_STORE_VERSION, "secretVersion", "version"),
                (names::ANNOTATION_KUBERNETES_SECRET_DIGEST, "digest", "digest"),
            ] {
                if let (Some(there), Some(reported)) = (secret.annotations.get(annotation), reported(member))
                    && *there != reported
                {
                    found.push(format!("the Kubernetes Secret is of {what} {there}, the report says {reported}"));
                }
            }
        }
    }
    found
}

// === impl Cause ===

impl Cause {
    /// Reason and message of a condition, without the program's hint.
    fn said(condition: Option<&ReportedCondition>, otherwise: &str) -> Self {
        let Some(condition) = condition else {
            return Self { because: vec![otherwise.to_owned()], ..Self::default() };
        };
        let reason = condition.reason.as_deref().unwrap_or("no reason given");
        let Parts { fact, hint, outlook } = Parts::of(condition.message.as_deref().unwrap_or_default());
        let mut text = fact.lines().map(str::to_owned);
        let first = text.next().map_or_else(|| reason.to_owned(), |line| format!("{reason}: {line}"));
        let because = std::iter::once(first).chain(text).chain(outlook.map(str::to_owned)).collect();
        Self { because, step: Step { hint: hint.map(str::to_owned), commands: Vec::new() } }
    }

    /// Adds a line unless it is there.
    fn add(&mut self, line: String) {
        if !self.because.iter().any(|known| known.contains(&line)) {
            self.because.push(line);
        }
    }

    /// Adds the fact of a message unless it is there.
    fn add_fact(&mut self, label: &str, message: &str) {
        let fact = Parts::of(message).fact;
        if !self.because.iter().any(|known| known.contains(fact)) {
            self.because.push(format!("{label}: {fact}"));
        }
    }

    /// Adds to the line about the Job for how long it has been running.
    fn add_running_time(&mut self, passed: jiff::SignedDuration) {
        let stuck = if passed >= STUCK_AFTER { "stuck: " } else { "" };
        let time = format!("has been running for {}", age(passed));
        match self.because.iter_mut().find(|line| line.contains(RUNNING)) {
            Some(line) => *line = format!("{stuck}{}", line.replacen(RUNNING, &time, 1)),
            None => self.because.push(format!("{stuck}the Job {time}")),
        }
    }

    /// Puts first that the namespace of the Kubernetes Secret does not exist, if so.
    fn add_missing_namespace(&mut self, observed: &Observed) {
        let Some(key) =
            observed.secret_key.as_ref().filter(|_| observed.has_secret_namespace.found() == Some(&Some(false)))
        else {
            return;
        };
        let line = format!("namespace {} of the Kubernetes Secret does not exist", key.namespace);
        self.because.insert(0, line);
        self.step = next::without_namespace(&key.namespace);
    }

    fn verdict(self, state: State) -> Verdict {
        let Self { because, step: Step { hint, commands: next } } = self;
        Verdict { state, agrees: state == State::Available, because, hint, next }
    }
}
