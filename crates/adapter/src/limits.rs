//! How fast runs may be begun in one project: a bucket that fills with time, and a number of runs at once.

use std::collections::{BTreeMap, BTreeSet};
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
    /// Writes that may be caused now.
    tokens: f64,
    filled: Instant,
    running: BTreeSet<String>,
}

/// So long a run waits for another one to end before it is looked at again, if nothing happens.
const CROWDED: Duration = Duration::from_secs(5);

// === impl Limits ===

impl Limits {
    /// Limits under which nothing has been begun yet.
    pub fn new(quota: Quota) -> Self {
        Self { quota, projects: BTreeMap::new() }
    }

    /// Begins a run of that name; or says after what time to ask again.
    pub fn begin(&mut self, project: &str, run: &str, now: Instant) -> Result<(), Duration> {
        let quota = self.quota;
        let most = f64::from(quota.writes_per_minute);
        let place = self.projects.entry(project.to_owned()).or_insert_with(|| Project {
            tokens: most,
            filled: now,
            running: BTreeSet::new(),
        });
        if place.running.contains(run) {
            return Ok(());
        }
        if quota.runs_at_once > 0 && place.running.len() >= quota.runs_at_once as usize {
            return Err(CROWDED);
        }
        if quota.writes_per_minute > 0 {
            let passed = now.saturating_duration_since(place.filled).as_secs_f64();
            place.tokens = (place.tokens + passed * most / 60.0).min(most);
            place.filled = now;
            let missing = f64::from(quota.writes_per_run) - place.tokens;
            if missing > 0.0 {
                return Err(Duration::from_secs_f64(missing * 60.0 / most).max(Duration::from_millis(10)));
            }
            place.tokens -= f64::from(quota.writes_per_run);
        }
        place.running.insert(run.to_owned());
        Ok(())
    }

    /// A run of that name goes on: whoever began it, it counts.
    pub fn is_running(&mut self, project: &str, run: &str, now: Instant) {
        let tokens = f64::from(self.quota.writes_per_minute);
        let fresh = || Project { tokens, filled: now, running: BTreeSet::new() };
        let place = self.projects.entry(project.to_owned()).or_insert_with(fresh);
        place.running.insert(run.to_owned());
    }

    /// A run of that name is over, or was not begun after all.
    pub fn is_over(&mut self, project: &str, run: &str, now: Instant) {
        let Some(place) = self.projects.get_mut(project) else { return };
        place.running.remove(run);
        // A full bucket is as good as none.
        let full = now.saturating_duration_since(place.filled) >= Duration::from_mins(1);
        if place.running.is_empty() && full {
            self.projects.remove(project);
        }
    }

    /// How many runs go on.
    pub fn running(&self) -> usize {
        self.projects.values().map(|project| project.running.len()).sum()
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
        let begun = (0..1_000).filter(|run| limits.begin("p", &run.to_string(), start).is_ok()).count();
        assert_eq!(begun, 200);
        let wait = limits.begin("p", "next", start).unwrap_err();
        assert_eq!(wait.as_millis(), 300);
        assert!(limits.begin("other", "next", start).is_ok());
        assert!(limits.begin("p", "next", start + wait).is_ok());
        let minute = start + Duration::from_mins(1);
        let later = (0..1_000).filter(|run| limits.begin("p", &format!("b{run}"), minute).is_ok()).count();
        assert_eq!(later, 199);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_runs_go_on_at_once() {
        let (mut limits, now) = (limits(0, 2), Instant::now());
        assert!(limits.begin("p", "a", now).is_ok());
        limits.is_running("p", "b", now);
        assert_eq!(limits.begin("p", "c", now), Err(CROWDED));
        assert!(limits.begin("p", "a", now).is_ok(), "it has its place already");
        limits.is_over("p", "b", now);
        assert!(limits.begin("p", "c", now).is_ok());
        assert_eq!(limits.running(), 2);
        for run in ["a", "c"] {
            limits.is_over("p", run, now + Duration::from_mins(2));
        }
        assert!(limits.projects.is_empty());
    }
}
