//! The phases of a run: inputs and results.

use fleet_model::job::Reason;
use kubernetes::Cluster;
use secret_store::VersionNumber;

use crate::session::Caller;
use crate::settings::{KubernetesSecretSettings, Settings};

/// Success of a phase.
pub(super) struct Phase {
    pub(super) reason: Reason,
    pub(super) cause: String,
    pub(super) version: Option<VersionNumber>,
}

/// Inputs of the phase of the Kubernetes Secret.
pub(super) struct Pass<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) kubernetes_secret: &'a KubernetesSecretSettings,
    pub(super) caller: &'a Caller<'a>,
    pub(super) settings: &'a Settings,
    /// Full name of the newest stored version.
    pub(super) stored_as: String,
}

impl Phase {
    /// Merges both phases into one result: a change in the store is reported before one in Kubernetes.
    pub(super) fn followed_by(self, applied: &Self) -> Self {
        let reason = if self.reason == Reason::SecretUnchanged { applied.reason } else { self.reason };
        Self { reason, cause: format!("{}; {}", self.cause, applied.cause), version: self.version }
    }

    /// Merges the result of the mirror: a newer generation there is reported before a change in the first store.
    pub(super) fn mirrored(self, mirror: &Self) -> Self {
        if mirror.reason == Reason::Superseded {
            return Self { reason: mirror.reason, cause: mirror.cause.clone(), version: self.version };
        }
        self.followed_by(mirror)
    }

    /// Merges a deletion with one before it: a deletion in either is a deletion, and a secret that was kept is named.
    pub(super) fn after(self, before: Option<Self>) -> Self {
        match before {
            Some(before) if self.reason == Reason::SecretAbsent => before,
            Some(before) if before.reason == Reason::UnmanagedSecretKept => {
                Self { cause: format!("{}; {}", before.cause, self.cause), ..self }
            }
            _ => self,
        }
    }
}
