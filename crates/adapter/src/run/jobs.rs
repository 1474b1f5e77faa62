//! Tracks the adapter's Jobs by their watch events, and says which resources these events concern.

use std::collections::BTreeMap;

use fleet_model::names;
use jiff::Timestamp;
use kubernetes::{JobEvent, ObservedJob};
use tokio::time::Instant;

use crate::limits::Limits;
use crate::manifest::Trigger;

/// The last known state of each Job, by its name.
#[derive(Debug, Default)]
pub(super) struct KnownJobs(BTreeMap<String, Known>);

#[derive(Debug)]
struct Known {
    resource: String,
    uid: String,
    is_over: bool,
    failed: u32,
}

/// The owners of the quotas that a Job counts against.
fn quotas(job: &ObservedJob) -> impl Iterator<Item = &String> {
    [names::ANNOTATION_QUOTA, names::ANNOTATION_QUOTA_MIRROR].into_iter().filter_map(|name| job.annotations.get(name))
}

/// The resources that a Job event concerns.
#[derive(Debug, Default)]
pub(super) struct JobUpdate {
    /// The resource of the Job, if the Job has changed in a way that is to be reported.
    pub(super) changed: Option<(String, Trigger)>,
    /// The resources whose runs waited for a free slot of the Job's project and may start now.
    pub(super) unblocked: Vec<String>,
}

impl KnownJobs {
    /// Applies a watch event to the known Jobs and to the projects' limits.
    pub(super) fn apply(&mut self, event: &JobEvent, limits: &mut Limits, now: Instant) -> JobUpdate {
        let mut update = JobUpdate::default();
        let (job, is_gone) = match event {
            JobEvent::Applied(job) => (job, false),
            JobEvent::Deleted(job) => (job, true),
        };
        // The deletion of a Job that another one of its name has already replaced changes nothing.
        if is_gone && self.0.get(&job.name).is_some_and(|known| known.uid != job.uid) {
            return update;
        }
        let Some(resource) = job.labels.get(names::LABEL_RUN_RESOURCE).cloned() else { return update };
        let is_over = is_gone || job.end.is_some();
        for project in quotas(job) {
            if is_over {
                let ended = job.ended.map(|ended| instant_of(ended, now));
                update.unblocked.extend(limits.finish(project, &job.name, ended, now));
            } else {
                limits.mark_running(project, &job.name);
            }
        }
        let trace = job.annotations.get(names::ANNOTATION_TRACE);
        let trigger = Trigger { event: None, trace: trace.and_then(|trace| trace.parse().ok()) };
        if is_gone {
            self.0.remove(&job.name);
            update.changed = Some((resource, trigger));
            return update;
        }
        let fresh = Known { resource: resource.clone(), uid: job.uid.clone(), is_over, failed: job.failed };
        let before = self.0.insert(job.name.clone(), fresh);
        let before = before.filter(|before| before.uid == job.uid);
        let is_new = before.is_none();
        let is_change = match before {
            None => is_over || job.failed > 0,
            Some(before) => before.is_over != is_over || before.failed != job.failed,
        };
        // A Job that is over when it is first observed may have ended long ago: its trace does not go on with each restart.
        let trigger = if is_new && is_over { Trigger::default() } else { trigger };
        update.changed = is_change.then_some((resource, trigger));
        update
    }

    /// Returns the resources whose Jobs have ended.
    pub(super) fn ended(&self) -> Vec<String> {
        self.0.values().filter(|known| known.is_over).map(|known| known.resource.clone()).collect()
    }
}

/// The instant of a time in the past; a time that is dated ahead counts as now.
fn instant_of(time: Timestamp, now: Instant) -> Instant {
    let age = Timestamp::now().duration_since(time).try_into().unwrap_or_default();
    now.checked_sub(age).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubernetes::job::JobEnd;
    use rstest::rstest;

    use super::*;
    use crate::limits::Quota;

    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const QUOTA: Quota = Quota { writes_per_minute: 0, writes_per_run: 1, runs_at_once: 1 };

    fn job(uid: &str, end: Option<JobEnd>) -> Arc<ObservedJob> {
        let text = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        Arc::new(ObservedJob {
            name: "run-1".to_owned(),
            uid: uid.to_owned(),
            labels: text(names::LABEL_RUN_RESOURCE, "cls-1"),
            annotations: [(names::ANNOTATION_QUOTA, "p"), (names::ANNOTATION_TRACE, TRACE)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            created: None,
            end,
            ended: None,
            active: 1,
            failed: 0,
            is_terminating: false,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_replaced_job_changes_nothing() {
        let (mut known, mut limits, now) = (KnownJobs::default(), Limits::new(QUOTA), Instant::now());
        let mut apply = |event| known.apply(&event, &mut limits, now).changed.map(|(id, _)| id);
        assert_eq!(
            apply(JobEvent::Applied(job("a", None))),
            None,
            "the replica that created it has reported that it runs"
        );
        assert_eq!(apply(JobEvent::Applied(job("b", None))), None);
        assert_eq!(apply(JobEvent::Deleted(job("a", None))), None);
        assert_eq!(apply(JobEvent::Applied(job("b", Some(JobEnd::Complete)))).as_deref(), Some("cls-1"));
        assert_eq!(apply(JobEvent::Deleted(job("b", Some(JobEnd::Complete)))).as_deref(), Some("cls-1"));
        assert_eq!((known.0.len(), limits.running()), (0, 0));
    }

    fn applied(uid: &str, end: Option<JobEnd>) -> JobEvent {
        JobEvent::Applied(job(uid, end))
    }

    fn failed_once() -> JobEvent {
        JobEvent::Applied(Arc::new(ObservedJob { failed: 1, ..ObservedJob::clone(&job("a", None)) }))
    }

    /// A Job that has ended when an adapter starts may have done so long ago: with each restart every trace of the fleet would go on.
    #[rstest]
    #[case::ends(Some(applied("a", None)), applied("a", Some(JobEnd::Complete)), true)]
    #[case::ended_before_the_start(None, applied("a", Some(JobEnd::Complete)), false)]
    #[case::another_one_of_the_name_that_had_ended(
        Some(applied("a", None)),
        applied("b", Some(JobEnd::Complete)),
        false
    )]
    #[case::goes_on_after_a_failed_pod(None, failed_once(), true)]
    #[case::is_deleted(Some(applied("a", None)), JobEvent::Deleted(job("a", None)), true)]
    #[tokio::test(start_paused = true)]
    async fn the_trace_of_a_job_goes_on_if_its_end_was_seen(
        #[case] before: Option<JobEvent>,
        #[case] last: JobEvent,
        #[case] goes_on: bool,
    ) {
        let (mut known, mut limits, now) = (KnownJobs::default(), Limits::new(QUOTA), Instant::now());
        if let Some(event) = before {
            assert_eq!(known.apply(&event, &mut limits, now).changed.map(|(id, _)| id), None);
        }
        let (id, trigger) = known.apply(&last, &mut limits, now).changed.unwrap();
        assert_eq!((id.as_str(), trigger.event), ("cls-1", None));
        assert_eq!(trigger.trace.map(|trace| trace.to_string()), goes_on.then(|| TRACE.to_owned()));
    }
}
