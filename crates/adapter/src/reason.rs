//! Why an adapter does what it does: one closed list for conditions, logs, metrics and dry runs.

use std::fmt;

/// Why an adapter does, or does not do, something about a resource. What a Job says is its own reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A precondition is not met, or a dependency is not available.
    PreconditionsNotMet,
    /// A run is due, and must wait for its project's quota.
    WaitingForQuota,
    /// A run was begun.
    ResourcesCreated,
    /// What a run needs is there.
    ResourcesExist,
    /// A run was begun, or goes on.
    WorkloadInProgress,
    /// The run has succeeded and has given no reason of its own.
    JobSucceeded,
    /// The run has failed and has given no reason of its own.
    JobFailed,
    /// What the run has left behind is gone or has been changed; another run is begun.
    Drifted,
    /// A Secret or a Job of that name is there and belongs to another.
    NameConflict,
    /// Kubernetes has refused what a run needs.
    ResourceCreationFailed,
    /// There was no error.
    NoErrors,
    /// Kubernetes has refused the adapter.
    KubernetesApiFailure,
    /// The run that removes what others have made has failed.
    DeletionError,
    /// The resource is not being deleted.
    NotDeleting,
    /// It is being removed.
    CleanupInProgress,
    /// What had been made is removed, or there was nothing.
    CleanupConfirmed,
    /// It could not be removed yet.
    AdapterUnhealthy,
    /// The resource is gone, or has never been.
    ResourceGone,
}

impl Reason {
    /// Every reason, in the order of the reference page.
    pub const ALL: &'static [Self] = &[
        Self::PreconditionsNotMet,
        Self::WaitingForQuota,
        Self::ResourcesCreated,
        Self::ResourcesExist,
        Self::WorkloadInProgress,
        Self::JobSucceeded,
        Self::JobFailed,
        Self::Drifted,
        Self::NameConflict,
        Self::ResourceCreationFailed,
        Self::NoErrors,
        Self::KubernetesApiFailure,
        Self::DeletionError,
        Self::NotDeleting,
        Self::CleanupInProgress,
        Self::CleanupConfirmed,
        Self::AdapterUnhealthy,
        Self::ResourceGone,
    ];

    /// As conditions, logs and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreconditionsNotMet => "PreconditionsNotMet",
            Self::WaitingForQuota => "WaitingForQuota",
            Self::ResourcesCreated => "ResourcesCreated",
            Self::ResourcesExist => "ResourcesExist",
            Self::WorkloadInProgress => "WorkloadInProgress",
            Self::JobSucceeded => "JobSucceeded",
            Self::JobFailed => "JobFailed",
            Self::Drifted => "Drifted",
            Self::NameConflict => "NameConflict",
            Self::ResourceCreationFailed => "ResourceCreationFailed",
            Self::NoErrors => "NoErrors",
            Self::KubernetesApiFailure => "KubernetesAPIFailure",
            Self::DeletionError => "DeletionError",
            Self::NotDeleting => "NotDeleting",
            Self::CleanupInProgress => "CleanupInProgress",
            Self::CleanupConfirmed => "CleanupConfirmed",
            Self::AdapterUnhealthy => "AdapterUnhealthy",
            Self::ResourceGone => "ResourceGone",
        }
    }

    /// What a person who reads it should know.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::PreconditionsNotMet => "A run waits: the message names each precondition that is not met, and why.",
            Self::WaitingForQuota => "A run is due and waits until its project's quota has room for it.",
            Self::ResourcesCreated => "The run's Job and its input were created.",
            Self::ResourcesExist => "What this generation needs is there.",
            Self::WorkloadInProgress => "The Job was created or runs; its end is reported at once.",
            Self::JobSucceeded => "The Job has succeeded without a reason of its own.",
            Self::JobFailed => "The Job has failed without a reason of its own: it crashed, or ran out of time.",
            Self::Drifted => "What the Job had left behind is gone or was changed; another Job repairs it.",
            Self::NameConflict => "A Secret or Job of that name belongs to another; it is not touched.",
            Self::ResourceCreationFailed => "Kubernetes has refused the Job or its input.",
            Self::NoErrors => "The adapter itself has no trouble.",
            Self::KubernetesApiFailure => "Kubernetes has refused the adapter: look at its RBAC.",
            Self::DeletionError => "The Job that removes what others have made has failed.",
            Self::NotDeleting => "The resource is not being deleted.",
            Self::CleanupInProgress => "The resource is being deleted; what was made for it is being removed.",
            Self::CleanupConfirmed => "What was made for the resource is removed, or there was nothing.",
            Self::AdapterUnhealthy => "What was made for the resource could not be removed yet.",
            Self::ResourceGone => "The API does not know the resource (any more); what is left of its runs is removed.",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
