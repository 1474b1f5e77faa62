//! Retries: makes the adapter run a cluster's Job again now, instead of after its back-off.
//!
//! The adapter keeps a failed Job until its back-off is over, and starts the next one at once when that Job is gone. So a retry
//! deletes the Job that has failed, and nothing else.

#[cfg(test)]
mod tests;

use daemon::passes::ticks;
use std::num::NonZeroU16;
use std::time::Duration;

use adapter::{Reason, manifest};
use fleet_model::cause::Example;
use fleet_model::{id, names};
use hyperfleet_client::{Calls, Error, Generation, ListQuery, Report, ReportedCondition, Resource};
use kubernetes::job::JobEnd;
use kubernetes::{Cluster, ErrorKind, KubernetesError, ObservedJob};
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::built_in_adapter;

/// The writes that a project's quota allows in a minute: the adapter's default.
pub const WRITES_PER_MINUTE: u16 = 600;
/// The writes that a run is expected to need: the adapter's default.
pub const WRITES_PER_RUN: u16 = 4;

/// Default number of retries in a minute: half of what the quota of one project allows, so that the other half remains for
/// everything else that the fleet needs.
pub const RATE: u16 = WRITES_PER_MINUTE / WRITES_PER_RUN / 2;

/// The clusters to retry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These, by their ids or names.
    Named(Vec<String>),
    /// Those that a search of the API finds.
    Search(String),
}

/// The decision about one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// This Job is deleted, upon which the adapter starts another one.
    Retry {
        /// The Job.
        job: Box<ObservedJob>,
        /// Its failure.
        because: String,
    },
    /// Nothing can be retried.
    Refuse(String),
}

/// The result for one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The cluster's id, or the text that selected it if there is no such cluster.
    pub cluster: String,
    /// The cluster's name.
    pub name: String,
    /// The kind of the result.
    pub result: ResultKind,
    /// The Job that was deleted, or would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The failure that is retried, or why it is not.
    pub because: String,
}

/// The kind of a result for one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// The Job was deleted.
    Retried,
    /// The Job would be deleted.
    WouldRetry,
    /// There is nothing to retry.
    Refused,
    /// The Job could not be observed or deleted.
    Failed,
}

/// The means of a retry.
#[derive(Debug)]
pub struct Retry<'a> {
    /// The API.
    pub calls: Calls<'a>,
    /// The cluster that Jobs run in.
    pub cluster: &'a Cluster,
    /// The namespace of Jobs, where a report does not name it.
    pub namespace: &'a str,
    /// Maximum number of retries in a minute.
    pub rate: NonZeroU16,
    /// True if nothing is changed.
    pub is_dry: bool,
}

/// Decides about one cluster, of which `jobs` are the adapter's.
pub fn decide(cluster: &Resource, report: Option<&Report>, jobs: &[ObservedJob]) -> Decision {
    let of_generation = jobs.iter().filter(|job| is_of_generation(job, cluster.generation));
    let last = of_generation.max_by_key(|job| job.created);
    let available = report.and_then(|report| report.condition(names::condition::AVAILABLE));
    let refuse = |why: String| Decision::Refuse(why);
    match last.map(|job| (job, job.end.as_ref())) {
        Some((job, _)) if job.is_terminating => refuse(format!("Job {} is being deleted already", job.name)),
        Some((job, None)) => refuse(format!("Job {} is running: wait for its end, or delete it", job.name)),
        Some((job, Some(JobEnd::Failed { reason, message }))) => {
            let because = available.filter(|_| is_current(report, cluster)).map(line);
            Decision::Retry {
                job: Box::new(job.clone()),
                because: because.unwrap_or_else(|| format!("{reason}: {message}")),
            }
        }
        Some((job, Some(_))) if is_current(report, cluster) && available.is_some_and(is_drifted) => {
            Decision::Retry { job: Box::new(job.clone()), because: available.map(line).unwrap_or_default() }
        }
        _ => refuse(match available {
            Some(available) if is_current(report, cluster) && !cluster.is_deleting() => match available.status {
                hyperfleet_client::Status::True => "it is available: nothing has failed".to_owned(),
                _ => format!("it has no failed Job: {}", line(available)),
            },
            _ => format!(
                "it has no failed Job, and the adapter has not reported on generation {}: see `pull-secret explain cluster \
                 {}`",
                cluster.generation, cluster.id
            ),
        }),
    }
}

/// True if the Job is of that generation.
fn is_of_generation(job: &ObservedJob, generation: Generation) -> bool {
    job.labels.get(names::LABEL_RUN_GENERATION).is_some_and(|label| *label == generation.to_string())
}

/// True if the report is about the cluster's generation.
fn is_current(report: Option<&Report>, cluster: &Resource) -> bool {
    report.is_some_and(|report| report.observed_generation == cluster.generation)
}

/// True if what a Job has stored or applied was changed since; repeated repairs have a back-off.
fn is_drifted(available: &ReportedCondition) -> bool {
    let reason = available.reason.as_deref().and_then(Reason::parse);
    matches!(reason, Some(Reason::Drifted | Reason::StoreDrifted))
}

fn line(condition: &ReportedCondition) -> String {
    let reason = condition.reason.as_deref().unwrap_or("no reason given");
    match condition.message.as_deref().and_then(|message| message.lines().next()) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }
}

// === impl Retry ===

impl Retry<'_> {
    /// Retries the selected clusters at the given rate, and hands each outcome to `each` with its number and the number of
    /// clusters. Ends early when it is stopped, or when Kubernetes refuses the identity.
    pub async fn run(
        &self,
        selection: &Selection,
        stop: &CancellationToken,
        mut each: impl FnMut(usize, usize, Outcome),
    ) -> Result<(), Error> {
        let targets = self.targets(selection).await?;
        let mut pace = ticks(Duration::from_mins(1) / u32::from(self.rate.get()));
        pace.reset_at(Instant::now());
        for (index, target) in targets.iter().enumerate() {
            if stop.is_cancelled() {
                break;
            }
            let (outcome, is_denied) = match target {
                Ok(cluster) => self.one(cluster, &mut pace, stop).await?,
                Err(outcome) => (outcome.clone(), false),
            };
            each(index + 1, targets.len(), outcome);
            if is_denied {
                break;
            }
        }
        Ok(())
    }

    /// Returns the clusters of a selection, or the refusal of what names none.
    async fn targets(&self, selection: &Selection) -> Result<Vec<Result<Resource, Outcome>>, Error> {
        let named = match selection {
            Selection::Search(search) => {
                let query = ListQuery { search: Some(search.clone()), ..ListQuery::default() };
                return Ok(self.calls.list_all("clusters", query).collect().await?.into_iter().map(Ok).collect());
            }
            Selection::Named(named) => named,
        };
        let mut targets = Vec::new();
        for name in named {
            targets.push(match find(&self.calls, name).await? {
                Found::One(cluster) => Ok(*cluster),
                Found::None => Err(Outcome::refused(name, "there is no such cluster, by id or by name".to_owned())),
                Found::Several(examples) => {
                    let ids: Vec<&str> = examples.iter().map(|example| example.id.as_str()).collect();
                    Err(Outcome::refused(
                        name,
                        format!("several clusters have this name, give an id: {}", ids.join(", ")),
                    ))
                }
            });
        }
        Ok(targets)
    }

    /// Retries one cluster; true if no further one can be retried.
    async fn one(
        &self,
        cluster: &Resource,
        pace: &mut tokio::time::Interval,
        stop: &CancellationToken,
    ) -> Result<(Outcome, bool), Error> {
        let reports = match self.calls.statuses("clusters", &cluster.id).await {
            Err(error) if error.is_absent() => Vec::new(),
            reports => reports?,
        };
        let report = reports.iter().find(|report| report.adapter == names::ADAPTER);
        let namespace =
            report.and_then(|report| report.metadata.as_ref()?.job_namespace.as_deref()).unwrap_or(self.namespace);
        let decision = match self.jobs(namespace, &cluster.id).await {
            Ok(jobs) => decide(cluster, report, &jobs),
            Err(error) => return Ok(Outcome::failed(cluster, &error)),
        };
        let (job, because) = match decision {
            Decision::Refuse(because) => return Ok((Outcome::of(cluster, ResultKind::Refused, None, because), false)),
            Decision::Retry { job, because } => (job, because),
        };
        if self.is_dry {
            return Ok((Outcome::of(cluster, ResultKind::WouldRetry, Some(job.name), because), false));
        }
        tokio::select! {
            _tick = pace.tick() => {}
            () = stop.cancelled() => {
                return Ok((Outcome::of(cluster, ResultKind::Refused, Some(job.name), "it was stopped before".to_owned()), true));
            }
        }
        match self.cluster.delete_job(namespace, &job).await {
            Ok(()) => Ok((Outcome::of(cluster, ResultKind::Retried, Some(job.name), because), false)),
            Err(error) => Ok(Outcome::failed(cluster, &error)),
        }
    }

    async fn jobs(&self, namespace: &str, id: &str) -> Result<Vec<ObservedJob>, KubernetesError> {
        let Some(plan) = built_in_adapter() else { return Ok(Vec::new()) };
        self.cluster.jobs(namespace, &manifest::selector(&plan, id)).await
    }
}

/// The clusters that an id or a name means.
#[derive(Debug)]
pub enum Found {
    /// There is none.
    None,
    /// There is this one.
    One(Box<Resource>),
    /// The name is not unique: tenants have names of their own.
    Several(Vec<Example>),
}

/// Finds a cluster by its id, or else by its name. Of those that have the name, one that is not being deleted goes first.
pub async fn find(calls: &Calls<'_>, text: &str) -> Result<Found, Error> {
    // Ids and names are DNS labels; nothing else is put into a search.
    if !id::is_dns_label(text) {
        return Ok(Found::None);
    }
    if let Some(cluster) = calls.get("clusters", text).await? {
        return Ok(Found::One(Box::new(cluster)));
    }
    let query = ListQuery { search: Some(format!("name = '{text}'")), ..ListQuery::default() };
    let mut found = calls.list("clusters", &query).await?.items;
    if found.iter().any(|cluster| !cluster.is_deleting()) {
        found.retain(|cluster| !cluster.is_deleting());
    }
    let example = |cluster: &Resource| Example { id: cluster.id.clone(), name: cluster.name.clone() };
    Ok(match (found.pop(), found.as_slice()) {
        (None, _) => Found::None,
        (Some(cluster), []) => Found::One(Box::new(cluster)),
        (Some(cluster), more) => Found::Several(more.iter().chain([&cluster]).map(example).collect()),
    })
}

// === impl Outcome ===

impl Outcome {
    fn of(cluster: &Resource, result: ResultKind, job: Option<String>, because: String) -> Self {
        Self { cluster: cluster.id.clone(), name: cluster.name.clone(), result, job, because }
    }

    fn refused(text: &str, because: String) -> Self {
        Self { cluster: text.to_owned(), name: String::new(), result: ResultKind::Refused, job: None, because }
    }

    /// The outcome of a failed call, and whether further calls would fail in the same way.
    fn failed(cluster: &Resource, error: &KubernetesError) -> (Self, bool) {
        let is_denied = matches!(error.kind, ErrorKind::Forbidden | ErrorKind::Unauthenticated | ErrorKind::Unusable);
        (Self::of(cluster, ResultKind::Failed, None, error.to_string()), is_denied)
    }
}
