//! The Sentinel's reasons: one closed list for logs, metrics and explanations.

fleet_model::reasons! {
    /// The reason for an event, or for none.
    pub enum Reason {
        /// The resource was not known before and is not reconciled.
        New,
        /// The desired state has changed.
        GenerationChanged,
        /// The deletion of the resource was requested.
        DeletionRequested,
        /// An adapter has become available at this generation; others may depend on it.
        DependencyAvailable,
        /// An adapter that was available is not available any more.
        DependencyUnavailable,
        /// The `publish_when` of an adapter has become true.
        PublishWhenMet,
        /// The resource is not reconciled and its back-off is over; the same event is published again.
        RepublishDue,
        /// The resource is reconciled and its resync slot is due.
        ResyncDue,
        /// The resource has not changed and its resync slot is not due.
        UpToDate,
        /// The resource is not reconciled and its back-off is not over.
        BackOff,
        /// No adapter's `publish_when` is true.
        PublishWhenNotMet,
        /// The event is in flight; the broker has not confirmed it yet.
        AwaitingConfirmation,
        /// The broker has refused the event; it is published again after a back-off.
        AwaitingBroker,
        /// The resource belongs to another shard.
        OtherShard,
    }
}

impl Reason {
    /// Returns true for reasons to publish an event.
    pub fn publishes(self) -> bool {
        matches!(
            self,
            Self::New
                | Self::GenerationChanged
                | Self::DeletionRequested
                | Self::DependencyAvailable
                | Self::DependencyUnavailable
                | Self::PublishWhenMet
                | Self::RepublishDue
                | Self::ResyncDue
        )
    }

    /// Returns true for changes that are not published yet, as opposed to repetitions.
    pub fn is_change(self) -> bool {
        self.publishes() && !matches!(self, Self::RepublishDue | Self::ResyncDue)
    }
}
