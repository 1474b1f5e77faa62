//! A run: works through a rotation until it is done, stopped, paused or aborted.

mod means;
mod observe;
mod wave;
mod worker;
mod write;

use kubernetes::leadership::Leadership;

use crate::event::Event;
use crate::plan::Plan;
use crate::record::{RecordError, state_name};
use crate::state::{Phase, Request, State};
use wave::Wave;
use worker::Worker;

pub use means::{Run, RunError};
pub use worker::ABORTED;

// === impl Run ===

impl Run<'_> {
    /// Records a new rotation, and works on it.
    pub async fn start(&self, plan: &Plan, each: &mut dyn FnMut(&Event, &State)) -> Result<State, RunError> {
        self.records.check_absent(self.name).await?;
        self.sources.check(plan)?;
        self.claimed(Box::pin(async {
            // Another process may have started it while this one waited.
            self.records.check_absent(self.name).await?;
            let state = State::new(self.identity, jiff::Timestamp::now());
            self.records.create(self.name, plan, &state).await?;
            self.work(plan, state, each).await
        }))
        .await
    }

    /// Goes on with a rotation that was paused, stopped or interrupted.
    pub async fn resume(&self, plan: &Plan, each: &mut dyn FnMut(&Event, &State)) -> Result<State, RunError> {
        self.sources.check(plan)?;
        self.claimed(Box::pin(async {
            let recorded = self.records.find(self.name).await?;
            recorded.state.check_unfinished(self.name)?;
            let state = self
                .records
                .change(self.name, |state| {
                    state.check_not_over(self.name)?;
                    let clusters = plan.waves.get(state.wave).map_or(&[][..], Vec::as_slice);
                    // The clusters of the current wave are judged anew.
                    state.failures.retain(|failure| clusters.iter().all(|planned| planned.id != failure.cluster));
                    state.request = state.request.filter(|request| *request == Request::Abort);
                    (state.phase, state.run_by, state.because) =
                        (Phase::Running, self.identity.to_owned(), String::new());
                    Ok::<(), RecordError>(())
                })
                .await?;
            self.work(plan, state, each).await
        }))
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
