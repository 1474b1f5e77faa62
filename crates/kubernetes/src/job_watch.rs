//! The events of Jobs with certain labels, and a cache of these Jobs for lookups without a LIST.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::task::{Context, Poll};

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use k8s_openapi::api::batch::v1::Job;
use kube::runtime::watcher::Event;

use crate::cluster::Cluster;
use crate::error::KubernetesError;
use crate::job::ObservedJob;
use crate::watch::Selection;

/// A change of a watched Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEvent {
    /// It was created or changed, or was listed again after the connection was lost.
    Applied(Arc<ObservedJob>),
    /// It does not exist any more; with its last known state.
    Deleted(Arc<ObservedJob>),
}

/// The events of all Jobs with certain labels, for as long as the stream is polled.
///
/// After a lost connection the Jobs are listed again: each of them is an event, and so is each that went meanwhile. A Job that
/// came and went meanwhile is none. The cache holds every event that the stream has returned, no later one.
pub struct JobWatch {
    events: BoxStream<'static, Result<JobEvent, KubernetesError>>,
    cache: JobCache,
}

/// The watched Jobs, grouped by the value of one label. Clones share the same Jobs.
#[derive(Clone, Debug)]
pub struct JobCache(Arc<RwLock<Known>>);

#[derive(Debug)]
struct Known {
    /// The label by whose value Jobs are grouped.
    label: String,
    /// The Jobs by uid.
    jobs: BTreeMap<String, Arc<ObservedJob>>,
    /// The uids of the Jobs by the value of the label.
    groups: BTreeMap<String, BTreeSet<String>>,
    has_synced: bool,
    /// The uids of the list that is being read, `None` outside of one. Jobs that are recorded meanwhile count as listed.
    listing: Option<BTreeSet<String>>,
}

impl Cluster {
    /// Watches the Jobs that match `selector`, and caches them by the value of their label `group_by`. An error is followed by
    /// another attempt, after a delay.
    pub fn watch_jobs(&self, namespace: &str, selector: &str, group_by: &str) -> JobWatch {
        let cache = JobCache(Arc::new(RwLock::new(Known::new(group_by))));
        let known = cache.clone();
        let events = self.events_of::<Job>(namespace, &Selection::Labelled(selector.to_owned()));
        let events = events.flat_map(move |event| {
            stream::iter(match event {
                Ok(event) => known.write().handle(event).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            })
        });
        JobWatch { events: events.boxed(), cache }
    }
}

// === impl JobWatch ===

impl JobWatch {
    /// The cache of the watched Jobs. It changes while the stream is polled.
    pub fn cache(&self) -> JobCache {
        self.cache.clone()
    }
}

impl Stream for JobWatch {
    type Item = Result<JobEvent, KubernetesError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(context)
    }
}

impl std::fmt::Debug for JobWatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("JobWatch").finish_non_exhaustive()
    }
}

// === impl JobCache ===

impl JobCache {
    /// Returns true once the Jobs have been listed. Before that, a Job that is not cached may exist.
    pub fn has_synced(&self) -> bool {
        self.read().has_synced
    }

    /// The Jobs whose group label has this value, by name.
    pub fn group(&self, value: &str) -> Vec<Arc<ObservedJob>> {
        let known = self.read();
        let uids = known.groups.get(value).into_iter().flatten();
        let mut jobs: Vec<_> = uids.filter_map(|uid| known.jobs.get(uid).cloned()).collect();
        jobs.sort_by(|one, other| one.name.cmp(&other.name));
        jobs
    }

    /// Adds a Job that the caller has just created, which the watch shows only later.
    pub fn record(&self, job: ObservedJob) {
        let mut known = self.write();
        if !known.jobs.contains_key(&job.uid) {
            known.insert(job);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Known ===

impl Known {
    fn new(label: &str) -> Self {
        let label = label.to_owned();
        Self { label, jobs: BTreeMap::new(), groups: BTreeMap::new(), has_synced: false, listing: None }
    }

    /// Takes an event of the watch; returns what has changed. Jobs that a new list lacks are reported as deleted.
    fn handle(&mut self, event: Event<Job>) -> Vec<JobEvent> {
        match event {
            Event::Apply(job) | Event::InitApply(job) => vec![JobEvent::Applied(self.insert(job.into()))],
            Event::Delete(job) => {
                let job = Arc::new(ObservedJob::from(job));
                self.remove(&job.uid);
                vec![JobEvent::Deleted(job)]
            }
            Event::Init => {
                self.listing = Some(BTreeSet::new());
                Vec::new()
            }
            Event::InitDone => {
                self.has_synced = true;
                let listed = self.listing.take().unwrap_or_default();
                let gone: Vec<String> = self.jobs.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
                gone.iter().filter_map(|uid| self.remove(uid)).map(JobEvent::Deleted).collect()
            }
        }
    }

    fn insert(&mut self, job: ObservedJob) -> Arc<ObservedJob> {
        if let Some(listing) = &mut self.listing {
            listing.insert(job.uid.clone());
        }
        // A label may have changed.
        self.remove(&job.uid);
        let job = Arc::new(job);
        if let Some(group) = job.labels.get(&self.label) {
            self.groups.entry(group.clone()).or_default().insert(job.uid.clone());
        }
        self.jobs.insert(job.uid.clone(), Arc::clone(&job));
        job
    }

    fn remove(&mut self, uid: &str) -> Option<Arc<ObservedJob>> {
        let job = self.jobs.remove(uid)?;
        if let Some(name) = job.labels.get(&self.label)
            && let Some(group) = self.groups.get_mut(name)
        {
            group.remove(uid);
            if group.is_empty() {
                self.groups.remove(name);
            }
        }
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn job(uid: &str) -> Job {
        let labels = [("group".to_owned(), "g".to_owned())].into();
        let metadata = ObjectMeta {
            name: Some("a".to_owned()),
            uid: Some(uid.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        };
        Job { metadata, ..Job::default() }
    }

    fn handle(cache: &JobCache, events: impl IntoIterator<Item = Event<Job>>) -> String {
        let changes = events.into_iter().flat_map(|event| cache.write().handle(event)).map(|event| match event {
            JobEvent::Applied(job) => format!("+{}", job.uid),
            JobEvent::Deleted(job) => format!("-{}", job.uid),
        });
        changes.collect::<Vec<_>>().join(" ")
    }

    fn uids(cache: &JobCache) -> String {
        cache.group("g").iter().map(|job| job.uid.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn jobs_that_went_during_an_outage_are_deleted_with_the_next_list() {
        let cache = JobCache(Arc::new(RwLock::new(Known::new("group"))));
        assert!(!cache.has_synced());
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
        assert_eq!(handle(&cache, events), "+1 +2 +3 -2 +3 +4 -1");
        assert_eq!(uids(&cache), "3 4");
        assert!(cache.has_synced());
        assert_eq!(handle(&cache, [Event::Delete(job("3")), Event::Delete(job("4"))]), "-3 -4");
        assert!(cache.group("g").is_empty() && cache.read().groups.is_empty());
    }

    #[test]
    fn a_job_that_was_just_created_outlives_a_list_that_began_before() {
        let cache = JobCache(Arc::new(RwLock::new(Known::new("group"))));
        assert_eq!(handle(&cache, [Event::Init, Event::InitApply(job("1"))]), "+1");
        cache.record(job("2").into());
        assert_eq!(uids(&cache), "1 2");
        assert_eq!(handle(&cache, [Event::InitDone, Event::Apply(job("2"))]), "+2");
        assert_eq!(handle(&cache, [Event::Init, Event::InitApply(job("1")), Event::InitDone]), "+1 -2");
        assert_eq!(uids(&cache), "1");
    }

    #[test]
    fn a_job_changes_its_group_with_its_label() {
        let cache = JobCache(Arc::new(RwLock::new(Known::new("group"))));
        let mut moved = job("1");
        moved.metadata.labels = Some([("group".to_owned(), "h".to_owned())].into());
        assert_eq!(handle(&cache, [Event::Apply(job("1")), Event::Apply(moved)]), "+1 +1");
        assert!(cache.group("g").is_empty());
        assert_eq!(cache.group("h").len(), 1);
    }
}
