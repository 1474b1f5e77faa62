//! Limits the runs of each project: a token bucket for writes, and a maximum number of concurrent runs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// The limits of one project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Maximum number of writes per minute; 0 is no limit.
    pub writes_per_minute: u32,
    /// Number of writes that one run needs.
    pub writes_per_run: u32,
    /// Maximum number of concurrent runs; 0 is no limit.
    pub runs_at_once: u32,
}

/// The runs and reservations of all projects.
#[derive(Debug)]
pub struct Limits {
    quota: Quota,
    projects: BTreeMap<String, Project>,
}

#[derive(Debug)]
struct Project {
    /// Writes that are available; negative if waiting runs have reserved more than that.
    tokens: f64,
    filled: Instant,
    running: BTreeSet<String>,
    /// The times at which runs with a reservation may start. Their writes are taken already, so that each waits its own time.
    reserved: BTreeMap<String, Instant>,
    /// Resources whose runs wait for a free slot, in order of arrival.
    queue: VecDeque<String>,
    queued: BTreeSet<String>,
}

/// Time until a run without a free slot asks again, unless a slot becomes free before.
const MAX_SLOT_WAIT: Duration = Duration::from_secs(30);
/// Time after which an unused reservation is dropped.
const RESERVATION_TTL: Duration = Duration::from_mins(10);

// === impl Limits ===

impl Limits {
    /// Creates limits without any run.
    pub fn new(quota: Quota) -> Self {
        Self { quota, projects: BTreeMap::new() }
    }

    /// Starts a run of a resource, or returns the time until it may be tried again.
    pub fn try_start(&mut self, project: &str, run: &str, resource: &str, now: Instant) -> Result<(), Duration> {
        let quota = self.quota;
        let project = self.project(project, now);
        if project.running.contains(run) {
            return Ok(());
        }
        if project.free(quota) == 0 {
            if project.queued.insert(resource.to_owned()) {
                project.queue.push_back(resource.to_owned());
            }
            return Err(MAX_SLOT_WAIT);
        }
        if quota.writes_per_minute > 0 {
            project.take(run, quota, now)?;
        }
        project.running.insert(run.to_owned());
        Ok(())
    }

    /// Records a running Job, whichever replica has created it.
    pub fn mark_running(&mut self, project: &str, run: &str, now: Instant) {
        self.project(project, now).running.insert(run.to_owned());
    }

    /// Releases the slot of a run that was not started after all. Its slot is offered at the next end of a run.
    pub fn release(&mut self, project: &str, run: &str) {
        if let Some(state) = self.projects.get_mut(project) {
            state.running.remove(run);
        }
    }

    /// Records the end of a run, and returns the resources whose runs have a free slot now.
    pub fn finish(&mut self, project: &str, run: &str, now: Instant) -> Vec<String> {
        let quota = self.quota;
        let Some(state) = self.projects.get_mut(project) else { return Vec::new() };
        state.running.remove(run);
        let count = state.free(quota).min(state.queue.len());
        let next: Vec<String> = state.queue.drain(..count).collect();
        for resource in &next {
            state.queued.remove(resource);
        }
        // A project with a full bucket need not be remembered.
        let full = now.saturating_duration_since(state.filled) >= Duration::from_mins(1);
        if state.running.is_empty() && state.reserved.is_empty() && full {
            self.projects.remove(project);
        }
        next
    }

    fn project(&mut self, project: &str, now: Instant) -> &mut Project {
        let tokens = f64::from(self.quota.writes_per_minute);
        self.projects.entry(project.to_owned()).or_insert_with(|| Project {
            tokens,
            filled: now,
            running: BTreeSet::new(),
            reserved: BTreeMap::new(),
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
        })
    }

    /// Returns the number of concurrent runs.
    pub fn running(&self) -> usize {
        self.projects.values().map(|project| project.running.len()).sum()
    }
}

// === impl Project ===

impl Project {
    /// Returns the number of free slots.
    fn free(&self, quota: Quota) -> usize {
        match quota.runs_at_once {
            0 => usize::MAX,
            most => (most as usize).saturating_sub(self.running.len()),
        }
    }

    /// Takes the writes that a run needs, or reserves them and returns the time until they are available.
    fn take(&mut self, run: &str, quota: Quota, now: Instant) -> Result<(), Duration> {
        if let Some(due) = self.reserved.get(run) {
            let left = due.saturating_duration_since(now);
            if !left.is_zero() {
                return Err(left);
            }
            self.reserved.remove(run);
            return Ok(());
        }
        let most = f64::from(quota.writes_per_minute);
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * most / 60.0).min(most) - f64::from(quota.writes_per_run);
        self.filled = now;
        if self.tokens >= 0.0 {
            return Ok(());
        }
        let wait = Duration::from_secs_f64(-self.tokens * 60.0 / most).max(Duration::from_millis(10));
        self.reserved.retain(|_, due| now.saturating_duration_since(*due) < RESERVATION_TTL);
        self.reserved.insert(run.to_owned(), now + wait);
        Err(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(writes_per_minute: u32, runs_at_once: u32) -> Limits {
        Limits::new(Quota { writes_per_minute, writes_per_run: 3, runs_at_once })
    }

    #[tokio::test(start_paused = true)]
    async fn a_project_is_given_no_more_writes_than_its_quota() {
        let (mut limits, start) = (limits(600, 0), Instant::now());
        assert!((0..200).all(|run| limits.try_start("p", &run.to_string(), "a", start).is_ok()));
        let wait = limits.try_start("p", "next", "a", start).unwrap_err();
        assert_eq!(wait.as_millis(), 300);
        assert!(limits.try_start("other", "next", "a", start).is_ok());
        assert!(limits.try_start("p", "next", "a", start + wait).is_ok());
        let minute = start + Duration::from_mins(1);
        let later = (0..1_000).filter(|run| limits.try_start("p", &format!("b{run}"), "a", minute).is_ok()).count();
        assert_eq!(later, 199);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_runs_have_reservations_of_their_own() {
        let (mut limits, start) = (limits(60, 0), Instant::now());
        let wait =
            |limits: &mut Limits, run: &str, at| limits.try_start("p", run, run, at).err().map(|wait| wait.as_secs());
        assert!((0..20).all(|run| limits.try_start("p", &format!("r{run}"), "a", start).is_ok()));
        let waits: Vec<_> = ["a", "b", "c", "a"].map(|run| wait(&mut limits, run, start)).into();
        assert_eq!(waits, [Some(3), Some(6), Some(9), Some(3)], "asking twice costs nothing");
        let then = start + Duration::from_secs(6);
        assert_eq!(["c", "b", "a", "d"].map(|run| wait(&mut limits, run, then)), [Some(3), None, None, Some(6)]);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_runs_are_limited() {
        let (mut limits, now) = (limits(0, 2), Instant::now());
        assert!(limits.try_start("p", "a", "cls-a", now).is_ok());
        limits.mark_running("p", "b", now);
        for resource in ["cls-c", "cls-d", "cls-c"] {
            assert_eq!(limits.try_start("p", "c", resource, now), Err(MAX_SLOT_WAIT));
        }
        assert!(limits.try_start("p", "a", "cls-a", now).is_ok(), "it has a slot already");
        assert_eq!(
            limits.finish("p", "b", now),
            ["cls-c"],
            "each end frees one slot, for the resource that came first"
        );
        assert!(limits.try_start("p", "c", "cls-c", now).is_ok());
        assert_eq!(limits.running(), 2);
        for run in ["a", "c"] {
            drop(limits.finish("p", run, now + Duration::from_mins(2)));
        }
        assert!(limits.projects.is_empty());
    }
}
