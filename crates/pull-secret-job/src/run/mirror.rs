//! Runs the phase of the mirror: a second store that gets what the first one holds.

use fleet_model::job::MIRROR_FAILED;
use fleet_model::names::trace::MIRROR;
use secret_store::{SecretStore, StoreSettings, VersionNumber};
use tracing::{Instrument as _, Span, info_span};

use crate::act::step;
use crate::outcome::{self, RunError};
use crate::session::Session;
use crate::settings::{Settings, phase_of};

use super::input::Input;
use super::phase::Phase;
use super::store::{self, Stored};

/// The mirror of a run.
pub(super) struct Mirror<'a, S> {
    pub(super) session: Session<'a, S>,
    pub(super) place: &'a StoreSettings,
}

impl<S: SecretStore> Mirror<'_, S> {
    /// Stores the pull secret that `holders` hold already.
    pub(super) async fn store(
        &self,
        input: &Input<'_>,
        holders: &str,
        details: &mut outcome::Mirror,
    ) -> Result<Phase, RunError> {
        let storing = store::store(&self.session, input, input.task.mirror_replication.clone(), &mut details.written);
        let stored = storing.instrument(self.span()).instrument(step!(MIRROR)).await;
        let Stored { phase, newer, .. } = stored.map_err(|failed| {
            let held = if input.settings.dry_run { String::new() } else { format!(", which {holders}") };
            self.failed(failed, &format!("{MIRROR_FAILED}{held}"))
        })?;
        if !input.settings.dry_run {
            details.secret_version = phase.version.map(VersionNumber::get);
            details.generation = newer.or(input.settings.identity.generation).map(|generation| generation.to_string());
            details.digest = input.desired.published_digest.clone().filter(|_| phase.version.is_some());
        }
        Ok(phase.of_mirror())
    }

    /// Deletes the secret.
    pub(super) async fn delete(&self, settings: &Settings) -> Result<Phase, RunError> {
        let deleted = store::delete(&self.session, settings).instrument(self.span()).instrument(step!(MIRROR)).await;
        let what = "Failed to delete in the mirror, before the first store";
        deleted.map(Phase::of_mirror).map_err(|failed| self.failed(failed, what))
    }

    /// The span that all log lines of the phase have.
    fn span(&self) -> Span {
        info_span!("mirror", phase = phase_of(self.place), is_mirror = true)
    }

    fn failed(&self, failed: RunError, what: &str) -> RunError {
        let message = format!("{what}: {}", failed.message);
        RunError { message, phase: Some(phase_of(self.place)), ..failed }
    }
}

impl Phase {
    fn of_mirror(self) -> Self {
        Self { cause: format!("mirror: {}", self.cause), ..self }
    }
}
