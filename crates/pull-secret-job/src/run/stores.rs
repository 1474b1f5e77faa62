//! Connects to the store of a run and to its mirror.

use daemon::calls::CallLog;
use daemon::retry::Budget;
use fleet_model::job::MIRROR_FAILED;
use secret_store::{SecretStore, StoreError, StoreSettings};
use tracing::info;

use crate::outcome::RunError;
use crate::settings::{Settings, phase_of};

/// The clients of a run.
pub(super) struct Stores<S> {
    pub(super) first: S,
    pub(super) mirror: Option<S>,
}

/// The calls of a run.
#[derive(Default)]
pub(super) struct CallLogs {
    pub(super) first: CallLog,
    pub(super) mirror: CallLog,
    pub(super) kubernetes: CallLog,
}

impl<S: SecretStore> Stores<S> {
    /// Creates the clients of `first` and of the mirror; nothing is sent yet.
    pub(super) async fn connect(
        settings: &Settings,
        first: &StoreSettings,
        budget: &Budget,
        calls: &CallLogs,
        connect: impl AsyncFn(&StoreSettings, CallLog) -> Result<S, StoreError>,
    ) -> Result<Self, RunError> {
        let first = budget.run(connect(first, calls.first.clone())).await??;
        let Some(place) = &settings.mirror else { return Ok(Self { first, mirror: None }) };
        let mirror = budget.run(connect(place, calls.mirror.clone())).await?.map_err(|error| {
            let failed = RunError::from(error);
            let message = format!("{MIRROR_FAILED}: {}; nothing was written", failed.message);
            RunError { message, phase: Some(phase_of(place)), ..failed }
        })?;
        Ok(Self { first, mirror: Some(mirror) })
    }

    /// Returns the size of the largest content that every store accepts.
    pub(super) fn max_content_bytes(&self) -> usize {
        let limits = [&self.first].into_iter().chain(&self.mirror).map(|store| store.capabilities().max_content_bytes);
        limits.min().unwrap_or_default()
    }
}

/// Logs that the clients exist.
pub(super) fn log_clients(settings: &Settings) {
    info!(operation = "client-initialized", "Successfully initialized {} client", settings.store_name());
    if let Some(mirror) = &settings.mirror {
        info!(operation = "client-initialized", "Successfully initialized {} client of the mirror", mirror.name());
    }
}
