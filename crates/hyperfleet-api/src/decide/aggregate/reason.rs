//! Reasons of the aggregated conditions.

fleet_model::reasons! {
    /// Reason of an aggregated condition, as HyperFleet's API names it.
    pub enum Reason {
        /// `Reconciled`: every required adapter has reconciled the current generation.
        ReconciledAll,
        /// `Reconciled`: every required adapter has finalized, but active children remain.
        ReconciledWaitingForChildren,
        /// `Reconciled`: some required adapter has not reconciled the current generation.
        ReconciledMissingAdapters,
        /// `LastKnownReconciled`: no required adapter denies the tracked generation.
        AllAdaptersReconciled,
        /// `LastKnownReconciled`: some required adapter has never reported.
        AdaptersMissingReports,
        /// `LastKnownReconciled`: some required adapter reports `Available=False`.
        AdapterReportedNotAvailable,
        /// `LastKnownReconciled`: all required adapters are available, but not at the same generation.
        AdaptersNotAtSameGeneration,
    }
}
