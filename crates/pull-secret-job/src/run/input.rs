//! Reads and validates the pull secret of a run.

use daemon::retry::Budget;
use fleet_model::job::Reason;
use secrecy::{ExposeSecret as _, SecretSlice};
use tokio::task::spawn_blocking;
use tracing::warn;

use crate::decide::Desired;
use crate::outcome::RunError;
use crate::settings::{Settings, StoreTask};
use crate::source::{self, SourceError};

/// The pull secret of a run, and the desired state that follows from it.
pub(super) struct Input<'a> {
    pub(super) settings: &'a Settings,
    pub(super) task: &'a StoreTask,
    pub(super) bytes: SecretSlice<u8>,
    pub(super) desired: Desired,
}

impl<'a> Input<'a> {
    /// Reads the pull secret, of at most `limit` bytes, and the digest key. A read that hangs is bounded by the run's budget.
    pub(super) async fn read(
        settings: &'a Settings,
        task: &'a StoreTask,
        budget: &Budget,
        limit: usize,
    ) -> Result<Self, RunError> {
        let source = task.source.clone();
        let read = spawn_blocking(move || source::pull_secret(&source, limit));
        let pull_secret =
            budget.run(read).await?.map_err(|_panic| internal_error())?.map_err(|error| source_error(&error))?;
        let content = pull_secret.document.digest();
        let published_digest = match task.digest_key_file.clone() {
            Some(path) => {
                let read = spawn_blocking(move || source::digest_key(&path));
                let key = budget
                    .run(read)
                    .await?
                    .map_err(|_panic| internal_error())?
                    .map_err(|error| digest_key_error(&error))?;
                Some(content.keyed(key.expose_secret()).to_string())
            }
            None => None,
        };
        for warning in pull_secret.document.warnings() {
            warn!(operation = "validate-pull-secret", "{warning}");
        }
        for label in &task.changed_labels {
            warn!(
                operation = "sanitize-label",
                "Label {} is written as {:?}: the store does not accept {:?}", label.key, label.written, label.given
            );
        }
        let desired = Desired {
            identity: settings.identity.clone(),
            labels: task.labels.clone(),
            adopt: task.adopt,
            content,
            published_digest,
            retain: task.retain,
            always_add: task.always_add,
        };
        Ok(Self { settings, task, bytes: pull_secret.bytes, desired })
    }
}

fn digest_key_error(error: &SourceError) -> RunError {
    RunError::new("validate-config", Reason::InvalidConfiguration, format!("DIGEST_KEY_FILE: {error}"))
}

fn source_error(error: &SourceError) -> RunError {
    match error {
        SourceError::Invalid(_) | SourceError::TooLarge => {
            let message = format!("Invalid pull secret format: {error}");
            RunError::new("validate-pull-secret", Reason::InvalidPullSecret, message)
        }
        SourceError::Unreadable(_) | SourceError::ShortKey => {
            RunError::new("validate-config", Reason::InvalidConfiguration, format!("PULL_SECRET_FILE: {error}"))
        }
    }
}

fn internal_error() -> RunError {
    RunError::new("validate-config", Reason::InternalError, Reason::InternalError.meaning())
}
