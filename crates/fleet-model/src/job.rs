//! How a Job ends: one closed list of reasons for its log, its result file, the status condition and the exit code.

use std::fmt;

/// Why a Pull Secret Job ended as it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A new version holds the pull secret and was read back.
    SecretStored,
    /// The newest version already held the pull secret; no version was added.
    SecretUnchanged,
    /// The store held the pull secret already; the Kubernetes Secret was created or brought right.
    SecretHandedOver,
    /// A newer generation or a later run holds the secret; this run changed nothing of theirs.
    Superseded,
    /// The secret and all its versions were deleted.
    SecretDeleted,
    /// There was nothing to delete.
    SecretAbsent,
    /// The dry run found nothing that would stop a real run.
    DryRunPassed,
    /// The program failed in a way that it does not know; please report it.
    InternalError,
    /// Environment or flags are missing, malformed or contradict each other.
    InvalidConfiguration,
    /// The store called a request invalid.
    InvalidRequest,
    /// The pull secret is not a usable Docker config JSON.
    InvalidPullSecret,
    /// The store did not accept the identity, or none could be had.
    Unauthenticated,
    /// The identity lacks a permission.
    PermissionDenied,
    /// The store's API is not enabled in the project.
    ApiDisabled,
    /// Admission in the management cluster has refused the Kubernetes Secret.
    AdmissionDenied,
    /// A secret of this name exists and is not this cluster's.
    NameConflict,
    /// The Kubernetes Secret is immutable and holds something else.
    SecretImmutable,
    /// What was read back is not what was written.
    VerificationFailed,
    /// The store's quota was still exhausted after all retries.
    QuotaExceeded,
    /// The store was still unreachable or failing after all retries.
    StoreUnavailable,
    /// The management cluster's API server was still unreachable or failing after all retries.
    KubernetesUnavailable,
    /// The namespace for the Kubernetes Secret did not come to be in time.
    NamespaceMissing,
    /// The namespace for the Kubernetes Secret is being deleted.
    NamespaceTerminating,
    /// The namespace's quota has no room for the Kubernetes Secret.
    NamespaceQuotaExceeded,
    /// The run's own time was over.
    DeadlineExceeded,
    /// The Job was told to stop.
    Interrupted,
}

impl Reason {
    /// Every reason, in the order of the reference page.
    pub const ALL: &'static [Self] = &[
        Self::SecretStored,
        Self::SecretUnchanged,
        Self::SecretHandedOver,
        Self::Superseded,
        Self::SecretDeleted,
        Self::SecretAbsent,
        Self::DryRunPassed,
        Self::InternalError,
        Self::InvalidConfiguration,
        Self::InvalidRequest,
        Self::InvalidPullSecret,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::ApiDisabled,
        Self::AdmissionDenied,
        Self::NameConflict,
        Self::SecretImmutable,
        Self::VerificationFailed,
        Self::QuotaExceeded,
        Self::StoreUnavailable,
        Self::KubernetesUnavailable,
        Self::NamespaceMissing,
        Self::NamespaceTerminating,
        Self::NamespaceQuotaExceeded,
        Self::DeadlineExceeded,
        Self::Interrupted,
    ];

    /// The process's exit code. 2 to 6 are permanent: running again without a change cannot help. 75 (`EX_TEMPFAIL`
    /// of sysexits.h) is worth another try.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::SecretStored
            | Self::SecretUnchanged
            | Self::SecretHandedOver
            | Self::Superseded
            | Self::SecretDeleted
            | Self::SecretAbsent
            | Self::DryRunPassed => 0,
            Self::InternalError => 1,
            Self::InvalidConfiguration | Self::InvalidRequest => 2,
            Self::InvalidPullSecret => 3,
            Self::Unauthenticated | Self::PermissionDenied | Self::ApiDisabled | Self::AdmissionDenied => 4,
            Self::NameConflict | Self::SecretImmutable => 5,
            Self::VerificationFailed => 6,
            Self::QuotaExceeded
            | Self::StoreUnavailable
            | Self::KubernetesUnavailable
            | Self::NamespaceMissing
            | Self::NamespaceTerminating
            | Self::NamespaceQuotaExceeded
            | Self::DeadlineExceeded => 75,
            Self::Interrupted => 143,
        }
    }

    /// Whether the Job did what it was asked to, or rightly had nothing to do.
    pub fn is_success(self) -> bool {
        self.exit_code() == 0
    }

    /// What a person who reads the reason should know and do.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::SecretStored => "a new version holds the pull secret and was read back by number",
            Self::SecretUnchanged => "the newest version already held the pull secret; no version was added",
            Self::SecretHandedOver => "the store held the pull secret already; the Kubernetes Secret was brought right",
            Self::AdmissionDenied => "admission in the management cluster has refused the Kubernetes Secret",
            Self::SecretImmutable => "the Kubernetes Secret is immutable and holds something else; it was not touched",
            Self::KubernetesUnavailable => "the management cluster was unreachable or failing after all retries",
            Self::NamespaceMissing => "the namespace for the Kubernetes Secret does not exist; placement creates it",
            Self::NamespaceTerminating => "the namespace for the Kubernetes Secret is being deleted",
            Self::NamespaceQuotaExceeded => "the namespace's quota has no room for the Kubernetes Secret",
            Self::Superseded => "a newer generation, or a later run, holds the secret; nothing of theirs was changed",
            Self::SecretDeleted => "the secret and all its versions were deleted",
            Self::SecretAbsent => "there was nothing to delete",
            Self::DryRunPassed => "the dry run found nothing that would stop a real run",
            Self::InternalError => "an error that the program does not know; please report it with the log",
            Self::InvalidConfiguration => "environment or flags are missing, malformed or contradictory",
            Self::InvalidRequest => "the store called a request invalid: see its words in the message",
            Self::InvalidPullSecret => "the pull secret is not usable; each problem is named with its place",
            Self::Unauthenticated => "the store did not accept the identity, or none could be had",
            Self::PermissionDenied => "the identity lacks the permission that the message names",
            Self::ApiDisabled => "the Secret Manager API is not enabled in the project",
            Self::NameConflict => "a secret of this name exists and is not this cluster's; it was not touched",
            Self::VerificationFailed => "what was read back is not what was written",
            Self::QuotaExceeded => "the store's quota was still exhausted after all retries",
            Self::StoreUnavailable => "the store was unreachable or failing after all retries",
            Self::DeadlineExceeded => "the run did not finish within RUN_TIMEOUT",
            Self::Interrupted => "the Job was told to stop (SIGTERM or SIGINT); the next run continues",
        }
    }
}

impl fmt::Display for Reason {
    /// The name of the variant, as in a status condition's `reason`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_reasons_is_in_order_and_without_gaps() {
        assert!(Reason::ALL.is_sorted());
        let last = Reason::ALL.last().copied();
        assert_eq!(last, Some(Reason::Interrupted));
        assert_eq!(Reason::ALL.len(), Reason::Interrupted as usize + 1);
    }
}
