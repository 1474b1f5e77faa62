//! How a run ended, and what made it end early.

use daemon::retry::{Failure, Interrupted};
use fleet_model::job::Reason;
use kubernetes::KubernetesError;
use secret_store::{Fault, Operation, StoreError, VersionNumber};

use crate::report::Details;

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// In one word.
    pub reason: Reason,
    /// In a sentence, for people.
    pub message: String,
    /// What the adapter reports as data.
    pub details: Details,
}

/// What made a run end early: it goes up to the one place that logs it.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// The step that it happened in, as the log names it.
    pub(crate) operation: &'static str,
    /// The phase that it happened in.
    pub(crate) phase: &'static str,
}

/// The name of the phase that stores the pull secret.
pub(crate) const STORE_PHASE: &str = "gcp-secret-manager";
/// Name of the phase that applies the Kubernetes Secret, which HyperShift reads.
pub(crate) const KUBERNETES_SECRET_PHASE: &str = "k8s-secret";

impl Stop {
    pub(crate) fn new(operation: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), hint: None, operation, phase: STORE_PHASE }
    }

    /// Whatever stopped the second phase, a signal too, is told as its.
    pub(crate) fn in_kubernetes_secret_phase(self) -> Self {
        Self { phase: KUBERNETES_SECRET_PHASE, ..self }
    }

    pub(crate) fn contended(additions: usize) -> Self {
        let message = format!("Failed to verify secret: {additions} versions were added, and none of them has stayed");
        Self::new("verify-secret", Reason::VerificationFailed, message)
    }

    pub(crate) fn unverified(version: VersionNumber) -> Self {
        let message = format!("Failed to verify secret: version {version} does not hold what was written to it");
        Self::new("verify-secret", Reason::VerificationFailed, message)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        let (operation, words) = step(error.operation);
        Self { hint: error.hint(), ..Self::new(operation, reason(error.fault), format!("{words}: {error}")) }
    }
}

impl From<KubernetesError> for Stop {
    fn from(error: KubernetesError) -> Self {
        let (operation, words) = match error.verb {
            kubernetes::Verb::Connect => ("init-client", "Failed to create Kubernetes client"),
            kubernetes::Verb::Delete => ("delete-secret", "Failed to delete Kubernetes secret"),
            _ => ("create-update-secret", "Failed to create/update Kubernetes secret"),
        };
        let stop = Self::new(operation, reason_in_kubernetes(error.fault), format!("{words}: {error}"));
        let hint = match error.fault {
            kubernetes::Fault::Forbidden => Some(
                "allow the Job's service account that verb on secrets in that namespace (Role, RoleBinding)".to_owned(),
            ),
            _ => error.hint(),
        };
        Self { hint, phase: KUBERNETES_SECRET_PHASE, ..stop }
    }
}

impl From<Interrupted> for Stop {
    fn from(interrupted: Interrupted) -> Self {
        Self::told(interrupted)
    }
}

impl Stop {
    fn told(interrupted: Interrupted) -> Self {
        match interrupted {
            Interrupted::Stopped => {
                Self::new("interrupted", Reason::Interrupted, "Stopped by a signal; the next run continues")
            }
            Interrupted::DeadlinePassed => {
                Self::new("deadline", Reason::DeadlineExceeded, "The run's time (RUN_TIMEOUT) is over")
            }
        }
    }
}

impl<E> From<Failure<E>> for Stop
where
    Self: From<E>,
{
    fn from(failure: Failure<E>) -> Self {
        match failure {
            Failure::Failed(error) => error.into(),
            Failure::Interrupted(interrupted, None) => Self::told(interrupted),
            Failure::Interrupted(interrupted, Some(error)) => {
                let (interrupted, last) = (Self::told(interrupted), Self::from(error));
                let message = format!("{}; last failure: {}", interrupted.message, last.message);
                Self { message, hint: last.hint, phase: last.phase, ..interrupted }
            }
        }
    }
}

fn reason(fault: Fault) -> Reason {
    match fault {
        Fault::NotFound | Fault::AlreadyExists | Fault::Invalid => Reason::InvalidRequest,
        Fault::PermissionDenied => Reason::PermissionDenied,
        Fault::ApiDisabled => Reason::ApiDisabled,
        Fault::Unauthenticated => Reason::Unauthenticated,
        Fault::Corrupt => Reason::VerificationFailed,
        Fault::QuotaExceeded => Reason::QuotaExceeded,
        Fault::Changed | Fault::Unavailable | Fault::TimedOut | Fault::Internal => Reason::StoreUnavailable,
    }
}

fn reason_in_kubernetes(fault: kubernetes::Fault) -> Reason {
    use kubernetes::Fault;
    match fault {
        Fault::NotFound | Fault::AlreadyExists | Fault::Invalid => Reason::InvalidRequest,
        Fault::NamespaceMissing => Reason::NamespaceMissing,
        Fault::NamespaceTerminating => Reason::NamespaceTerminating,
        Fault::Unusable => Reason::InvalidConfiguration,
        Fault::Forbidden => Reason::PermissionDenied,
        Fault::QuotaExceeded => Reason::NamespaceQuotaExceeded,
        Fault::AdmissionDenied => Reason::AdmissionDenied,
        Fault::Unauthenticated => Reason::Unauthenticated,
        Fault::Changed | Fault::TooManyRequests | Fault::Unavailable | Fault::TimedOut | Fault::Internal => {
            Reason::KubernetesUnavailable
        }
    }
}

/// The log's name of the step that a call belongs to, and the words that begin the line about its failure.
fn step(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Connect => ("init-client", "Failed to create secretmanager client"),
        Operation::Find | Operation::ListVersions | Operation::Create | Operation::Update | Operation::AddVersion => {
            ("create-update-secret", "Failed to create/update secret")
        }
        Operation::ReadVersion => ("verify-secret", "Failed to read secret"),
        Operation::DestroyVersion => ("prune-versions", "Failed to prune versions"),
        Operation::Delete => ("delete-secret", "Failed to delete secret"),
        Operation::CheckPermissions => ("dry-run", "Failed to check permissions"),
    }
}
