//! Limits the runs of each project: writes in any minute, and concurrent runs.
//!
//! A run counts with an estimate of its writes from its start until its end, and for a minute after it with the writes that its
//! Job reports. So whatever delays Jobs, an outage included, no sixty seconds have more writes than the quota, unless a run
//! needs more than the estimate.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// The limits of one project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Maximum number of writes in any minute; 0 is no limit.
    pub writes_per_minute: u32,
    /// Number of writes that a run is expected to need.
    pub writes_per_run: u32,
    /// Maximum number of concurrent runs; 0 is no limit.
    pub runs_at_once: u32,
}

/// Writes of a Job, as its Pods have reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Writes of the Pods that have reported.
    pub writes: u32,
    /// Number of Pods that have ended without a report.
    pub silent_pods: u32,
}

/// The quota that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// The project.
    pub project: String,
    /// Time until the run may be tried again.
    pub wait: Duration,
}

/// The runs and reservations of all projects.
#[derive(Debug)]
pub struct Limits {
    quota: Quota,
    projects: BTreeMap<String, Project>,
}

#[derive(Debug, Default)]
struct Project {
    running: BTreeSet<String>,
    /// The runs that have ended within the last minute, in order of their ends.
    ended: VecDeque<Ended>,
    /// The runs that wait for writes, in order of arrival: no later run starts before an earlier one.
    waiting: VecDeque<Waiting>,
    /// Resources whose runs wait for a free slot, in order of arrival.
    queue: VecDeque<String>,
    queued: BTreeSet<String>,
}

#[derive(Debug)]
struct Ended {
    run: String,
    at: Instant,
    writes: u32,
}

#[derive(Debug)]
struct Waiting {
    run: String,
    resource: String,
    /// Time at which it is to ask again.
    due: Instant,
}

/// Period that the quota of writes applies to.
const WINDOW: Duration = Duration::from_mins(1);
/// Time until a run without a free slot asks again, unless a slot becomes free before.
const MAX_SLOT_WAIT: Duration = Duration::from_secs(30);
/// Time after which a run that has not asked again loses its place.
const WAITING_TTL: Duration = Duration::from_mins(10);

// === impl Spent ===

impl std::iter::Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(pods: I) -> Self {
        pods.fold(Self::default(), |sum, pod| Self {
            writes: sum.writes.saturating_add(pod.writes),
            silent_pods: sum.silent_pods.saturating_add(pod.silent_pods),
        })
    }
}

// === impl Limits ===

impl Limits {
    /// Creates limits without any run.
    pub fn new(quota: Quota) -> Self {
        Self { quota, projects: BTreeMap::new() }
    }

    /// Starts a run of a resource in the projects that it writes to, or returns the longest time until it may be tried again.
    pub fn try_start(&mut self, projects: &[String], run: &str, resource: &str, now: Instant) -> Result<(), Delay> {
        let quota = self.quota;
        let mut longest: Option<Delay> = None;
        for project in projects {
            let state = self.projects.entry(project.clone()).or_default();
            if let Err(wait) = state.ask(run, resource, quota, now)
                && longest.as_ref().is_none_or(|longest| longest.wait < wait)
            {
                longest = Some(Delay { project: project.clone(), wait });
            }
        }
        longest.map_or(Ok(()), Err)?;
        for project in projects {
            self.projects.entry(project.clone()).or_default().start(run);
        }
        Ok(())
    }

    /// Records a running Job, whichever replica has created it.
    pub fn mark_running(&mut self, project: &str, run: &str) {
        self.projects.entry(project.to_owned()).or_default().running.insert(run.to_owned());
    }

    /// Releases the slot of a run that was not started after all. Its slot is offered at the next end of a run.
    pub fn release(&mut self, project: &str, run: &str) {
        if let Some(state) = self.projects.get_mut(project) {
            state.running.remove(run);
        }
    }

    /// Records the end of a run, and returns the resources whose runs can start now. `ended` is the time of
    /// the end if it is known; a run that was not known to be running counts only with it.
    pub fn finish(&mut self, project: &str, run: &str, ended: Option<Instant>, now: Instant) -> Vec<String> {
        let quota = self.quota;
        let is_recent = ended.is_some_and(|ended| now.saturating_duration_since(ended) < WINDOW);
        if !is_recent && !self.projects.contains_key(project) {
            return Vec::new();
        }
        let state = self.projects.entry(project.to_owned()).or_default();
        let was_running = state.running.remove(run);
        if quota.writes_per_minute > 0 && (was_running || is_recent) {
            state.record_end(Ended { run: run.to_owned(), at: ended.unwrap_or(now), writes: quota.writes_per_run });
        }
        state.forget(now);
        let count = state.free(quota).min(state.queue.len());
        let mut next: Vec<String> = state.queue.drain(..count).collect();
        for resource in &next {
            state.queued.remove(resource);
        }
        let ready = (0..state.waiting.len()).take_while(|before| state.missing(*before, quota) == 0).count();
        next.extend(state.waiting.iter().take(ready).map(|waiting| waiting.resource.clone()));
        if state.running.is_empty() && state.ended.is_empty() && state.waiting.is_empty() {
            self.projects.remove(project);
        }
        next
    }

    /// Counts a run that has ended with the writes that its Job reports, in place of the estimate.
    pub fn charge(&mut self, project: &str, run: &str, spent: Spent) {
        let estimate = self.quota.writes_per_run;
        let ended =
            self.projects.get_mut(project).and_then(|state| state.ended.iter_mut().find(|ended| ended.run == run));
        if let Some(ended) = ended {
            ended.writes = spent.writes.saturating_add(spent.silent_pods.saturating_mul(estimate));
        }
    }

    /// Returns the share of the quota of writes that the busiest project has used in the last minute, with the estimates of
    /// the runs that are running.
    pub fn used(&mut self, now: Instant) -> f64 {
        let quota = self.quota;
        let writes = self.projects.values_mut().map(|project| {
            project.forget(now);
            project.writes(project.running.len(), quota)
        });
        let most = u32::try_from(writes.max().unwrap_or(0)).unwrap_or(u32::MAX);
        if quota.writes_per_minute == 0 { 0.0 } else { f64::from(most) / f64::from(quota.writes_per_minute) }
    }

    /// Returns the number of concurrent runs.
    pub fn running(&self) -> usize {
        self.projects.values().flat_map(|project| &project.running).collect::<BTreeSet<_>>().len()
    }
}

// === impl Project ===

impl Project {
    /// Returns the time that a run has to wait, and queues it.
    fn ask(&mut self, run: &str, resource: &str, quota: Quota, now: Instant) -> Result<(), Duration> {
        if self.running.contains(run) {
            return Ok(());
        }
        if self.free(quota) == 0 {
            if self.queued.insert(resource.to_owned()) {
                self.queue.push_back(resource.to_owned());
            }
            return Err(MAX_SLOT_WAIT);
        }
        if quota.writes_per_minute > 0 { self.ask_for_writes(run, resource, quota, now) } else { Ok(()) }
    }

    /// Starts a run, which then waits no more.
    fn start(&mut self, run: &str) {
        self.waiting.retain(|waiting| waiting.run != run);
        self.running.insert(run.to_owned());
    }

    /// Returns the number of free slots.
    fn free(&self, quota: Quota) -> usize {
        match quota.runs_at_once {
            0 => usize::MAX,
            most => (most as usize).saturating_sub(self.running.len()),
        }
    }

    /// Adds an end, unless it is known, in the order of time.
    fn record_end(&mut self, ended: Ended) {
        if self.ended.iter().all(|known| known.run != ended.run) {
            let at = self.ended.partition_point(|known| known.at <= ended.at);
            self.ended.insert(at, ended);
        }
    }

    /// Forgets the ends before the window and the runs that have not asked again.
    fn forget(&mut self, now: Instant) {
        while self.ended.front().is_some_and(|ended| now.saturating_duration_since(ended.at) >= WINDOW) {
            self.ended.pop_front();
        }
        self.waiting.retain(|waiting| now.saturating_duration_since(waiting.due) < WAITING_TTL);
    }

    /// Checks that the writes that a run needs are free, or queues the run and returns the time until it may ask again.
    fn ask_for_writes(&mut self, run: &str, resource: &str, quota: Quota, now: Instant) -> Result<(), Duration> {
        self.forget(now);
        let place = self.waiting.iter().position(|waiting| waiting.run == run);
        let missing = self.missing(place.unwrap_or(self.waiting.len()), quota);
        if missing == 0 {
            return Ok(());
        }
        let wait = self.time_until_free(missing, quota, now);
        let due = now + wait;
        match place.and_then(|place| self.waiting.get_mut(place)) {
            Some(waiting) => waiting.due = due,
            None => self.waiting.push_back(Waiting { run: run.to_owned(), resource: resource.to_owned(), due }),
        }
        Err(wait)
    }

    /// Number of writes that a run lacks while so many others wait before it.
    fn missing(&self, before: usize, quota: Quota) -> u64 {
        self.writes(self.running.len() + before + 1, quota).saturating_sub(u64::from(quota.writes_per_minute))
    }

    /// Number of writes of so many runs, by their estimate, and of those that have ended.
    fn writes(&self, runs: usize, quota: Quota) -> u64 {
        let expected = u64::try_from(runs).unwrap_or(u64::MAX);
        let reported: u64 = self.ended.iter().map(|ended| u64::from(ended.writes)).sum();
        expected.saturating_mul(u64::from(quota.writes_per_run)).saturating_add(reported)
    }

    /// Time until so many writes have left the window. Those of running Jobs do so a minute after now at the earliest; what is
    /// missing beyond is spread by the quota's rate, so that waiting runs do not ask all at once.
    fn time_until_free(&self, missing: u64, quota: Quota, now: Instant) -> Duration {
        let mut left = missing;
        for ended in &self.ended {
            left = left.saturating_sub(u64::from(ended.writes));
            if left == 0 {
                return (ended.at + WINDOW).saturating_duration_since(now).max(Duration::from_millis(10));
            }
        }
        let share = f64::from(u32::try_from(left).unwrap_or(u32::MAX)) / f64::from(quota.writes_per_minute);
        WINDOW.mul_f64(share.min(10.0)).max(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests;
