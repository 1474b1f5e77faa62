//! A run: works through a rotation until it is done, stopped, paused or aborted.

mod wave;
mod write;

use std::time::Duration;

use hyperfleet_client::Calls;
use kubernetes::leadership::Leadership;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::decide::{self, Facts, Step};
use crate::event::Event;
use crate::plan::Plan;
use crate::record::{RecordError, Records, state_name};
use crate::source::{SourceError, Sources};
use crate::state::{Counts, Failure, Phase, Request, State};
use wave::Wave;

/// Time between two reads of the wave, and of the requests of other processes.
const OBSERVE: Duration = Duration::from_secs(2);

/// Number of clusters of a kind that the record lists, as it must fit into a ConfigMap; all are counted.
const MAX_LISTED: usize = 500;

/// The means of a run.
#[derive(Debug)]
pub struct Run<'a> {
    /// The API.
    pub calls: Calls<'a>,
    /// The records of rotations.
    pub records: &'a Records,
    /// The new pull secrets.
    pub sources: &'a Sources,
    /// The name of the rotation.
    pub name: &'a str,
    /// The name of this process, and of the identity that it has.
    pub identity: &'a str,
    /// Ends the run, which can be resumed.
    pub stop: &'a CancellationToken,
}

/// The cause for which a run could not begin, or was cut off.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The record cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The new pull secrets are not those of the plan.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The Lease could not be renewed.
    #[error(
        "the Lease {0} could not be renewed in time: another process may go on, so this one ends; see `pull-secret rotate status`"
    )]
    LeaseLost(String),
}

/// The end of a run.
struct End {
    phase: Phase,
    because: String,
}

/// A run at work.
struct Worker<'a, 'b> {
    run: &'a Run<'b>,
    plan: &'a Plan,
    state: State,
    saved: State,
    wave: Wave,
    request: Option<Request>,
    each: &'a mut dyn FnMut(&Event, &State),
}

// === impl Run ===

impl Run<'_> {
    /// Records a new rotation, and works on it.
    pub async fn start(&self, plan: &Plan, each: &mut dyn FnMut(&Event, &State)) -> Result<State, RunError> {
        self.records.check_absent(self.name).await?;
        self.sources.check(plan)?;
        self.claimed(async {
            // Another process may have started it while this one waited.
            self.records.check_absent(self.name).await?;
            let state = State::new(self.identity, jiff::Timestamp::now());
            self.records.create(self.name, plan, &state).await?;
            self.work(plan, state, each).await
        })
        .await
    }

    /// Goes on with a rotation that was paused, stopped or interrupted.
    pub async fn resume(&self, plan: &Plan, each: &mut dyn FnMut(&Event, &State)) -> Result<State, RunError> {
        self.sources.check(plan)?;
        self.claimed(async {
            let recorded = self.records.find(self.name).await?;
            recorded.check_unfinished()?;
            let state = self
                .records
                .change(self.name, |state| {
                    let clusters = plan.waves.get(state.wave).map_or(&[][..], Vec::as_slice);
                    // The clusters of the current wave are judged anew.
                    state.failures.retain(|failure| clusters.iter().all(|planned| planned.id != failure.cluster));
                    state.request = state.request.filter(|request| *request == Request::Abort);
                    (state.phase, state.run_by, state.because) =
                        (Phase::Running, self.identity.to_owned(), String::new());
                })
                .await?;
            self.work(plan, state, each).await
        })
        .await
    }

    /// Works as the only process on this rotation.
    async fn claimed(&self, work: impl Future<Output = Result<State, RunError>>) -> Result<State, RunError> {
        self.records.claim(self.name, self.identity).await?;
        let (cluster, namespace, lease) =
            (self.records.cluster().clone(), self.records.namespace().to_owned(), state_name(self.name));
        let mut leadership = Leadership::new(cluster, namespace, lease.clone(), self.identity.to_owned());
        let done = tokio::select! {
            done = work => done,
            () = leadership.renew_until_lost() => return Err(RunError::LeaseLost(lease)),
        };
        leadership.release().await;
        done
    }

    async fn work(&self, plan: &Plan, state: State, each: &mut dyn FnMut(&Event, &State)) -> Result<State, RunError> {
        let (saved, wave) = (state.clone(), Wave::of(plan, state.wave));
        let mut worker = Worker { run: self, plan, state, saved, wave, request: None, each };
        let end = worker.until_the_end().await?;
        worker.end(end).await
    }
}

// === impl Worker ===

impl Worker<'_, '_> {
    async fn until_the_end(&mut self) -> Result<End, RunError> {
        let mut pace = interval(Duration::from_mins(1) / u32::from(self.plan.options.per_minute.max(1)));
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.announce();
        loop {
            if let Some(end) = self.observe_if_due().await? {
                return Ok(end);
            }
            if self.run.stop.is_cancelled() {
                return Ok(self.signalled());
            }
            if self.wave.is_out {
                self.pause().await;
                continue;
            }
            match self.step() {
                Step::Write(index) => {
                    if self.has_turn(&mut pace).await
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
            standings: &self.wave.standings,
            waited: self.wave.waited.as_secs(),
            request: self.request,
        })
    }

    /// Waits for the next turn to write; false if something else is due first.
    async fn has_turn(&self, pace: &mut Interval) -> bool {
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
        let (waves, clusters) = (self.plan.waves.len(), self.wave.standings.len());
        if self.state.wave < waves {
            self.say(&Event::Wave { wave: self.state.wave + 1, waves, clusters });
        }
    }

    fn say(&mut self, event: &Event) {
        (self.each)(event, &self.state);
    }

    async fn next_wave(&mut self, failures: Vec<Failure>) -> Result<(), RunError> {
        self.fail(failures);
        self.state.done = self.state.counts();
        self.state.done.waiting = 0;
        self.state.current = Counts::default();
        self.state.wave += 1;
        self.wave = Wave::of(self.plan, self.state.wave);
        self.save().await?;
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
        let room = MAX_LISTED.saturating_sub(self.state.failures.len());
        self.state.failures.extend(failures.into_iter().take(room));
    }

    fn stopped(&mut self, failures: Vec<Failure>) -> End {
        let (count, tolerated) = (failures.len(), self.plan.tolerated(self.state.wave));
        let first = failures.first().map(|failure| failure.cluster.clone()).unwrap_or_default();
        self.fail(failures);
        let (wave, name) = (self.state.wave + 1, self.run.name);
        let because = format!(
            "{count} clusters of wave {wave} have failed, {tolerated} are tolerated: see `pull-secret explain cluster {first}`, mend \
             the cause, run failed Jobs again with `pull-secret retry`, then `pull-secret rotate resume {name}`"
        );
        End { phase: Phase::Stopped, because }
    }

    fn signalled(&self) -> End {
        let because = format!("it was stopped by a signal: `pull-secret rotate resume {}` goes on", self.run.name);
        End { phase: Phase::Paused, because }
    }

    fn asked(&self, phase: Phase) -> End {
        let name = self.run.name;
        let because = match phase {
            Phase::Aborted => ABORTED.to_owned(),
            _ => format!("somebody has paused it: `pull-secret rotate resume {name}` goes on"),
        };
        End { phase, because }
    }

    /// Records the end.
    async fn end(mut self, end: End) -> Result<State, RunError> {
        let End { phase, because } = end;
        self.state.phase = phase;
        self.state.because.clone_from(&because);
        self.save().await?;
        if phase == Phase::Aborted || phase == Phase::Paused {
            self.run.records.change(self.run.name, |state| state.request = None).await?;
        }
        let (counts, clusters) = (self.state.counts(), self.plan.clusters());
        self.say(&Event::Ended { phase, because, counts, clusters });
        Ok(self.state)
    }

    /// Records the state, if it has changed. Requests of other processes are theirs.
    async fn save(&mut self) -> Result<(), RunError> {
        if self.state == self.saved {
            return Ok(());
        }
        let state = self.state.clone();
        let write = |recorded: &mut State| *recorded = State { request: recorded.request, ..state.clone() };
        self.run.records.change(self.run.name, write).await?;
        self.saved = state;
        Ok(())
    }

    /// Observes if it is time; returns an end if it cannot go on.
    async fn observe_if_due(&mut self) -> Result<Option<End>, RunError> {
        if Instant::now() < self.wave.next_observation() {
            return Ok(None);
        }
        self.observe().await
    }
}

/// The cause of an abortion, and the way back.
pub const ABORTED: &str =
    "it is given up; rotated clusters keep their new pull secret: to go back, plan a rotation with the old files";
