//! The adapter's reasons: one closed list for conditions, logs, metrics and dry runs.

fleet_model::reasons! {
    /// The reason of a decision. The reasons of a Job are its own.
    pub enum Reason {
        /// A precondition or dependency is not met; the message names each of them.
        PreconditionsNotMet,
        /// A run is due and waits for the quota of its project.
        WaitingForQuota,
        /// The adapter's configuration does not allow the destination that the resource has chosen.
        DestinationNotAllowed,
        /// It is recorded where the run stores the pull secret; its Job is created next.
        DestinationsRecorded,
        /// The Job and the input of a run were created.
        ResourcesCreated,
        /// Everything that this generation needs exists.
        ResourcesExist,
        /// The Job was created or is running; its end is reported at once.
        WorkloadInProgress,
        /// The Job has succeeded without a reason of its own.
        JobSucceeded,
        /// The Job has failed without a reason of its own: it crashed, or exceeded its deadline.
        JobFailed,
        /// The Secret that the Job has applied was deleted or changed; another Job repairs it.
        Drifted,
        /// The stored pull secret was deleted, disabled or changed in the secret store; another Job repairs it.
        StoreDrifted,
        /// An unmanaged Secret or Job has the name that is needed; it is not changed.
        NameConflict,
        /// Kubernetes has refused the Job, its input, or the access to its Secret.
        ResourceCreationFailed,
        /// The adapter works without errors.
        NoErrors,
        /// Kubernetes has refused a request of the adapter; check its RBAC.
        KubernetesApiFailure = "KubernetesAPIFailure",
        /// The clean-up Job has failed.
        DeletionError,
        /// The resource is not being deleted.
        NotDeleting,
        /// The resource is being deleted, and the clean-up is in progress.
        CleanupInProgress,
        /// Everything that was created for the resource is removed, or nothing was created.
        CleanupConfirmed,
        /// The clean-up could not be completed yet.
        AdapterUnhealthy,
        /// The API does not have the resource; what is left of its runs is removed.
        ResourceGone,
    }
}
