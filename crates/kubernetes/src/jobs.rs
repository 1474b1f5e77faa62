//! Jobs by their labels: listed, followed, deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Preconditions, PropagationPolicy};
use kube::runtime::watcher::{self, watcher};

use crate::cluster::Cluster;
use crate::error::{Fault, KubernetesError};
use crate::job::{self, JobEnd};
use crate::verb::Verb;

/// A Job as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenJob {
    /// Its name.
    pub name: String,
    /// The identity of this very object.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// How it ended; `None` while it runs.
    pub end: Option<JobEnd>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How many of its pods run or wait to.
    pub active: u32,
    /// How many of its pods have failed.
    pub failed: u32,
    /// Whether it is being deleted, and waits for its pods to go.
    pub is_going: bool,
}

/// What has become of a Job that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobNews {
    /// It is there, and was made, changed, or is told again after the connection was lost.
    Seen(Box<SeenJob>),
    /// It is gone.
    Gone(Box<SeenJob>),
}

/// News of all Jobs with certain labels, for as long as it is polled. Lost connections are made again; what happened
/// meanwhile is told as the state that it has led to, Jobs that have gone included; but not those that came and went.
pub struct JobWatch {
    news: BoxStream<'static, Result<JobNews, KubernetesError>>,
}

impl Cluster {
    /// The Jobs with these labels, as they are now.
    pub async fn jobs(&self, namespace: &str, selector: &str) -> Result<Vec<SeenJob>, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("jobs in {namespace}");
        let parameters = ListParams::default().labels(selector);
        let found = self.call(Verb::List, &object, api.list(&parameters)).await?;
        Ok(found.items.into_iter().map(SeenJob::from).collect())
    }

    /// The Job of that name, whatever its labels.
    pub async fn find_job(&self, namespace: &str, name: &str) -> Result<Option<SeenJob>, KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("job {namespace}/{name}");
        Ok(self.call(Verb::Get, &object, api.get_opt(name)).await?.map(SeenJob::from))
    }

    /// Follows the Jobs with these labels. An error is told and followed by another attempt, after a wait.
    pub fn watch_jobs(&self, namespace: &str, selector: &str) -> JobWatch {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("jobs in {namespace}");
        let events =
            kube::runtime::WatchStreamExt::default_backoff(watcher(api, watcher::Config::default().labels(selector)));
        let mut known = Known::default();
        let news = events.flat_map(move |event| {
            let news = match event {
                Ok(event) => known.take(event).into_iter().map(Ok).collect(),
                Err(problem) => vec![Err(job::lost(&object, &problem))],
            };
            stream::iter(news)
        });
        JobWatch { news: news.boxed() }
    }

    /// Deletes the Job that was seen. It stays, as one that is going, until its pods have gone; one that has gone meanwhile,
    /// or has another identity now, is a success.
    pub async fn delete_job(&self, namespace: &str, job: &SeenJob) -> Result<(), KubernetesError> {
        let api: Api<Job> = Api::namespaced(self.client(), namespace);
        let object = format!("job {namespace}/{}", job.name);
        let preconditions = Preconditions { uid: Some(job.uid.clone()), resource_version: None };
        let parameters = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match self.call(Verb::Delete, &object, api.delete(&job.name, &parameters)).await {
            Err(error) if !matches!(error.fault, Fault::NotFound | Fault::Changed) => Err(error),
            _ => Ok(()),
        }
    }
}

/// The Jobs that are there as far as is known, so that those which a new list lacks are told as gone.
#[derive(Debug, Default)]
struct Known {
    jobs: BTreeMap<String, Box<SeenJob>>,
    /// Those that the list has which is being read.
    listed: BTreeSet<String>,
}

impl Known {
    fn take(&mut self, event: watcher::Event<Job>) -> Vec<JobNews> {
        match event {
            watcher::Event::Apply(job) => vec![self.seen(job)],
            watcher::Event::InitApply(job) => {
                self.listed.extend(job.metadata.uid.clone());
                vec![self.seen(job)]
            }
            watcher::Event::Delete(job) => {
                let gone: Box<SeenJob> = Box::new(job.into());
                self.jobs.remove(&gone.uid);
                vec![JobNews::Gone(gone)]
            }
            watcher::Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone = self.jobs.extract_if(.., |uid, _| !listed.contains(uid));
                gone.map(|(_, job)| JobNews::Gone(job)).collect()
            }
        }
    }

    fn seen(&mut self, job: Job) -> JobNews {
        let seen: Box<SeenJob> = Box::new(job.into());
        self.jobs.insert(seen.uid.clone(), seen.clone());
        JobNews::Seen(seen)
    }
}

// === impl SeenJob ===

impl From<Job> for SeenJob {
    fn from(job: Job) -> Self {
        let end = job::end(Some(&job));
        let ended = job::ended_at(&job);
        let count = |count: Option<i32>| count.and_then(|count| u32::try_from(count).ok()).unwrap_or_default();
        let status = job.status.unwrap_or_default();
        let metadata = job.metadata;
        Self {
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            created: metadata.creation_timestamp.map(|time| time.0),
            end,
            ended,
            active: count(status.active),
            failed: count(status.failed),
            is_going: metadata.deletion_timestamp.is_some(),
        }
    }
}

// === impl JobWatch ===

impl Stream for JobWatch {
    type Item = Result<JobNews, KubernetesError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.news.poll_next_unpin(context)
    }
}

impl std::fmt::Debug for JobWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("JobWatch").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use kube::runtime::watcher::Event;

    use super::*;

    fn job(uid: &str) -> Job {
        let metadata = ObjectMeta { name: Some("a".to_owned()), uid: Some(uid.to_owned()), ..ObjectMeta::default() };
        Job { metadata, ..Job::default() }
    }

    #[test]
    fn what_went_while_nobody_watched_is_told_with_the_next_list() {
        let mut known = Known::default();
        let events = vec![
            Event::Init,
            Event::InitApply(job("1")),
            Event::InitApply(job("2")),
            Event::InitDone,
            Event::Apply(job("3")),
            Event::Delete(job("2")),
            // The watch was lost; meanwhile one has gone and another of its name has come.
            Event::Init,
            Event::InitApply(job("3")),
            Event::InitApply(job("4")),
            Event::InitDone,
        ];
        let told = events.into_iter().flat_map(|event| known.take(event)).map(|news| match news {
            JobNews::Seen(job) => format!("+{}", job.uid),
            JobNews::Gone(job) => format!("-{}", job.uid),
        });
        assert_eq!(told.collect::<Vec<_>>().join(" "), "+1 +2 +3 -2 +3 +4 -1");
        assert_eq!(known.jobs.keys().map(String::as_str).collect::<Vec<_>>(), ["3", "4"]);
    }
}
