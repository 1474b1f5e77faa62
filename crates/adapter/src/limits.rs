//! How fast runs may be begun in one project: a bucket that fills with time, and a number of runs at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// What one project allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// So many writes a minute; 0 is no limit.
    pub writes_per_minute: u32,
    /// So many of them one run needs.
    pub writes_per_run: u32,
    /// So many runs at once; 0 is no limit.
    pub runs_at_once: u32,
}

/// What has been begun in each project.
#[derive(Debug)]
pub struct Limits {
    quota: Quota,
    projects: BTreeMap<String, Project>,
}

#[derive(Debug)]
struct Project {
    /// Writes that may be caused now; below 0 what is promised to runs that wait.
    tokens: f64,
    filled: Instant,
    running: BTreeSet<String>,
    /// When runs that wait for writes may begin. What they need is taken already, so that each waits just as long as it must.
    promised: BTreeMap<String, Instant>,
    /// Resources whose runs wait for a place, the first first.
    queue: VecDeque<String>,
    queued: BTreeSet<String>,
}

/// A run that waits for a place is told when there is one; so long it waits at most for that.
const CROWDED: Duration = Duration::from_secs(30);
/// A run that has not begun so long after it might have does not come any more.
const ABANDONED: Duration = Duration::from_mins(10);

// === impl Limits ===

impl Limits {
    /// Limits under which nothing has been begun yet.
    pub fn new(quota: Quota) -> Self {
        Self { quota, projects: BTreeMap::new() }
    }

    /// Begins a run of that name for that resource; or says after what time to ask again.
    pub fn begin(&mut self, project: &str, run: &str, resource: &str, now: Instant) -> Result<(), Duration> {
        let quota = self.quota;
        let place = self.place(project, now);
        if place.running.contains(run) {
            return Ok(());
        }
        if place.free(quota) == 0 {
            if place.queued.insert(resource.to_owned()) {
                place.queue.push_back(resource.to_owned());
            }
            return Err(CROWDED);
        }
        if quota.writes_per_minute > 0 {
            place.take(run, quota, now)?;
        }
        place.running.insert(run.to_owned());
        Ok(())
    }

    /// A run of that name goes on: whoever began it, it counts.
    pub fn is_running(&mut self, project: &str, run: &str, now: Instant) {
        self.place(project, now).running.insert(run.to_owned());
    }

    /// A run of that name was not begun after all. Whoever waits for its place is told at the next end of a run.
    pub fn give_back(&mut self, project: &str, run: &str) {
        if let Some(place) = self.projects.get_mut(project) {
            place.running.remove(run);
        }
    }

    /// A run of that name is over. Returns the resources whose runs have a place now.
    pub fn is_over(&mut self, project: &str, run: &str, now: Instant) -> Vec<String> {
        let quota = self.quota;
        let Some(place) = self.projects.get_mut(project) else { return Vec::new() };
        place.running.remove(run);
        let count = place.free(quota).min(place.queue.len());
        let next: Vec<String> = place.queue.drain(..count).collect();
        for resource in &next {
            place.queued.remove(resource);
        }
        // A full bucket is as good as none.
        let full = now.saturating_duration_since(place.filled) >= Duration::from_mins(1);
        if place.running.is_empty() && place.promised.is_empty() && full {
            self.projects.remove(project);
        }
        next
    }

    fn place(&mut self, project: &str, now: Instant) -> &mut Project {
        let tokens = f64::from(self.quota.writes_per_minute);
        self.projects.entry(project.to_owned()).or_insert_with(|| Project {
            tokens,
            filled: now,
            running: BTreeSet::new(),
            promised: BTreeMap::new(),
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
        })
    }

    /// How many runs go on.
    pub fn running(&self) -> usize {
        self.projects.values().map(|project| project.running.len()).sum()
    }
}

// === impl Project ===

impl Project {
    /// So many more runs may go on.
    fn free(&self, quota: Quota) -> usize {
        match quota.runs_at_once {
            0 => usize::MAX,
            most => (most as usize).saturating_sub(self.running.len()),
        }
    }

    /// Takes what a run needs; or says when it has come to that.
    fn take(&mut self, run: &str, quota: Quota, now: Instant) -> Result<(), Duration> {
        if let Some(due) = self.promised.get(run) {
            let left = due.saturating_duration_since(now);
            if !left.is_zero() {
                return Err(left);
            }
            self.promised.remove(run);
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
        self.promised.retain(|_, due| now.saturating_duration_since(*due) < ABANDONED);
        self.promised.insert(run.to_owned(), now + wait);
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
        assert!((0..200).all(|run| limits.begin("p", &run.to_string(), "a", start).is_ok()));
        let wait = limits.begin("p", "next", "a", start).unwrap_err();
        assert_eq!(wait.as_millis(), 300);
        assert!(limits.begin("other", "next", "a", start).is_ok());
        assert!(limits.begin("p", "next", "a", start + wait).is_ok());
        let minute = start + Duration::from_mins(1);
        let later = (0..1_000).filter(|run| limits.begin("p", &format!("b{run}"), "a", minute).is_ok()).count();
        assert_eq!(later, 199);
    }

    #[tokio::test(start_paused = true)]
    async fn runs_that_wait_are_not_all_asked_again_when_one_may_begin() {
        let (mut limits, start) = (limits(60, 0), Instant::now());
        let wait =
            |limits: &mut Limits, run: &str, at| limits.begin("p", run, run, at).err().map(|wait| wait.as_secs());
        assert!((0..20).all(|run| limits.begin("p", &format!("r{run}"), "a", start).is_ok()));
        let waits: Vec<_> = ["a", "b", "c", "a"].map(|run| wait(&mut limits, run, start)).into();
        assert_eq!(waits, [Some(3), Some(6), Some(9), Some(3)], "asking twice costs nothing");
        let then = start + Duration::from_secs(6);
        assert_eq!(["c", "b", "a", "d"].map(|run| wait(&mut limits, run, then)), [Some(3), None, None, Some(6)]);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_runs_go_on_at_once() {
        let (mut limits, now) = (limits(0, 2), Instant::now());
        assert!(limits.begin("p", "a", "cls-a", now).is_ok());
        limits.is_running("p", "b", now);
        for resource in ["cls-c", "cls-d", "cls-c"] {
            assert_eq!(limits.begin("p", "c", resource, now), Err(CROWDED));
        }
        assert!(limits.begin("p", "a", "cls-a", now).is_ok(), "it has its place already");
        assert_eq!(limits.is_over("p", "b", now), ["cls-c"], "each end makes a place for one, who came first");
        assert!(limits.begin("p", "c", "cls-c", now).is_ok());
        assert_eq!(limits.running(), 2);
        for run in ["a", "c"] {
            drop(limits.is_over("p", run, now + Duration::from_mins(2)));
        }
        assert!(limits.projects.is_empty());
    }
}
