//! Outcome of a run, and the errors that end it early.

use daemon::retry::{Failure, Interrupted};
use fleet_model::job::{Calls, Reason};
use kubernetes::KubernetesError;
use secret_store::{ErrorKind, Operation, StoreError, StoreSettings, VersionNumber};
use serde::Serialize;

use crate::settings::{KUBERNETES_SECRET_PHASE, Settings};

/// Outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Reason, in one word.
    pub reason: Reason,
    /// Message, in a sentence.
    pub message: String,
    /// Data that the adapter reports.
    pub details: Details,
}

/// Data that the adapter reports. Members that do not apply are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// The cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The secret's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// The secret's full name in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_path: Option<String>,
    /// The version that holds the pull secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_version: Option<u64>,
    /// The place of the store.
    #[serde(flatten)]
    pub place: Place,
    /// The generation that the run acted for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// The keyed digest of the pull secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Namespace of the Kubernetes Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the Kubernetes Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k8s_secret_name: Option<String>,
    /// The mirror.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mirror: Option<Mirror>,
    /// Numbers of versions.
    #[serde(flatten)]
    pub written: Written,
    /// Calls to the store by operation and status.
    pub api_calls: Vec<Calls>,
    /// Calls to the management cluster by operation and status.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub k8s_api_calls: Vec<Calls>,
    /// Number of calls that were repeated after a failure.
    pub retries: u32,
    /// Duration of the run, in milliseconds.
    pub duration_ms: u64,
}

/// Place of a store, of which one member is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp_project: Option<String>,
    /// The address of OpenBao or Vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vault_address: Option<String>,
    /// The region at AWS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_region: Option<String>,
    /// The address of the vault at Azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_vault: Option<String>,
}

/// Numbers of versions that a run has written in a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// Number of versions that were added.
    pub versions_added: u32,
    /// Number of versions that were destroyed.
    pub versions_destroyed: u32,
}

/// The mirror; members have the meaning of those of [`Details`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mirror {
    /// The secret's name.
    pub secret_name: String,
    /// The secret's full name in the mirror.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_path: Option<String>,
    /// The version that holds the pull secret; `None` unless it was read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_version: Option<u64>,
    /// The place of the mirror.
    #[serde(flatten)]
    pub place: Place,
    /// The generation that the mirror holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
    /// The keyed digest of what it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Numbers of versions.
    #[serde(flatten)]
    pub written: Written,
    /// Calls to the mirror by operation and status.
    pub api_calls: Vec<Calls>,
}

/// Error that ends a run early; logged once, at the end of the run.
#[derive(Debug)]
pub(crate) struct RunError {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// Action that resolves it.
    pub(crate) hint: Option<String>,
    /// Operation that failed, as the log names it.
    pub(crate) operation: &'static str,
    /// Phase that failed; `None` for the one that stores the pull secret.
    pub(crate) phase: Option<&'static str>,
}

/// Action that resolves [`Reason::DifferentIncarnation`].
pub(crate) const DIFFERENT_INCARNATION_HINT: &str = "if the earlier cluster is gone, delete what is left of it with \
    `pull-secret sweep`; if it is the same cluster, take its secrets over: run the Job once with --adopt";

impl Details {
    /// Details that are known before the run.
    pub(crate) fn of(settings: &Settings) -> Self {
        let key = settings.kubernetes_secret.as_ref().map(|kubernetes_secret| &kubernetes_secret.key);
        Self {
            cluster_id: Some(settings.identity.cluster.to_string()),
            secret_name: Some(settings.secret.to_string()),
            place: settings.store.as_ref().map(Place::of).unwrap_or_default(),
            mirror: settings.mirror.as_ref().map(|mirror| Mirror {
                secret_name: settings.secret.to_string(),
                place: Place::of(mirror),
                ..Mirror::default()
            }),
            generation: settings.identity.generation.map(|generation| generation.to_string()),
            namespace: key.map(|key| key.namespace.clone()),
            k8s_secret_name: key.map(|key| key.name.clone()),
            ..Self::default()
        }
    }
}

impl Place {
    fn of(store: &StoreSettings) -> Self {
        let none = Self::default();
        match store {
            StoreSettings::Google(settings) => Self { gcp_project: Some(settings.project.to_string()), ..none },
            StoreSettings::Vault(settings) => Self { vault_address: Some(settings.address.to_string()), ..none },
            StoreSettings::Aws(settings) => Self { aws_region: Some(settings.region.to_string()), ..none },
            StoreSettings::Azure(settings) => Self { azure_vault: Some(settings.vault.to_string()), ..none },
        }
    }
}

impl RunError {
    pub(crate) fn new(operation: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), hint: None, operation, phase: None }
    }

    /// The same error, reported for the phase of the Kubernetes Secret.
    pub(crate) fn in_kubernetes_secret_phase(self) -> Self {
        Self { phase: Some(KUBERNETES_SECRET_PHASE), ..self }
    }

    pub(crate) fn contended(additions: usize) -> Self {
        let message = format!("Failed to verify secret: {additions} versions were added, and none of them persisted");
        Self::new("verify-secret", Reason::VerificationFailed, message)
    }

    pub(crate) fn unverified(version: VersionNumber) -> Self {
        let message = format!("Failed to verify secret: version {version} does not hold what was written to it");
        Self::new("verify-secret", Reason::VerificationFailed, message)
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        let (operation, prefix) = step(error.operation);
        Self { hint: error.hint(), ..Self::new(operation, reason(error.kind), format!("{prefix}: {error}")) }
    }
}

impl From<KubernetesError> for RunError {
    fn from(error: KubernetesError) -> Self {
        let (operation, prefix) = match error.operation {
            kubernetes::Verb::Connect => ("init-client", "Failed to create Kubernetes client"),
            kubernetes::Verb::Delete => ("delete-secret", "Failed to delete Kubernetes secret"),
            _ => ("create-update-secret", "Failed to create/update Kubernetes secret"),
        };
        let failed = Self::new(operation, reason_in_kubernetes(error.kind), format!("{prefix}: {error}"));
        let hint = match error.kind {
            kubernetes::ErrorKind::Forbidden => Some(
                "allow the Job's service account that verb on secrets in that namespace (Role, RoleBinding)".to_owned(),
            ),
            _ => error.hint(),
        };
        Self { hint, phase: Some(KUBERNETES_SECRET_PHASE), ..failed }
    }
}

impl From<Interrupted> for RunError {
    fn from(interrupted: Interrupted) -> Self {
        Self::of_interruption(interrupted)
    }
}

impl RunError {
    fn of_interruption(interrupted: Interrupted) -> Self {
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

impl<E> From<Failure<E>> for RunError
where
    Self: From<E>,
{
    fn from(failure: Failure<E>) -> Self {
        match failure {
            Failure::Failed(error) => error.into(),
            Failure::Interrupted(interrupted, None) => Self::of_interruption(interrupted),
            Failure::Interrupted(interrupted, Some(error)) => {
                let (interrupted, last) = (Self::of_interruption(interrupted), Self::from(error));
                let message = format!("{}; last failure: {}", interrupted.message, last.message);
                Self { message, hint: last.hint, phase: last.phase, ..interrupted }
            }
        }
    }
}

fn reason(kind: ErrorKind) -> Reason {
    match kind {
        ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::Invalid => Reason::InvalidRequest,
        ErrorKind::PermissionDenied => Reason::PermissionDenied,
        ErrorKind::ApiDisabled => Reason::ApiDisabled,
        ErrorKind::Unauthenticated => Reason::Unauthenticated,
        ErrorKind::Corrupt => Reason::VerificationFailed,
        ErrorKind::QuotaExceeded => Reason::QuotaExceeded,
        ErrorKind::PendingDeletion => Reason::SecretPendingDeletion,
        ErrorKind::Changed | ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal => {
            Reason::StoreUnavailable
        }
    }
}

fn reason_in_kubernetes(kind: kubernetes::ErrorKind) -> Reason {
    use kubernetes::ErrorKind;
    match kind {
        ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::Invalid => Reason::InvalidRequest,
        ErrorKind::NamespaceMissing => Reason::NamespaceMissing,
        ErrorKind::NamespaceTerminating => Reason::NamespaceTerminating,
        ErrorKind::Unusable => Reason::InvalidConfiguration,
        ErrorKind::Forbidden => Reason::PermissionDenied,
        ErrorKind::QuotaExceeded => Reason::NamespaceQuotaExceeded,
        ErrorKind::AdmissionDenied => Reason::AdmissionDenied,
        ErrorKind::Unauthenticated => Reason::Unauthenticated,
        ErrorKind::Changed
        | ErrorKind::TooManyRequests
        | ErrorKind::Unavailable
        | ErrorKind::TimedOut
        | ErrorKind::TooLarge
        | ErrorKind::Internal => Reason::KubernetesUnavailable,
    }
}

/// Operation that a call belongs to, as the log names it, and the beginning of the message of its failure.
fn step(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Connect => ("init-client", "Failed to create the client of the secret store"),
        Operation::List => ("list-secrets", "Failed to list secrets"),
        Operation::Find
        | Operation::FindVersion
        | Operation::ListVersions
        | Operation::Create
        | Operation::Update
        | Operation::AddVersion => ("create-update-secret", "Failed to create/update secret"),
        Operation::ReadVersion => ("verify-secret", "Failed to read secret"),
        Operation::DestroyVersion => ("prune-versions", "Failed to prune versions"),
        Operation::Delete => ("delete-secret", "Failed to delete secret"),
        Operation::CheckPermissions => ("dry-run", "Failed to check permissions"),
    }
}
