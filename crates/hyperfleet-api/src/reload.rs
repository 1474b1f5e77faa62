//! Replaces grants and encryption keys without a restart, when the configuration or a key's file has changed.
//!
//! All of a change is used or nothing of it. What cannot be used is logged and shown by a metric, and the last good grants and
//! keys stay.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use daemon::log::causes;
use daemon::passes::ticks;
use daemon::reload::{CHECK_INTERVAL, Files};
use database::sealed::Keyring;

use crate::http::Api;
use crate::metrics::Metrics;
use crate::rekey;
use crate::settings::Settings;

/// The settings' source, which can be read again.
pub struct Source {
    file: Option<PathBuf>,
    read: Box<dyn Fn() -> Result<Settings, Vec<String>> + Send + Sync>,
}

/// The state of reloading: the settings in use, and the files that they come from.
struct Watched {
    settings: Settings,
    files: Files,
    /// True if the files have changed and what they hold is not in use.
    is_pending: bool,
}

/// The cause why changed files are not used.
enum Refused {
    /// They must be changed again.
    Fault(String),
    /// They are tried again.
    NotNow(String),
}

// === impl Source ===

impl Source {
    /// Returns the source of settings that `read` reads, mainly from a file.
    pub fn new(
        file: Option<PathBuf>,
        read: impl Fn() -> Result<Settings, Vec<String>> + Send + Sync + 'static,
    ) -> Self {
        Self { file, read: Box::new(read) }
    }

    /// Reads the settings, and notes the versions of the files from which grants and keys come.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn read(&self) -> Result<(Settings, Files), Vec<String>> {
        loop {
            let mut file = Files::new(self.file.clone().into_iter().collect());
            let settings = (self.read)()?;
            let keys = settings.pull_secret.keys.iter().map(|key| key.file.clone());
            let digest = settings.pull_secret.digest_key_file.clone();
            let files = Files::new(self.file.clone().into_iter().chain(keys).chain(digest).collect());
            // Otherwise a change in between would never be noticed.
            if !file.have_changed() {
                return Ok((settings, files));
            }
        }
    }

    /// Replaces grants and keys whenever the files change, for as long as it is polled. `settings` are those in use, and were
    /// read from `files`.
    pub(crate) async fn follow(&self, settings: Settings, files: Files, api: &Api, metrics: &Metrics) {
        let mut watched = Watched { settings, files, is_pending: false };
        let mut tick = ticks(CHECK_INTERVAL);
        loop {
            tick.tick().await;
            if !watched.files.have_changed() && !watched.is_pending {
                continue;
            }
            match self.reload(&mut watched, api).await {
                Ok(()) => {
                    watched.is_pending = false;
                    metrics.stale_configuration.set(0);
                    tracing::info!(operation = "reload", "grants and encryption keys are read again");
                }
                Err(Refused::Fault(cause)) => {
                    watched.is_pending = false;
                    metrics.stale_configuration.set(1);
                    tracing::error!(operation = "reload", cause, "the last good grants and encryption keys stay");
                }
                Err(Refused::NotNow(cause)) => {
                    watched.is_pending = true;
                    metrics.stale_configuration.set(1);
                    tracing::warn!(
                        operation = "reload",
                        cause,
                        "grants and encryption keys are not replaced yet; retrying"
                    );
                }
            }
        }
    }

    async fn reload(&self, watched: &mut Watched, api: &Api) -> Result<(), Refused> {
        let (settings, files) = self.read().map_err(|faults| Refused::Fault(faults.join("; ")))?;
        // A key's file that is missing, as kubelet has not brought it yet, is noticed when it comes.
        watched.files = files;
        let (service, authentication) = (api.service(), api.authentication());
        if settings.server.jwt.enabled != authentication.issuers.is_some() {
            return Err(Refused::Fault("server.jwt.enabled: changes with a restart only".to_owned()));
        }
        let grants = settings.grants(service.registry()).map_err(|faults| Refused::Fault(faults.join("; ")))?;
        let keyring = settings.keyring().map_err(Refused::Fault)?;
        let in_use = rekey::keys_in_use(service.store()).await.map_err(|error| Refused::NotNow(causes(&error)))?;
        if let Some(missing) = rekey::missing(&in_use, keyring.as_ref()) {
            return Err(Refused::Fault(missing.to_string()));
        }
        // New grants end the change streams, which need not know whether theirs are among those that have changed.
        if settings.authorization.grants != watched.settings.authorization.grants {
            authentication.grants.set(grants);
        }
        service.set_keyring(keyring.map(Arc::<Keyring>::new));
        watched.settings = settings;
        Ok(())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Source").field("file", &self.file).finish_non_exhaustive()
    }
}
