//! Calls of AMS within its rate, repeated while they may succeed.

use std::time::Duration;

use accounts_mgmt::AmsError;
use daemon::retry::Transient as _;
use jiff::Timestamp;

use super::error::ImportError;
use crate::credential::RegistryName;
use crate::decide::budget::{Grant, MAX_WAIT};
use crate::decide::facts::later;
use crate::ledger::{Call, Ledger};
use crate::run::Sources;
use crate::state::Lane;

/// The name of AMS's budget in the ledger; no registry may have it.
pub const BUDGET: &str = "ams";

/// Attempts of one call.
const ATTEMPTS: u32 = 8;

/// Lets time pass.
pub trait Waits {
    /// Returns at that time, or later.
    fn wait(&self, until: Timestamp) -> impl Future<Output = ()>;
}

/// The rate of AMS, which all processes share.
#[derive(Clone, Copy, Debug)]
pub struct Pacing<'a, W> {
    /// The ledger, which has the budget.
    pub ledger: &'a Ledger,
    /// Time and randomness.
    pub sources: &'a Sources,
    /// The way to let time pass.
    pub waits: &'a W,
    /// Calls in a minute.
    pub per_minute: u32,
}

/// An AMS that is called within its rate.
#[derive(Clone, Copy, Debug)]
pub struct Paced<'a, A, W> {
    /// The AMS.
    pub accounts: &'a A,
    /// Its rate.
    pub pacing: Pacing<'a, W>,
}

// === impl Paced ===

impl<'a, A, W: Waits> Paced<'a, A, W> {
    /// Makes a call, and repeats it while it may succeed: each repetition may be made, whatever became of the ones before.
    pub(super) async fn call<T>(&self, call: impl AsyncFn(&'a A) -> Result<T, AmsError>) -> Result<T, ImportError> {
        let Pacing { ledger, sources, waits, per_minute } = self.pacing;
        let name: RegistryName = BUDGET.parse().map_err(|_invalid| ImportError::Budget)?;
        let mut attempt = 1;
        loop {
            let audit = Call { lane: Lane::Audit, per_minute };
            if let Grant::Wait(until) = ledger.take_call(&name, audit, sources.now()).await? {
                waits.wait(until).await;
                continue;
            }
            match call(self.accounts).await {
                Err(error) if error.is_transient() && attempt < ATTEMPTS => {
                    let own = Duration::from_secs(1 << attempt.min(6));
                    let delay = error.retry_after().unwrap_or(own).clamp(Duration::from_secs(1), MAX_WAIT);
                    tracing::debug!(attempt, "{error}; repeated in {delay:?}");
                    let until = later(sources.now(), delay);
                    // Other processes leave AMS alone as well.
                    ledger.block(&name, until).await?;
                    waits.wait(until).await;
                    attempt += 1;
                }
                result => return Ok(result?),
            }
        }
    }
}
