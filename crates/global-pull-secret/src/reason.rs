//! The closed set of reasons in conditions, Events, logs and metrics.

fleet_model::reasons! {
    /// Reason of a condition or an Event.
    pub enum Reason {
        /// Every additional Secret is valid.
        Valid,
        /// Valid, but not every reader on a node can use all of it; the message lists what.
        ValidWithWarnings,
        /// Invalid entries were left out (`--invalid-entries skip`), the valid ones are used.
        EntriesLeftOut,
        /// An additional Secret is rejected: correct it. Its last good entries stay, and the original is followed.
        InvalidSecret,
        /// The merged document would not fit into a Secret: shorten it. The last good entries stay.
        TooLarge,
        /// There is no additional Secret.
        NoAdditional,
        /// `global-pull-secret` is up to date; the message counts registries and conflicts.
        Merged,
        /// No additional Secret has, or ever had, a usable entry, so nothing is deployed.
        NothingToMerge,
        /// The original pull secret is missing in the hosted control plane's namespace or lacks its key; the deployed objects
        /// stay.
        OriginalMissing,
        /// The original pull secret is no credential document; the deployed objects stay.
        OriginalInvalid,
        /// Registries are being probed about new credentials, whose roll-out waits for the result.
        ProbingRegistries,
        /// The registry accepts the credential.
        CredentialAccepted,
        /// The registry refuses the credential: correct it. With `--probe-credentials block` it is held back, and its last good
        /// entry stays.
        CredentialRefused,
        /// The registry gave no conclusive answer about the credential, which is rolled out all the same; it is probed again.
        RegistryUnreachable,
        /// No image of a running Pod has lost its key by a change of the merged Secret.
        KeysKept,
        /// Images of running Pods, which the message names, have lost the key that served them: nodes run what they have pulled, but may
        /// be unable to pull it again. If that was not meant, restore the key in its Secret.
        KeysLost,
        /// It is not known if an image of a running Pod has lost its key; the message says why.
        ImagesUnknown,
        /// Every node has the content.
        RolledOut,
        /// The content is being rolled out to nodes; the message counts them.
        RollingOut,
        /// There is nothing to roll out.
        NotDeployed,
        /// Nodes are being reverted to the original, before everything is removed.
        Reverting,
        /// Nothing is degraded.
        AsExpected,
        /// Nodes have not applied the content within `--node-deadline`; the message names them: see their syncer's log.
        NodesNotInSync,
        /// An unmanaged object has a name that the controller needs, and is left alone: remove it, or label it as managed to
        /// have it replaced.
        UnmanagedObject,
        /// Nodes were not reverted to the original within `--cleanup-deadline`; everything was removed, and they may still hold
        /// the credentials: the message names them.
        RevertIncomplete,
        /// A write or watch of an API server fails; it is retried.
        ApiServerError,
        /// The nodes are back at the original, and everything was removed.
        CleanedUp,
    }
}

impl Reason {
    /// Returns true if an operator should act.
    pub const fn is_warning(self) -> bool {
        matches!(
            self,
            Self::EntriesLeftOut
                | Self::InvalidSecret
                | Self::TooLarge
                | Self::NothingToMerge
                | Self::OriginalMissing
                | Self::OriginalInvalid
                | Self::CredentialRefused
                | Self::RegistryUnreachable
                | Self::KeysLost
                | Self::NodesNotInSync
                | Self::UnmanagedObject
                | Self::RevertIncomplete
                | Self::ApiServerError
        )
    }
}
