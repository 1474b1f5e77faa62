//! Reasons of decisions about a credential: one closed list for logs, metrics, events and explanations.

fleet_model::reasons! {
    /// The reason for which a credential moves, or waits.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub enum Reason {
        /// The account is not created yet.
        ToCreate,
        /// The account has no permission to pull yet.
        ToPermit,
        /// The credential was not tried yet.
        ToProbe,
        /// The pull secret of the cluster does not name it yet.
        ToPublish,
        /// The credential waits beside that of AMS, until the cluster is moved: see `pull-secret credentials ams status`.
        Held,
        /// The credential waits for a cluster.
        InPool,
        /// The adapter has not reported the generation that names the credential yet.
        AwaitingReport,
        /// The adapter has not reported that generation within the deadline: see `pull-secret explain cluster`. Nothing is
        /// revoked.
        NeverReported,
        /// Not all nodes are known to have the revision yet.
        AwaitingNodes,
        /// Not all nodes were known to have the revision within the deadline. Nothing is revoked.
        NodesNeverReported,
        /// No node has pulled with the new account yet.
        AwaitingFirstPull,
        /// No node has pulled with the new account within the deadline. Nothing is revoked.
        NeverPulled,
        /// The registry does not show who has used an account: a person must attest it.
        NoUsageLog,
        /// Another change of the cluster's pull secret has displaced the credential: put it back, or retire
        /// the credential.
        Displaced,
        /// The cluster uses the credential.
        InUse,
        /// The token expires before long: another one is to be minted and published in its place.
        ToRenew,
        /// The token is not needed any more. Its registry revokes none, so it is good until it expires.
        AwaitingExpiry,
        /// The newer credential of the cluster is not adopted yet.
        AwaitingSuccessor,
        /// The old credential has not been quiet for the quiet time yet.
        AwaitingQuiet,
        /// The old credential is still used.
        StillUsed,
        /// The registry has more usage than could be read: silence is not proven.
        UsageIncomplete,
        /// The old credential is quiet; its retirement is to be approved by a person.
        AwaitingApproval,
        /// The pull secret of the cluster names the credential: it is not deleted.
        StillNamed,
        /// A newer credential of the cluster is adopted.
        Superseded,
        /// The cluster does not exist any more.
        ClusterGone,
        /// A person has ordered the retirement.
        Ordered,
        /// A person has ordered the revocation at once, whatever uses the credential.
        BreakGlass,
        /// The account's name belongs to another account: another one is reserved.
        NameSpent,
        /// The registry has kept something else than what was sent: the account is deleted, another one is reserved.
        Corrupt,
        /// The account has disappeared from the registry: another one is reserved.
        AccountLost,
        /// The password cannot be read any more: the account is deleted, another one is reserved.
        PasswordLost,
        /// The cluster has its former credential again: this one is retired.
        RolledBack,
        /// A request to create the account, or to publish the credential, may still be on its way.
        AwaitingLateRequest,
        /// The account is disabled; it is deleted later.
        Disabled,
        /// The account is to be deleted.
        ToDelete,
        /// The account is deleted; the registry has not refused the password yet.
        AwaitingRefusal,
        /// Tokens that were issued before the deletion, or for a minted token before its end, may still be good.
        AwaitingTokenExpiry,
        /// Nothing is left to do.
        Done,
        /// The call failed and is retried.
        Retrying,
        /// It is not known if the call was carried out; the registry or the API is asked again.
        Ambiguous,
        /// The identity of this service lacks a permission, or the configuration is wrong: correct it; retried slowly.
        Denied,
        /// The rate of the registry is exhausted; the call waits.
        RateLimited,
        /// The registry refuses the login of the new account: see whether it was changed or disabled there; retried slowly.
        LoginRefused,
        /// The registry accepts the login, but no pull of the probed image: check the permissions that accounts share, and the
        /// setting `image`; retried slowly.
        PullNotPermitted,
        /// The registry still accepts the password after the deletion.
        StillAccepted,
        /// The cluster has changed since it was read; it is read again.
        ClusterChanged,
        /// The pull secret of the cluster names a newer credential: this one is not published.
        NewerPublished,
        /// The cluster has no inline pull secret that this service may read and write.
        NotWritable,
    }
}

// === impl Reason ===

impl Reason {
    /// Returns true for causes that a person has to resolve.
    pub fn needs_a_person(self) -> bool {
        matches!(
            self,
            Self::NeverReported
                | Self::NodesNeverReported
                | Self::NeverPulled
                | Self::NoUsageLog
                | Self::Displaced
                | Self::AwaitingApproval
                | Self::StillNamed
                | Self::Denied
                | Self::LoginRefused
                | Self::PullNotPermitted
                | Self::StillAccepted
                | Self::NotWritable
                | Self::NewerPublished
        )
    }
}
