//! Types of the conditions that this project writes.

names! {
    /// Types of the conditions that an adapter reports.
    REPORTED:
    /// `True` once the adapter's work for the observed generation is done.
    AVAILABLE = "Available";
    /// `True` once the objects that the work needs exist.
    APPLIED = "Applied";
    /// `True` while the adapter itself has no errors.
    HEALTH = "Health";
    /// `True` once every copy that the adapter made for a terminating resource is deleted.
    FINALIZED = "Finalized";
}

names! {
    /// Types of the conditions that the API concludes.
    CONCLUDED:
    /// `True` once every required adapter is available at the current generation.
    RECONCILED = "Reconciled";
    /// `True` while every required adapter is available at the last generation that all of them reported.
    LAST_KNOWN_RECONCILED = "LastKnownReconciled";
}

/// Suffix of the condition type that the API derives from each adapter's name, such as `PullSecretSuccessful`.
pub const SUCCESSFUL_SUFFIX: &str = "Successful";

names! {
    /// Types of the conditions that the Global Pull Secret controller publishes.
    GLOBAL:
    /// `True` while every additional Secret is valid.
    VALID = "Valid";
    /// `True` while the merged Secret is up to date.
    MERGED = "Merged";
    /// `True` while the registries accept the credentials.
    CREDENTIALS_ACCEPTED = "CredentialsAccepted";
    /// `True` while no image of a running Pod has lost its key by a change of the merged Secret.
    KEYS_KEPT = "KeysKept";
    /// `True` once every node has confirmed the revision.
    ROLLED_OUT = "RolledOut";
    /// `True` while the controller cannot bring the cluster to the desired state.
    DEGRADED = "Degraded";
}
