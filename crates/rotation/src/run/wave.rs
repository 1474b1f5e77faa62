//! The current wave as a run knows it, and its observation.

use std::collections::BTreeMap;
use std::time::Duration;

use daemon::retry::Transient as _;
use hyperfleet_client::Error;
use tokio::time::Instant;

use super::{End, MAX_LISTED, OBSERVE, RunError, Worker};
use crate::decide::{Standing, standing};
use crate::event::Event;
use crate::fleet::{self, Content, Seen};
use crate::plan::{Plan, Planned};
use crate::record::RecordError;
use crate::state::{Counts, Failure, Phase};

/// The current wave.
#[derive(Debug)]
pub(super) struct Wave {
    /// The clusters, in the order of the plan.
    pub(super) standings: Vec<Standing>,
    /// The clusters whose writes the API has refused, by their index.
    pub(super) refused: BTreeMap<usize, Failure>,
    /// Time since the last write in which the API has answered.
    pub(super) waited: Duration,
    /// True while a service does not answer, or the standings are not known yet.
    pub(super) is_out: bool,
    /// The last observation.
    observed: Option<Observed>,
    /// Time at which the next observation is due.
    due: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Observed {
    at: Instant,
    has_succeeded: bool,
}

// === impl Wave ===

impl Wave {
    /// A wave that was not observed yet.
    pub(super) fn of(plan: &Plan, wave: usize) -> Self {
        let clusters = plan.waves.get(wave).map_or(0, Vec::len);
        Self {
            standings: vec![Standing::Waiting; clusters],
            refused: BTreeMap::new(),
            waited: Duration::ZERO,
            is_out: false,
            observed: None,
            due: Instant::now(),
        }
    }

    /// The time at which the next observation is due.
    pub(super) fn next_observation(&self) -> Instant {
        self.due
    }

    /// Makes the next observation due at once.
    pub(super) fn observe_at_once(&mut self) {
        self.due = Instant::now();
    }

    fn observed(&mut self, at: Instant, has_succeeded: bool) {
        (self.observed, self.due) = (Some(Observed { at, has_succeeded }), at + OBSERVE);
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for standing in &self.standings {
            match standing {
                Standing::ToWrite => {}
                Standing::Waiting => counts.waiting += 1,
                Standing::Available => counts.available += 1,
                Standing::Failed(_) => counts.failed += 1,
                Standing::Left(_) => counts.left += 1,
            }
        }
        counts
    }
}

impl Worker<'_, '_> {
    /// Reads the requests of other processes, and the clusters of the wave that are not available; records what has changed.
    pub(super) async fn observe(&mut self) -> Result<Option<End>, RunError> {
        match self.run.records.request(self.run.name).await {
            Ok(request) => self.request = request,
            // While Kubernetes does not answer, the Lease decides for how long this process may go on.
            Err(RecordError::Kubernetes(error)) if error.is_transient() => {
                self.wave.observed(Instant::now(), false);
                self.out(error.to_string());
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        let before = self.wave.observed;
        let is_known = |standing: &Standing| matches!(standing, Standing::Available | Standing::Left(_));
        let clusters: &[Planned] = self.plan.waves.get(self.state.wave).map_or(&[], Vec::as_slice);
        let open = clusters.iter().zip(&self.wave.standings).filter(|(_, standing)| !is_known(standing));
        let ids: Vec<&str> = open.map(|(planned, _)| planned.id.as_str()).collect();
        let found = fleet::with_ids(&self.run.calls, &ids).await;
        let now = Instant::now();
        self.wave.observed(now, found.is_ok());
        let passed = before.map(|before| now.duration_since(before.at)).unwrap_or_default();
        self.state.worked += passed.as_secs();
        let found = match found {
            Ok(found) => found,
            Err(error) => return Ok(self.failed_call(&error)),
        };
        if before.is_some_and(|before| before.has_succeeded) {
            self.wave.waited += passed;
        }
        if let Some(end) = found.iter().find_map(|seen| self.hidden(seen)) {
            return Ok(Some(end));
        }
        self.update(clusters, &ids, &found);
        if std::mem::take(&mut self.wave.is_out) {
            self.say(&Event::Resumed);
        }
        match self.save().await {
            Err(RunError::Record(RecordError::Kubernetes(error))) if error.is_transient() => {
                self.out(error.to_string());
                Ok(None)
            }
            saved => saved.map(|()| None),
        }
    }

    fn update(&mut self, clusters: &[Planned], ids: &[&str], found: &[Seen]) {
        let found: BTreeMap<&str, &Seen> = found.iter().map(|seen| (seen.id.as_str(), seen)).collect();
        for (index, planned) in clusters.iter().enumerate().filter(|(_, planned)| ids.contains(&planned.id.as_str())) {
            let seen = found.get(planned.id.as_str()).copied();
            self.set(index, standing(planned, self.plan.planned, seen));
        }
        self.state.current = self.wave.counts();
    }

    /// Notes the standing of a cluster, and says what has changed.
    pub(super) fn set(&mut self, index: usize, standing: Standing) {
        let standing = match (standing, self.wave.refused.get(&index)) {
            (Standing::ToWrite, Some(refused)) => Standing::Failed(refused.clone()),
            (standing, _) => standing,
        };
        let Some(planned) = self.plan.waves.get(self.state.wave).and_then(|clusters| clusters.get(index)) else {
            return;
        };
        let (cluster, before) = (planned.id.clone(), self.wave.standings.get(index));
        if before == Some(&standing) {
            return;
        }
        let event = match &standing {
            Standing::Available => Some(Event::Available { cluster }),
            Standing::Failed(failure) => Some(Event::Failed(failure.clone())),
            Standing::Left(because) => {
                if self.state.left.len() < MAX_LISTED {
                    self.state.left.insert(cluster.clone(), because.clone());
                }
                Some(Event::Left { cluster, because: because.clone() })
            }
            Standing::ToWrite | Standing::Waiting => None,
        };
        if let Some(place) = self.wave.standings.get_mut(index) {
            *place = standing;
        }
        self.state.current = self.wave.counts();
        if let Some(event) = event {
            self.say(&event);
        }
    }

    /// Returns the end that a failed call of the API leads to; `None` if it is waited for.
    pub(super) fn failed_call(&mut self, error: &Error) -> Option<End> {
        if error.transient() && !self.run.stop.is_cancelled() {
            self.out(error.to_string());
            return None;
        }
        Some(if self.run.stop.is_cancelled() { self.signalled() } else { self.cannot_go_on(&error.to_string()) })
    }

    /// Returns the end of a run that cannot compare the cluster's content any more.
    pub(super) fn hidden(&self, seen: &Seen) -> Option<End> {
        let cause = "the API no longer shows digests to this caller: have reads_pull_secrets granted";
        (seen.content == Content::Hidden).then(|| self.cannot_go_on(cause))
    }

    /// Returns the end of a run that somebody has to help.
    pub(super) fn cannot_go_on(&self, cause: &str) -> End {
        let because = format!("{cause}; then `pull-secret rotate resume {}`", self.run.name);
        End { phase: Phase::Stopped, because }
    }

    fn out(&mut self, error: String) {
        if !std::mem::replace(&mut self.wave.is_out, true) {
            self.say(&Event::Outage { error });
        }
    }
}
