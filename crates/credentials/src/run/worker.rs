//! The worker of one replica.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use registry_account::contract::Registry;
use registry_account::name::CredentialId;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::clusters::Clusters;
use super::served::{Served, Sources, later};
use crate::credential::{ClusterRef, Credential, RegistryName};
use crate::decide::budget::remaining;
use crate::decide::{Eta, etas};
use crate::ledger::{Advance, Advanced, Claim, Fresh, Ledger, LedgerError, PoolCounts, Refill, Slot};
use crate::state::Lane;

/// Time until the next attempt to claim a row, where none was due.
const IDLE: Duration = Duration::from_secs(1);

/// A worker; any number of replicas share a ledger.
#[derive(Debug)]
pub struct Worker<R, C> {
    /// The name of the replica, the actor in events.
    pub name: String,
    /// The ledger.
    pub ledger: Ledger,
    /// The registries.
    pub registries: BTreeMap<RegistryName, Served<R>>,
    /// The clusters.
    pub clusters: C,
    /// Time and randomness.
    pub sources: Sources,
    /// Time for which a claimed row belongs to a replica. An action that takes longer than half of it is given up, and is
    /// ambiguous. It must be shorter than [`Policy::late`](crate::credential::Policy::late).
    pub lease: Duration,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// A row was worked on.
    Worked,
    /// No row is due.
    Idle,
}

/// A failed step.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A registry is not configured.
    #[error("registry {0} is not configured: add it, or retire its credentials first")]
    UnknownRegistry(RegistryName),
    /// No id can be made at this time.
    #[error("the clock of this host is before 1970: set it")]
    Clock,
}

// === impl Worker ===

impl<R: Registry, C: Clusters> Worker<R, C> {
    /// Works until it is stopped, on all registries at the same time. The step at work is finished first.
    pub async fn run(&self, stop: &CancellationToken) {
        join_all(self.registries.keys().map(|registry| self.serve(registry, stop))).await;
    }

    async fn serve(&self, registry: &RegistryName, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let step = async {
                let result = self.run_step(registry).await?;
                let reserved = if result == StepResult::Idle { self.refill(registry).await? } else { 0 };
                Ok::<_, RunError>(if reserved > 0 { StepResult::Worked } else { result })
            };
            match step.await {
                Ok(StepResult::Worked) => continue,
                Ok(StepResult::Idle) => {}
                Err(error) => tracing::warn!(%registry, %error, "cannot work on credentials; retrying"),
            }
            tokio::select! {
                () = sleep(IDLE) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Works on the most urgent due credential of a registry: one step.
    pub async fn run_step(&self, registry: &RegistryName) -> Result<StepResult, RunError> {
        let served = self.served(registry)?;
        let now = self.sources.now();
        let budget = self.ledger.budget(registry).await?;
        let has_call = |lane: &Lane| remaining(&budget, served.rate(), *lane, now) > 0;
        let lane = Lane::ALL.into_iter().rev().find(has_call);
        // Rows whose step calls no registry come second: the others are limited by the rate, so that both are served.
        let claims = lane.map(Some).into_iter().chain([None]);
        let mut claimed = None;
        for lane in claims {
            let claim = Claim { worker: &self.name, registry, lane, now, until: later(now, self.lease) };
            claimed = self.ledger.claim(&claim).await?;
            if claimed.is_some() {
                break;
            }
        }
        let Some(claimed) = claimed else { return Ok(StepResult::Idle) };
        self.step(served, claimed).await?;
        Ok(StepResult::Worked)
    }

    /// Reserves what the pool of a registry lacks. Returns the number.
    pub async fn refill(&self, registry: &RegistryName) -> Result<u64, RunError> {
        let served = self.served(registry)?;
        // Most of the time the pool is full, and nothing has to be locked to see that.
        let PoolCounts { ready, in_progress } = match served.pool {
            0 => return Ok(0),
            _ => self.ledger.pool(registry).await?,
        };
        if ready.saturating_add(in_progress) >= served.pool {
            return Ok(0);
        }
        let now = self.sources.now();
        let refill = Refill { registry, target: served.pool, per_minute: served.rate(), actor: &self.name, now };
        Ok(self.ledger.refill(&refill, &mut || self.sources.fresh(&served.prefix)).await?)
    }

    /// Advances the rotation of a registry that is not over, if there is one; a paused or stopped one begins nothing.
    pub async fn rotate(&self, registry: &RegistryName) -> Result<Advanced, RunError> {
        let served = self.served(registry)?;
        let advance = Advance { registry, now: self.sources.now() };
        Ok(self.ledger.advance_rotation(&advance, &mut || self.sources.fresh(&served.prefix)).await?)
    }

    /// Returns the times at which the calls of a registry that wait now are made, by lane.
    pub async fn etas(&self, registry: &RegistryName) -> Result<Vec<Eta>, RunError> {
        let served = self.served(registry)?;
        let work = self.ledger.work(registry).await?;
        Ok(etas(&work, served.rate(), self.sources.now(), Duration::ZERO))
    }

    /// Returns the credential of a cluster that replaces another one, or is its first. It comes from the pool if there is one;
    /// the same call again returns the same one.
    pub async fn assign(
        &self,
        registry: &RegistryName,
        cluster: ClusterRef,
        replaces: Option<CredentialId>,
        actor: &str,
    ) -> Result<Credential, RunError> {
        let fresh = self.fresh(self.served(registry)?)?;
        let slot = Slot { registry: registry.clone(), cluster, replaces };
        Ok(self.ledger.assign(&slot, &fresh, actor, self.sources.now()).await?)
    }

    pub(crate) fn served(&self, registry: &RegistryName) -> Result<&Served<R>, RunError> {
        self.registries.get(registry).ok_or_else(|| RunError::UnknownRegistry(registry.clone()))
    }

    fn fresh(&self, served: &Served<R>) -> Result<Fresh, RunError> {
        self.sources.fresh(&served.prefix).ok_or(RunError::Clock)
    }
}
