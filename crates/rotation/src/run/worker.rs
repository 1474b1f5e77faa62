//! A run at work: takes step after step until the end.

use daemon::passes::ticks;
use std::time::Duration;

use hyperfleet_client::Error;
use tokio::time::{Instant, Interval, sleep_until};

use super::means::{Run, RunError};
use super::wave::Wave;
use crate::decide::{self, ClusterProgress, Facts, Step};
use crate::event::Event;
use crate::fleet::{Content, Seen};
use crate::plan::Plan;
use crate::record::state_name;
use crate::state::{Counts, Failure, MAX_LISTED, Phase, Request, State};

/// The cause of an abortion, and the way back.
pub const ABORTED: &str =
    "it is given up; rotated clusters keep their new pull secret: to go back, plan a rotation with the old files";

/// The end of a run.
pub(super) struct End {
    pub(super) phase: Phase,
    pub(super) because: String,
}

/// A run at work.
pub(super) struct Worker<'a, 'b> {
    pub(super) run: &'a Run<'b>,
    pub(super) plan: &'a Plan,
    pub(super) state: State,
    pub(super) saved: State,
    pub(super) wave: Wave,
    pub(super) request: Option<Request>,
    pub(super) each: &'a mut dyn FnMut(&Event, &State),
}

// === impl Worker ===

impl Worker<'_, '_> {
    pub(super) async fn until_the_end(&mut self) -> Result<End, RunError> {
        let mut pace = ticks(Duration::from_mins(1) / u32::from(self.plan.options.per_minute.max(1)));
        self.announce();
        loop {
            if let Some(end) = self.observe_if_due().await? {
                return Ok(end);
            }
            if self.run.stop.is_cancelled() {
                return Ok(self.signalled());
            }
            // A request is obeyed also while the API is unavailable.
            if self.wave.is_out && self.request.is_none() {
                self.pause().await;
                continue;
            }
            match self.step() {
                Step::Write(index) => {
                    if self.may_write(&mut pace).await
                        && let Some(end) = self.write(index).await
                    {
                        return Ok(end);
                    }
                }
                Step::Wait => self.pause().await,
                Step::NextWave(failures) => self.next_wave(failures).await?,
                Step::Stop(failures) => return Ok(self.stopped(failures)),
                Step::Pause => return Ok(self.asked(Phase::Paused)),
                Step::Abort => return Ok(self.asked(Phase::Aborted)),
                Step::Finish => return Ok(End { phase: Phase::Done, because: String::new() }),
            }
        }
    }

    fn step(&self) -> Step {
        decide::step(&Facts {
            plan: self.plan,
            wave: self.state.wave,
            progress: &self.wave.progress,
            waited: self.wave.waited.as_secs(),
            request: self.request,
        })
    }

    /// Waits until the rate permits the next write; false if something else is due first.
    async fn may_write(&self, pace: &mut Interval) -> bool {
        tokio::select! {
            _tick = pace.tick() => true,
            () = sleep_until(self.wave.next_observation()) => false,
            () = self.run.stop.cancelled() => false,
        }
    }

    async fn pause(&self) {
        tokio::select! {
            () = sleep_until(self.wave.next_observation()) => {}
            () = self.run.stop.cancelled() => {}
        }
    }

    fn announce(&mut self) {
        let (waves, clusters) = (self.plan.waves.len(), self.wave.progress.len());
        if self.state.wave < waves {
            self.say(&Event::Wave { wave: self.state.wave + 1, waves, clusters });
        }
    }

    pub(super) fn say(&mut self, event: &Event) {
        (self.each)(event, &self.state);
    }

    async fn next_wave(&mut self, failures: Vec<Failure>) -> Result<(), RunError> {
        self.fail(failures);
        self.state.done = self.state.counts();
        self.state.done.waiting = 0;
        self.state.current = Counts::default();
        self.state.wave += 1;
        self.wave = Wave::of(self.plan, self.state.wave);
        self.save_or_wait().await?;
        self.announce();
        Ok(())
    }

    /// Counts failures; those that are not in time were counted as waiting.
    fn fail(&mut self, failures: Vec<Failure>) {
        let late: Vec<Failure> =
            failures.iter().filter(|failure| failure.reason == decide::NOT_IN_TIME).cloned().collect();
        self.state.current.failed += late.len();
        self.state.current.waiting = self.state.current.waiting.saturating_sub(late.len());
        for failure in late {
            self.say(&Event::Failed(failure));
        }
        self.state.list(failures);
    }

    fn stopped(&mut self, failures: Vec<Failure>) -> End {
        let (count, tolerated) = (failures.len(), self.plan.tolerated(self.state.wave));
        let first = failures.first().map(|failure| failure.cluster.clone()).unwrap_or_default();
        self.fail(failures);
        let (wave, name) = (self.state.wave + 1, self.run.name);
        let because = format!(
            "{count} clusters of wave {wave} have failed, {tolerated} are tolerated: see `pull-secret explain cluster {first}`, resolve \
             the cause, run failed Jobs again with `pull-secret retry`, then `pull-secret rotate resume {name}`"
        );
        End { phase: Phase::Stopped, because }
    }

    pub(super) fn signalled(&self) -> End {
        let because = format!("it was stopped by a signal: `pull-secret rotate resume {}` goes on", self.run.name);
        End { phase: Phase::Paused, because }
    }

    fn asked(&self, phase: Phase) -> End {
        let name = self.run.name;
        let because = match phase {
            Phase::Aborted => ABORTED.to_owned(),
            _ => format!("an operator has paused it: `pull-secret rotate resume {name}` goes on"),
        };
        End { phase, because }
    }

    /// Records the end. An abortion may have been requested meanwhile.
    pub(super) async fn end(mut self, end: End) -> Result<State, RunError> {
        let End { phase, because } = end;
        let ended = State { phase, because, request: None, ..self.state.clone() };
        let write = |recorded: &mut State| {
            self.check_own(recorded)?;
            let is_given_up = recorded.request == Some(Request::Abort) && phase != Phase::Done;
            *recorded = ended.clone();
            if is_given_up {
                (recorded.phase, recorded.because) = (Phase::Aborted, ABORTED.to_owned());
            }
            Ok::<(), RunError>(())
        };
        self.state = self.run.records.change(self.run.name, write).await?;
        let (phase, because) = (self.state.phase, self.state.because.clone());
        let (counts, clusters) = (self.state.counts(), self.plan.clusters());
        self.say(&Event::Ended { phase, because, counts, clusters });
        Ok(self.state)
    }

    /// Records the state, if it is due. Requests of other processes are theirs.
    pub(super) async fn save(&mut self) -> Result<(), RunError> {
        if !self.state.is_due(&self.saved) {
            return Ok(());
        }
        let state = self.state.clone();
        let write = |recorded: &mut State| {
            self.check_own(recorded)?;
            *recorded = State { request: recorded.request, ..state.clone() };
            Ok::<(), RunError>(())
        };
        self.run.records.change(self.run.name, write).await?;
        self.saved = state;
        Ok(())
    }

    /// Fails if another process has gone on with the rotation, or ended it: a process that was suspended finds its Lease free.
    pub(super) fn check_own(&self, recorded: &State) -> Result<(), RunError> {
        let is_own = recorded.phase == Phase::Running && recorded.run_by == self.run.identity;
        if is_own { Ok(()) } else { Err(RunError::LeaseLost(state_name(self.run.name))) }
    }

    /// Observes if it is time; returns an end if it cannot go on.
    async fn observe_if_due(&mut self) -> Result<Option<End>, RunError> {
        if Instant::now() < self.wave.next_observation() {
            return Ok(None);
        }
        self.observe().await
    }

    /// Notes the progress of a cluster, and says what has changed.
    pub(super) fn set(&mut self, index: usize, progress: ClusterProgress) {
        let progress = match (progress, self.wave.refused.get(&index)) {
            (ClusterProgress::ToWrite, Some(refused)) => ClusterProgress::Failed(refused.clone()),
            (progress, _) => progress,
        };
        let Some(planned) = self.plan.waves.get(self.state.wave).and_then(|clusters| clusters.get(index)) else {
            return;
        };
        let (cluster, before) = (planned.id.clone(), self.wave.progress.get(index));
        if before == Some(&progress) {
            return;
        }
        let event = match &progress {
            ClusterProgress::Available => Some(Event::Available { cluster }),
            ClusterProgress::Failed(failure) => Some(Event::Failed(failure.clone())),
            ClusterProgress::Left(because) => {
                if self.state.left.len() < MAX_LISTED {
                    self.state.left.insert(cluster.clone(), because.clone());
                }
                Some(Event::Left { cluster, because: because.clone() })
            }
            ClusterProgress::ToWrite | ClusterProgress::Waiting => None,
        };
        if let Some(place) = self.wave.progress.get_mut(index) {
            *place = progress;
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

    /// Returns the end of a run that needs an operator.
    pub(super) fn cannot_go_on(&self, cause: &str) -> End {
        let because = format!("{cause}; then `pull-secret rotate resume {}`", self.run.name);
        End { phase: Phase::Stopped, because }
    }

    pub(super) fn out(&mut self, error: String) {
        if !std::mem::replace(&mut self.wave.is_out, true) {
            self.say(&Event::Outage { error });
        }
    }
}
