//! The conclusion about one cluster's pull secret: its state, the causes, and contradictions between sources.

pub(crate) mod message;
mod next;
mod overdue;
mod parity;
mod state;

use credentials::credential::Credential;
use fleet_model::condition::{condition_type, known_time};
use fleet_model::{StoredCopy, names};
use hyperfleet_client::{Generation, Report, Resource, View};
use jiff::Timestamp;
use kubernetes::job::JobEnd;
use kubernetes::{PodSummary, SecretKey};
use precondition::{AdapterFacts, Context, Outcome, Precondition};
use serde_json::Value;

use crate::credentials::CredentialsView;
use crate::facts::{
    Change, Evaluation, Facts, JobView, LeaseView, Observation, Observed, Page, PodView, SecretView, StoreCheckView,
};

use message::result;
pub use overdue::age;
pub(crate) use overdue::unreported_since;
pub use state::is_failure;

/// Maximum number of transitions on a page.
const MAX_TRANSITIONS: usize = 10;

/// Derives the page about a cluster.
pub fn page(facts: &Facts) -> Page {
    let report = facts.report.as_ref();
    let cluster = facts.cluster.as_ref();
    let digest = cluster.and_then(|cluster| cluster.spec.pointer("/pullSecret/data/digest"));
    let preconditions = cluster.map(|cluster| evaluations(cluster, &facts.preconditions)).unwrap_or_default();
    let verdict = match cluster {
        Some(cluster) => state::verdict(cluster, facts),
        None => state::absent(),
    };
    Page {
        cluster: facts.id.clone(),
        name: cluster.map(|cluster| cluster.name.clone()).unwrap_or_default(),
        generation: cluster.map_or(Generation::NONE, |cluster| cluster.generation),
        changed: cluster.and_then(change),
        verdict,
        reason_since: cluster.zip(report).and_then(|(cluster, report)| reason_since(cluster, report)),
        deleted_time: cluster.and_then(|cluster| cluster.deleted_time),
        reported_generation: report.map(|report| report.observed_generation),
        reported_time: report.and_then(|report| known_time(report.last_report_time)),
        conditions: report.map(|report| report.conditions.clone()).unwrap_or_default(),
        adapters: facts.heartbeats.clone(),
        lease: lease(&facts.observed),
        preconditions,
        job: job(&facts.observed),
        stored: report.map(|report| report.data.clone()).unwrap_or_default(),
        copies: parity::copies(facts),
        desired_digest: digest.and_then(Value::as_str).map(str::to_owned),
        kubernetes_secret: secret_view(&facts.observed),
        store_check: store_check(facts),
        registry_credentials: registry_credentials(&facts.credentials),
        history: facts.history.iter().take(MAX_TRANSITIONS).cloned().collect(),
    }
}

/// The last change of what is desired, or the cluster's creation.
fn change(cluster: &Resource) -> Option<Change> {
    let updated = cluster.updated_time.map(|time| Change { time, by: cluster.updated_by.clone() });
    updated.or_else(|| cluster.created_time.map(|time| Change { time, by: cluster.created_by.clone() }))
}

/// The time since which the reported reason holds, as the API concludes it.
fn reason_since(cluster: &Resource, report: &Report) -> Option<Timestamp> {
    let concluded = cluster.condition(&condition_type(names::ADAPTER))?;
    let available = report.condition(names::condition::AVAILABLE)?;
    let is_same = concluded.status == available.status && concluded.reason == available.reason;
    known_time(concluded.reason_since_time).filter(|_| is_same)
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
            };
            (state, job.started.or(job.created))
        }
    };
    let pods = observed.pods.found().map_or(&[][..], Vec::as_slice);
    let last_line = match &observed.last_line {
        Observation::NotObserved => None,
        Observation::Failed(why) => Some(format!("cannot be read: {why}")),
        Observation::Found(line) => line.clone(),
    };
    let warnings = match &observed.warnings {
        Observation::NotObserved => Vec::new(),
        Observation::Failed(why) => vec![format!("cannot be read: {why}")],
        Observation::Found(warnings) => warnings.clone(),
    };
    Some(JobView { namespace, name, state, started, pods: pods.iter().map(pod).collect(), last_line, warnings })
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

/// The registry credentials; `None` if the ledger was not observed.
fn registry_credentials(observed: &Observation<Vec<Credential>>) -> Option<CredentialsView> {
    match observed {
        Observation::NotObserved => None,
        Observation::Failed(why) => Some(CredentialsView::failed(why)),
        Observation::Found(found) => Some(CredentialsView::of(found)),
    }
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
    let place = facts.report.as_ref().and_then(|report| StoredCopy::written(&report.data)).map(|copy| copy.place());
    Some(StoreCheckView {
        last_checked: record.finished,
        versions_checked: record.rotation.finished,
        found: record.findings.iter().find(|finding| finding.cluster == facts.id).cloned(),
        failure: place.and_then(|place| record.failures.get(&place)).cloned(),
        ..without_record("checked")
    })
}

#[cfg(test)]
mod tests;
