//! The result of a Pull Secret Job: one closed list of reasons for its log, result file, status condition and exit code,
//! and the calls that its result counts.

/// The calls, as the result file counts them, that the store's quota of writes applies to.
pub const STORE_WRITES: [&str; 5] = ["createSecret", "updateSecret", "addVersion", "destroyVersion", "deleteSecret"];

crate::reasons! {
    /// Reason with which a Pull Secret Job ends.
    pub enum Reason {
        /// A new version holds the pull secret and was read back by number.
        SecretStored,
        /// The newest version already held the pull secret; no version was added.
        SecretUnchanged,
        /// The store already held the pull secret; the Kubernetes Secret was created or corrected.
        KubernetesSecretApplied,
        /// A newer generation, or a later run, holds the secret; this run changed nothing.
        Superseded,
        /// The secret and all its versions were deleted.
        SecretDeleted,
        /// There was nothing to delete.
        SecretAbsent,
        /// There was nothing of this cluster to delete: the secret of that name is not this cluster's and was left alone.
        UnmanagedSecretKept,
        /// The dry run found nothing that would stop a real run.
        DryRunPassed,
        /// An error that the program does not know; please report it with the log.
        InternalError,
        /// Environment or flags are missing, malformed or contradictory.
        InvalidConfiguration,
        /// The store called a request invalid: the message quotes its answer.
        InvalidRequest,
        /// The pull secret is not usable; the message names each problem and its position.
        InvalidPullSecret,
        /// The store did not accept the identity, or no credentials were available.
        Unauthenticated,
        /// The identity lacks the permission that the message names.
        PermissionDenied,
        /// The Secret Manager API is not enabled in the project.
        ApiDisabled,
        /// Admission in the management cluster denied the Kubernetes Secret.
        AdmissionDenied,
        /// A secret of this name exists and does not belong to this cluster; it was not changed.
        NameConflict,
        /// A secret of this name belongs to an earlier cluster with the same id; it was not changed.
        DifferentIncarnation,
        /// The Kubernetes Secret is immutable and holds other content; it was not changed.
        SecretImmutable,
        /// The content that was read back differs from the content that was written.
        VerificationFailed,
        /// The store's quota was still exhausted after all retries.
        QuotaExceeded,
        /// The store was unreachable or failing after all retries.
        StoreUnavailable,
        /// The management cluster's API server was unreachable or failing after all retries.
        KubernetesUnavailable,
        /// The namespace of the Kubernetes Secret does not exist; placement creates it.
        NamespaceMissing,
        /// The namespace of the Kubernetes Secret is terminating.
        NamespaceTerminating,
        /// The quota of the namespace is too small for the Kubernetes Secret.
        NamespaceQuotaExceeded,
        /// The run did not finish within `RUN_TIMEOUT`.
        DeadlineExceeded,
        /// The Job received SIGTERM or SIGINT; the next run continues.
        Interrupted,
    }
}

impl Reason {
    /// Returns the exit code of the process. Codes 2 to 6 are permanent: another run without a change cannot succeed.
    /// 75 (`EX_TEMPFAIL` of sysexits.h) is retryable.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::SecretStored
            | Self::SecretUnchanged
            | Self::KubernetesSecretApplied
            | Self::Superseded
            | Self::SecretDeleted
            | Self::SecretAbsent
            | Self::UnmanagedSecretKept
            | Self::DryRunPassed => 0,
            Self::InternalError => 1,
            Self::InvalidConfiguration | Self::InvalidRequest => 2,
            Self::InvalidPullSecret => 3,
            Self::Unauthenticated | Self::PermissionDenied | Self::ApiDisabled | Self::AdmissionDenied => 4,
            Self::NameConflict | Self::DifferentIncarnation | Self::SecretImmutable => 5,
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

    /// Returns true if the Job did its task, or correctly had nothing to do.
    pub const fn is_success(self) -> bool {
        self.exit_code() == 0
    }
}
