//! The state that requests are carried out with.

use std::sync::Arc;
use std::time::Duration;

use registry_account::name::CredentialId;
use tokio::sync::Semaphore;

use super::directory::{Directory, Offered};
use super::problem::{Code, Problem};
use super::rate::Rate;
use super::reviews::{Reviewer, Reviews};
use crate::credential::RegistryName;
use crate::ledger::{Fresh, Ledger};
use crate::metrics::Metrics;
use crate::run::Sources;

/// Requests of a caller that may come at once.
const BURST: u32 = 20;
/// The greatest number of requests that are carried out at the same time.
const MAX_REQUESTS: usize = 64;

/// The API over a ledger. Clones share it.
#[derive(Debug)]
pub struct Api<R, D>(Arc<Shared<R, D>>);

/// The parts of an API.
#[derive(Debug)]
pub struct Parts<R, D> {
    /// The ledger.
    pub ledger: Ledger,
    /// The registries.
    pub registries: Vec<Offered>,
    /// Time and randomness.
    pub sources: Sources,
    /// The clusters.
    pub directory: D,
    /// Identities and permissions.
    pub reviewer: R,
    /// The metrics.
    pub metrics: Metrics,
    /// The limits.
    pub limits: Limits,
}

/// The limits of requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of a body, in bytes.
    pub body: usize,
    /// Maximum time to receive a body.
    pub read: Duration,
    /// Maximum time of a request.
    pub request: Duration,
    /// Requests of a caller in a minute.
    pub per_minute: u32,
    /// Rotations that a caller may start in an hour.
    pub rotations_per_hour: u32,
}

#[derive(Debug)]
pub(crate) struct Shared<R, D> {
    pub(crate) ledger: Ledger,
    pub(crate) registries: Vec<Offered>,
    pub(crate) sources: Sources,
    pub(crate) directory: D,
    pub(crate) reviews: Reviews<R>,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) requests: Rate,
    pub(crate) rotations: Rate,
    /// Places of requests that are carried out.
    pub(crate) places: Semaphore,
}

// === impl Api ===

impl<R: Reviewer, D: Directory> Api<R, D> {
    /// Creates an API from its parts.
    pub fn new(parts: Parts<R, D>) -> Self {
        let Parts { ledger, registries, sources, directory, reviewer, metrics, limits } = parts;
        Self(Arc::new(Shared {
            ledger,
            registries,
            sources,
            directory,
            reviews: Reviews::new(reviewer),
            metrics,
            requests: Rate::new(limits.per_minute, Duration::from_mins(1), BURST),
            rotations: Rate::new(limits.rotations_per_hour, Duration::from_hours(1), limits.rotations_per_hour),
            limits,
            places: Semaphore::new(MAX_REQUESTS),
        }))
    }

    pub(crate) fn shared(&self) -> &Shared<R, D> {
        &self.0
    }
}

impl<R, D> Clone for Api<R, D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

// === impl Shared ===

impl<R, D> Shared<R, D> {
    /// Returns a registry that is offered.
    pub(crate) fn offered(&self, name: &RegistryName) -> Option<&Offered> {
        self.registries.iter().find(|offered| offered.name == *name)
    }

    /// Returns an id and a name that were never used, for a registry.
    pub(crate) fn fresh(&self, offered: &Offered) -> Result<Fresh, Problem> {
        let clock = || Problem::unavailable("an internal error", "the clock of this host is before 1970: set it");
        self.sources.fresh(&offered.prefix).ok_or_else(clock)
    }

    /// Returns an id for a rotation.
    pub(crate) fn rotation_id(&self) -> Result<CredentialId, Problem> {
        let offered =
            self.registries.first().ok_or_else(|| Problem::new(Code::Internal, "no registry is configured"))?;
        Ok(self.fresh(offered)?.id)
    }
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 64 * 1024,
            read: Duration::from_secs(5),
            request: Duration::from_secs(30),
            per_minute: 100,
            rotations_per_hour: 10,
        }
    }
}
