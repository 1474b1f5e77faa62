//! The result of a Pull Secret Job: one closed list of reasons for its log, result file, status condition and exit code,
//! and the calls that its result counts.

use serde::{Deserialize, Serialize};

/// The operations, as the result file names them, that the store's quota of writes applies to.
pub const STORE_WRITES: [&str; 5] =
    ["create_secret", "update_secret", "add_secret_version", "destroy_secret_version", "delete_secret"];

/// The beginning of the message of a run that has stored the pull secret in the first store, and not in the mirror.
pub const MIRROR_FAILED: &str = "Failed to mirror the pull secret";

/// The calls of a run for one operation that were answered with one status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Calls {
    /// The operation, such as `add_secret_version`.
    pub operation: String,
    /// The HTTP status; 503 if the service could not be reached, 504 if no answer came in time.
    pub status_code: u16,
    /// The number of calls.
    pub count: u32,
    /// Times in milliseconds, in ascending order: of each call, or of evenly spaced ones of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ms: Vec<u32>,
}

impl Calls {
    /// The most times that one entry has. A container's termination message has room for 4096 bytes.
    const MAX_TIMES: usize = 8;

    /// Groups calls, given as operation, status and time in milliseconds.
    pub fn group(calls: impl IntoIterator<Item = (String, u16, u32)>) -> Vec<Self> {
        let mut groups = std::collections::BTreeMap::<_, Vec<u32>>::new();
        for (operation, status_code, ms) in calls {
            groups.entry((operation, status_code)).or_default().push(ms);
        }
        let entry = |((operation, status_code), mut times): ((String, u16), Vec<u32>)| {
            times.sort_unstable();
            let kept = times.len().min(Self::MAX_TIMES);
            let ms = (0..kept).filter_map(|index| times.get((index * times.len() + times.len() / 2) / kept).copied());
            Self { operation, status_code, count: u32::try_from(times.len()).unwrap_or(u32::MAX), ms: ms.collect() }
        };
        groups.into_iter().map(entry).collect()
    }

    /// Returns the time of each call, in milliseconds; nothing if no times are known.
    pub fn times(&self) -> impl Iterator<Item = u32> {
        let (count, kept) = (self.count as usize, self.ms.len());
        (0..count).filter_map(move |index| self.ms.get(index * kept / count).copied())
    }
}

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
        /// The secret is scheduled for deletion: it can be stored again when it is restored, or gone.
        SecretPendingDeletion,
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
            | Self::SecretPendingDeletion
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_grouped_by_operation_and_status() {
        let call = |operation: &str, status, ms| (operation.to_owned(), status, ms);
        let calls = [call("get_secret", 503, 9), call("get_secret", 200, 7), call("get_secret", 200, 3)];
        let groups = Calls::group(calls);
        let operation = "get_secret".to_owned();
        let answered = Calls { operation: operation.clone(), status_code: 200, count: 2, ms: vec![3, 7] };
        assert_eq!(groups, [answered, Calls { operation, status_code: 503, count: 1, ms: vec![9] }]);
    }

    #[test]
    fn many_calls_keep_their_number_and_distribution() {
        let groups = Calls::group((1..=80).map(|ms| ("get_secret".to_owned(), 200, ms)));
        let [group] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!(group.ms, [6, 16, 26, 36, 46, 56, 66, 76]);
        let times: Vec<_> = group.times().collect();
        assert_eq!((times.len(), times.iter().filter(|time| **time == 36).count()), (80, 10));
        assert_eq!(Calls { count: 3, ..Calls::default() }.times().count(), 0);
    }
}
