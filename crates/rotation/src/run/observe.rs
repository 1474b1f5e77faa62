//! The observation of the current wave.

use std::collections::BTreeMap;

use daemon::retry::Transient as _;
use tokio::time::Instant;

use super::means::RunError;
use super::worker::{End, Worker};
use crate::decide::{ClusterProgress, progress};
use crate::event::Event;
use crate::fleet::{self, Seen};
use crate::plan::Planned;
use crate::record::RecordError;

impl Worker<'_, '_> {
    /// Reads the requests of other processes, and the clusters of the wave that are not available; records what has changed.
    pub(super) async fn observe(&mut self) -> Result<Option<End>, RunError> {
        match self.run.records.state(self.run.name).await {
            Ok(recorded) => {
                self.check_own(&recorded)?;
                self.request = recorded.request;
            }
            // While Kubernetes does not answer, the Lease decides for how long this process may go on.
            Err(RecordError::Kubernetes(error)) if error.is_transient() => {
                self.wave.note_observation(Instant::now(), false);
                self.out(error.to_string());
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        // The API may take long to answer, or be unavailable.
        if self.request.is_some() {
            return Ok(None);
        }
        let before = self.wave.observed;
        let is_known =
            |progress: &ClusterProgress| matches!(progress, ClusterProgress::Available | ClusterProgress::Left(_));
        let clusters: &[Planned] = self.plan.waves.get(self.state.wave).map_or(&[], Vec::as_slice);
        let open = clusters.iter().zip(&self.wave.progress).filter(|(_, progress)| !is_known(progress));
        let ids: Vec<&str> = open.map(|(planned, _)| planned.id.as_str()).collect();
        let found = fleet::with_ids(&self.run.calls, &ids).await;
        let now = Instant::now();
        self.wave.note_observation(now, found.is_ok());
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
        self.save_or_wait().await.map(|()| None)
    }

    /// Records the state; while Kubernetes does not answer, the next observation does so.
    pub(super) async fn save_or_wait(&mut self) -> Result<(), RunError> {
        match self.save().await {
            Err(RunError::Record(RecordError::Kubernetes(error))) if error.is_transient() => {
                self.out(error.to_string());
                Ok(())
            }
            saved => saved,
        }
    }

    fn update(&mut self, clusters: &[Planned], ids: &[&str], found: &[Seen]) {
        let found: BTreeMap<&str, &Seen> = found.iter().map(|seen| (seen.id.as_str(), seen)).collect();
        for (index, planned) in clusters.iter().enumerate().filter(|(_, planned)| ids.contains(&planned.id.as_str())) {
            let seen = found.get(planned.id.as_str()).copied();
            self.set(index, progress(planned, self.plan.planned, seen));
        }
        self.state.current = self.wave.counts();
    }
}
