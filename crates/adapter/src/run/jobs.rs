//! The Jobs that are known by their news: what has changed that somebody should look at.

use std::collections::BTreeMap;

use fleet_model::names;
use kubernetes::{JobEvent, ObservedJob};
use tokio::time::Instant;

use crate::limits::Limits;
use crate::manifest::Occasion;

/// What is known of Jobs.
#[derive(Debug, Default)]
pub(super) struct KnownJobs(BTreeMap<String, Known>);

#[derive(Debug)]
struct Known {
    resource: String,
    uid: String,
    is_over: bool,
    failed: u32,
    trace: Option<String>,
}

impl KnownJobs {
    /// Takes news in; returns whose resource should be looked at. Those whose runs have a place now are added to `next`.
    pub(super) fn hear(
        &mut self,
        news: &JobEvent,
        (limits, next): (&mut Limits, &mut Vec<String>),
        now: Instant,
    ) -> Option<(String, Occasion)> {
        let (job, is_gone) = match news {
            JobEvent::Applied(job) => (job, false),
            JobEvent::Deleted(job) => (job, true),
        };
        // One that another of its name has replaced already is no news.
        if is_gone && self.0.get(&job.name).is_some_and(|known| known.uid != job.uid) {
            return None;
        }
        let resource = job.labels.get(names::LABEL_RUN_RESOURCE)?.clone();
        let is_over = is_gone || job.end.is_some();
        if let Some(project) = job.annotations.get(names::ANNOTATION_PROJECT) {
            if is_over {
                next.extend(limits.is_over(project, &job.name, now));
            } else {
                limits.is_running(project, &job.name, now);
            }
        }
        let trace = job.annotations.get(names::ANNOTATION_TRACE).cloned();
        let occasion = occasion(trace.as_deref());
        if is_gone {
            self.0.remove(&job.name);
            return Some((resource, occasion));
        }
        let fresh = Known { resource: resource.clone(), uid: job.uid.clone(), is_over, failed: job.failed, trace };
        let before = self.0.insert(job.name.clone(), fresh);
        let is_news = match before.filter(|before| before.uid == job.uid) {
            None => is_over || has_trouble(job),
            Some(before) => before.is_over != is_over || before.failed != job.failed,
        };
        is_news.then_some((resource, occasion))
    }

    /// The resources whose Jobs are over.
    pub(super) fn ended(&self) -> Vec<(String, Occasion)> {
        let over = self.0.values().filter(|known| known.is_over);
        over.map(|known| (known.resource.clone(), occasion(known.trace.as_deref()))).collect()
    }
}

fn has_trouble(job: &ObservedJob) -> bool {
    job.failed > 0
}

fn occasion(trace: Option<&str>) -> Occasion {
    Occasion { event: None, trace: trace.and_then(|trace| trace.parse().ok()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kubernetes::job::JobEnd;

    use super::*;
    use crate::limits::Quota;

    fn job(uid: &str, end: Option<JobEnd>) -> Arc<ObservedJob> {
        let text = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        Arc::new(ObservedJob {
            name: "run-1".to_owned(),
            uid: uid.to_owned(),
            labels: text(names::LABEL_RUN_RESOURCE, "cls-1"),
            annotations: text(names::ANNOTATION_PROJECT, "p"),
            created: None,
            end,
            ended: None,
            active: 1,
            failed: 0,
            is_terminating: false,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_one_that_was_replaced_changes_nothing() {
        let quota = Quota { writes_per_minute: 0, writes_per_run: 1, runs_at_once: 1 };
        let (mut known, mut limits, now) = (KnownJobs::default(), Limits::new(quota), Instant::now());
        let mut hear = |news| known.hear(&news, (&mut limits, &mut Vec::new()), now).map(|(id, _)| id);
        assert_eq!(hear(JobEvent::Applied(job("a", None))), None, "that it runs is what whoever began it knows");
        assert_eq!(hear(JobEvent::Applied(job("b", None))), None);
        assert_eq!(hear(JobEvent::Deleted(job("a", None))), None);
        assert_eq!(hear(JobEvent::Applied(job("b", Some(JobEnd::Complete)))).as_deref(), Some("cls-1"));
        assert_eq!(hear(JobEvent::Deleted(job("b", Some(JobEnd::Complete)))).as_deref(), Some("cls-1"));
        assert_eq!((known.0.len(), limits.running()), (0, 0));
    }
}
