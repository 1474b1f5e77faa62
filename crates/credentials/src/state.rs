//! States of a credential, the outward actions between them, and the lanes in which registries are called.

fleet_model::reasons! {
    /// The state of a credential.
    pub enum State {
        /// Its id and the name of its account are recorded; the account may exist at the registry.
        Reserved,
        /// The account exists, and its password is recorded.
        Created,
        /// The account may pull.
        Permitted,
        /// The registry has served a probe of it; it belongs to no cluster yet.
        Pooled,
        /// The registry has served a probe of it; it belongs to a cluster.
        Probed,
        /// The pull secret of its cluster names it.
        Published,
        /// Its cluster uses it: every part of the evidence is there.
        Adopted,
        /// Its cluster uses another one, and it was not used for the quiet time.
        Quiet,
        /// Its account is being deleted.
        Retiring,
        /// The registry refuses its password; tokens that were issued before may still be good.
        Dead,
        /// Every token that was issued to it has expired; its password is erased.
        WaitedOut,
        /// Its name was never used by it, or belongs to another account. No account is deleted by it.
        Spent,
    }
}

fleet_model::reasons! {
    /// An outward action: one call of a registry or of the HyperFleet API.
    pub enum Action {
        /// Create the account.
        Create,
        /// Give the account the permission to pull.
        Permit,
        /// Try the credential as a node would.
        Probe,
        /// Write the credential into the pull secret of its cluster.
        Publish,
        /// Read the evidence of adoption from the HyperFleet API.
        ObserveAdoption,
        /// Read from the registry who used the account.
        ObserveUsage,
        /// Read if the pull secret of its cluster names it.
        ObserveDocument,
        /// Disable the account.
        Disable,
        /// Delete the account by its name.
        Delete,
        /// Try if the registry refuses the old password.
        ConfirmRefused,
    }
}

fleet_model::reasons! {
    /// The purpose of calls of a registry, most urgent first.
    pub enum Lane {
        /// Revocations that a person demands at once.
        BreakGlass,
        /// The first credential of a cluster.
        NewCluster,
        /// Credentials that replace others, and the deletion of those.
        Rotation,
        /// Credentials for the pool.
        Refill,
        /// Evidence, and lists of accounts.
        Audit,
    }
}

// === impl State ===

impl State {
    /// Returns true if nothing is left to do.
    pub fn is_final(self) -> bool {
        matches!(self, Self::WaitedOut | Self::Spent)
    }

    /// Returns true if its account must not exist any more, or never did.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Dead | Self::WaitedOut | Self::Spent)
    }
}

// === impl Action ===

impl Action {
    /// Returns true for calls of the registry, which its rate limits.
    pub fn calls_registry(self) -> bool {
        !matches!(self, Self::Publish | Self::ObserveAdoption | Self::ObserveDocument)
    }

    /// Returns true for actions that change nothing.
    pub fn observes(self) -> bool {
        matches!(self, Self::ObserveAdoption | Self::ObserveUsage | Self::ObserveDocument)
    }
}

// === impl Lane ===

impl Lane {
    /// Returns its place among the lanes; 0 is the most urgent.
    pub fn rank(self) -> u32 {
        self as u32
    }
}
