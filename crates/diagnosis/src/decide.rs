//! The conclusion about one cluster's pull secret: its state, the causes, and contradictions between sources.

mod overdue;

use fleet_model::condition::known_time;
use fleet_model::job::Reason;
use fleet_model::names;
use hyperfleet_client::{Generation, Report, ReportedCondition, Resource, Status, View};
use kubernetes::job::JobEnd;
use kubernetes::{PodSummary, SecretKey};
use precondition::{AdapterFacts, Context, Outcome, Precondition};
use serde_json::Value;

use crate::facts::{
    Evaluation, Facts, JobView, LeaseView, Observation, Observed, Page, PodView, SecretView, State, StoreCheckView,
    Verdict,
};
use overdue::Unreported;

pub(crate) use overdue::{age, unreported_since};

/// Maximum number of transitions on a page.
const MAX_TRANSITIONS: usize = 10;

/// Reasons of the adapter's condition `Available` that mean waiting.
const WAITING_REASONS: [&str; 2] = ["PreconditionsNotMet", "WaitingForQuota"];

/// Derives the page about a cluster.
pub fn page(facts: &Facts) -> Page {
    let report = facts.report.as_ref();
    let cluster = facts.cluster.as_ref();
    let digest = cluster.and_then(|cluster| cluster.spec.pointer("/pullSecret/data/digest"));
    let preconditions = cluster.map(|cluster| evaluations(cluster, &facts.preconditions)).unwrap_or_default();
    let verdict = match cluster {
        Some(cluster) => verdict(cluster, facts),
        None => absent(),
    };
    Page {
        cluster: facts.id.clone(),
        name: cluster.map(|cluster| cluster.name.clone()).unwrap_or_default(),
        generation: cluster.map_or(Generation::NONE, |cluster| cluster.generation),
        verdict,
        deleted_time: cluster.and_then(|cluster| cluster.deleted_time),
        reported_generation: report.map(|report| report.observed_generation),
        reported_time: report.and_then(|report| known_time(report.last_report_time)),
        conditions: report.map(|report| report.conditions.clone()).unwrap_or_default(),
        adapters: facts.heartbeats.clone(),
        lease: lease(&facts.observed),
        preconditions,
        job: job(&facts.observed),
        stored: report.map(|report| report.data.clone()).unwrap_or_default(),
        desired_digest: digest.and_then(Value::as_str).map(str::to_owned),
        kubernetes_secret: secret_view(&facts.observed),
        store_check: store_check(facts),
        history: facts.history.iter().take(MAX_TRANSITIONS).cloned().collect(),
    }
}

fn absent() -> Verdict {
    let hint = "check the id; a cluster whose deletion is complete is gone from the API";
    Verdict {
        state: State::Absent,
        agrees: false,
        because: vec!["the API knows no cluster of that id".to_owned()],
        hint: Some(hint.to_owned()),
    }
}

/// The adapter's own evaluation comes first: a report that is older than what was observed does not decide.
fn verdict(cluster: &Resource, facts: &Facts) -> Verdict {
    let mut verdict = match evaluated(cluster, facts) {
        Evaluated::Concluded(verdict) => verdict,
        Evaluated::Unreported(state, unreported) => return unreported.verdict(state, facts),
    };
    overdue::block(&mut verdict, facts);
    verdict
}

/// The state of a cluster, or the fact that the adapter should have reported.
enum Evaluated {
    Concluded(Verdict),
    Unreported(State, Unreported),
}

fn evaluated(cluster: &Resource, facts: &Facts) -> Evaluated {
    let conclude = |state: State, because: Vec<String>, hint: Option<&str>| {
        let (agrees, hint) = (state == State::Available, hint.map(str::to_owned));
        Evaluated::Concluded(Verdict { state, agrees, because, hint })
    };
    let current = facts.report.as_ref().filter(|report| report.observed_generation >= cluster.generation);
    if cluster.is_deleting() {
        let unreported = overdue::unreported_deletion(cluster, facts);
        if let Some(unreported) = unreported.filter(|unreported| unreported.is_overdue(facts)) {
            return Evaluated::Unreported(State::Deleting, unreported);
        }
        let finalized = current.and_then(|report| report.condition(names::condition::FINALIZED));
        return conclude(State::Deleting, lines(finalized, "the adapter has not reported on the deletion yet"), None);
    }
    let available = current.and_then(|report| report.condition(names::condition::AVAILABLE));
    if let (Some(report), Some(Status::True)) = (current, available.map(|condition| condition.status)) {
        let contradictions = contradictions(cluster, report, &facts.observed);
        if contradictions.is_empty() {
            return conclude(State::Available, lines(available, "the adapter reports it as available"), None);
        }
        let hint = "the next reconcile repairs drift; if it does not, read the adapter's log";
        return conclude(State::Contradicted, contradictions, Some(hint));
    }
    if !facts.unmet.is_empty() {
        return conclude(State::Waiting, facts.unmet.clone(), None);
    }
    if let Some((because, hint)) = current.and_then(|report| failure(report, &facts.observed)) {
        return conclude(State::Failed, because, hint.as_deref());
    }
    match overdue::unreported(cluster, facts) {
        Some(unreported) if unreported.is_overdue(facts) => Evaluated::Unreported(State::Stalled, unreported),
        Some(Unreported { line, .. }) => {
            conclude(State::Running, vec![format!("{line}; the adapter is about to report")], None)
        }
        None => {
            let reason = available.and_then(|condition| condition.reason.as_deref());
            let is_waiting = reason.is_some_and(|reason| WAITING_REASONS.contains(&reason));
            let state = if is_waiting { State::Waiting } else { State::Running };
            conclude(state, lines(available, "the adapter is reconciling"), None)
        }
    }
}

/// The causes of the last run's failure, and the next step; `None` if it did not fail.
fn failure(report: &Report, observed: &Observed) -> Option<(Vec<String>, Option<String>)> {
    let is_failure = |reason: &str| {
        Reason::parse(reason).is_some_and(|reason| !reason.is_success())
            || ["Failed", "Failure", "Error", "Conflict"].iter().any(|end| reason.ends_with(end))
    };
    let has_failed = |condition: &&ReportedCondition| {
        condition.status == Status::False && condition.reason.as_deref().is_some_and(is_failure)
    };
    let of_kind = |kind: &str| report.condition(kind).filter(has_failed);
    let of_run = of_kind(names::condition::AVAILABLE).or_else(|| of_kind(names::condition::APPLIED));
    let Some(condition) = of_run else { return overdue::unhealthy(report).map(|line| (vec![line], None)) };
    let mut because = lines(Some(condition), "the last run has failed");
    let pods = observed.pods.found().map_or(&[][..], Vec::as_slice);
    let (pod_reason, pod_message) = pods.iter().find_map(|pod| result(&pod.message)).unwrap_or_default();
    if !pod_message.is_empty() && !because.iter().any(|line| line.contains(&pod_message)) {
        because.push(format!("{pod_reason}: {pod_message}"));
    }
    let reason = condition.reason.as_deref().and_then(Reason::parse).or_else(|| Reason::parse(&pod_reason));
    Some((because, reason.map(|reason| reason.meaning().to_owned())))
}

/// Reason and message of a Job's result.
fn result(message: &str) -> Option<(String, String)> {
    let result: Value = serde_json::from_str(message).ok()?;
    let text = |name: &str| Some(result.get(name)?.as_str()?.to_owned());
    Some((text("reason")?, text("message")?))
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

/// Reason and message of a condition as lines.
fn lines(condition: Option<&ReportedCondition>, otherwise: &str) -> Vec<String> {
    let Some(condition) = condition else { return vec![otherwise.to_owned()] };
    let reason = condition.reason.as_deref().unwrap_or("no reason given");
    let message = condition.message.as_deref().unwrap_or_default();
    let mut text = message.lines().map(str::to_owned);
    let first = text.next().map_or_else(|| reason.to_owned(), |line| format!("{reason}: {line}"));
    std::iter::once(first).chain(text).collect()
}

/// The preconditions with their results.
fn evaluations(cluster: &Resource, expressions: &[String]) -> Vec<Evaluation> {
    let view = View::of(cluster);
    let adapters = view.reported_generations();
    let adapters = adapters.map(|(name, reported_generation)| (name, AdapterFacts { reported_generation }));
    let context = Context::of(&view.document)
        .with_status(&view.status)
        .with_metadata(&view.metadata)
        .at_generation(cluster.generation.get())
        .with_adapters(adapters);
    let ask = |expression: &String| {
        let precondition = Precondition::parse(expression).ok()?;
        let answer = precondition.evaluate(&context);
        let verdict = match answer.outcome {
            Outcome::Met => "met",
            Outcome::NotMet => "not met",
            Outcome::Unanswerable => "cannot be answered",
        };
        let values = answer.explanation.tree().to_string().lines().map(str::to_owned).collect();
        Some(Evaluation { expression: expression.clone(), verdict, values, because: answer.explanation.lines() })
    };
    expressions.iter().filter_map(ask).collect()
}

fn job(observed: &Observed) -> Option<JobView> {
    let (namespace, name) = observed.job_key.clone().unwrap_or_default();
    let (state, started) = match &observed.job {
        Observation::NotObserved => return None,
        Observation::Failed(why) => (why.clone(), None),
        Observation::Found(None) => ("does not exist".to_owned(), None),
        Observation::Found(Some(job)) => {
            let state = match &job.end {
                None if job.failed > 0 => format!("running, after {} failed pods", job.failed),
                None => "running".to_owned(),
                Some(JobEnd::Complete) => "complete".to_owned(),
                Some(JobEnd::Failed { reason, message }) => format!("failed: {reason}: {message}"),
                Some(JobEnd::Gone) => "does not exist".to_owned(),
            };
            (state, job.started.or(job.created))
        }
    };
    let pods = observed.pods.found().map_or(&[][..], Vec::as_slice);
    Some(JobView { namespace, name, state, started, pods: pods.iter().map(pod).collect() })
}

fn pod(pod: &PodSummary) -> PodView {
    let PodSummary { name, phase, reason, message, exit_code, .. } = pod.clone();
    let (reason, message) = result(&message).unwrap_or((reason, message));
    PodView { name, phase, reason, message, exit_code }
}

fn lease(observed: &Observed) -> Option<LeaseView> {
    let lease = observed.lease.found()?.clone()?;
    let (namespace, name) = (observed.namespace.clone(), lease.name);
    Some(LeaseView { namespace, name, holder: lease.holder, renewed: lease.renewed })
}

fn secret_view(observed: &Observed) -> Option<SecretView> {
    let SecretKey { namespace, name } = observed.secret_key.clone()?;
    let (state, found) = match &observed.secret {
        Observation::NotObserved => return None,
        Observation::Failed(why) => (why.clone(), None),
        Observation::Found(None) => ("does not exist".to_owned(), None),
        Observation::Found(Some(secret)) => ("exists".to_owned(), Some(secret.clone())),
    };
    let created = found.as_ref().and_then(|secret| secret.created);
    let annotations = found.map(|secret| secret.annotations).unwrap_or_default();
    Some(SecretView { namespace, name, state, created, annotations })
}

/// The last check of the secret store, as far as it concerns the cluster; `None` if it was not observed.
fn store_check(facts: &Facts) -> Option<StoreCheckView> {
    let without_record = |state: &str| StoreCheckView { state: state.to_owned(), ..StoreCheckView::default() };
    let record = match &facts.store_check {
        Observation::NotObserved => return None,
        Observation::Failed(why) => return Some(without_record(why)),
        Observation::Found(None) => return Some(without_record("never checked, or checks are switched off")),
        Observation::Found(Some(record)) => record,
    };
    let project = facts.report.as_ref().and_then(|report| report.data.get("gcpProject")).and_then(Value::as_str);
    Some(StoreCheckView {
        last_checked: record.finished,
        versions_checked: record.rotation.finished,
        found: record.findings.iter().find(|finding| finding.cluster == facts.id).cloned(),
        failure: project.and_then(|project| record.failures.get(project)).cloned(),
        ..without_record("checked")
    })
}

#[cfg(test)]
mod tests;
