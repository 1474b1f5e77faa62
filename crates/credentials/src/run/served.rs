//! A registry that the worker serves, and its sources of time and randomness.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use registry_account::contract::Registry;
use registry_account::name::{AccountName, CredentialId, Image, NamePrefix};
use uuid::Builder;

use crate::credential::Policy;
use crate::ledger::Fresh;

/// A registry, with the settings of its credentials.
#[derive(Clone, Debug)]
pub struct Served<R> {
    /// The registry.
    pub registry: R,
    /// The image that probes ask for.
    pub image: Image,
    /// The beginning of the names of accounts.
    pub prefix: NamePrefix,
    /// The description of accounts, for people.
    pub description: String,
    /// The rules.
    pub policy: Policy,
    /// Credentials that should be ready in the pool.
    pub pool: u64,
    /// The rate in calls a minute, where it is lower than the registry's own.
    pub per_minute: Option<u32>,
}

/// Sources of time and randomness.
#[derive(Clone)]
pub struct Sources {
    /// Returns the time.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Returns 128 bits of a secure source.
    pub random: Arc<dyn Fn() -> u128 + Send + Sync>,
}

// === impl Served ===

impl<R: Registry> Served<R> {
    /// Returns the calls a minute that are made at most.
    pub fn rate(&self) -> u32 {
        let own = self.registry.capabilities().calls_per_minute;
        self.per_minute.map_or(own, |limit| limit.min(own))
    }
}

// === impl Sources ===

impl Sources {
    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Returns a number from 0 to 1.
    pub fn fraction(&self) -> f64 {
        f64::from(u32::try_from((self.random)() & 0xffff_ffff).unwrap_or_default()) / f64::from(u32::MAX)
    }

    /// Returns an id and a name that were never used; `None` if the time cannot be one of a UUID.
    pub fn fresh(&self, prefix: &NamePrefix) -> Option<Fresh> {
        let millis = u64::try_from(self.now().as_millisecond()).ok()?;
        let [_, _, _, _, _, _, bits @ ..] = (self.random)().to_be_bytes();
        let id = CredentialId::try_from(Builder::from_unix_timestamp_millis(millis, &bits).into_uuid()).ok()?;
        Some(Fresh { id, account: AccountName::random(prefix, (self.random)()) })
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// Returns the time that much later.
pub(super) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
}
