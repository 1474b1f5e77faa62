//! Why a resource got an event or got none: one closed list for logs, metrics and explanations.

use std::fmt;

/// Why a resource needs an event now, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It was not known before, and it is not reconciled.
    New,
    /// What is wanted has changed.
    GenerationChanged,
    /// Its deletion was asked for.
    DeletionRequested,
    /// An adapter has reported that it is available at this generation, so that others may go on.
    DependencyAvailable,
    /// An adapter that was available is not any more.
    DependencyUnavailable,
    /// The `publish_when` of an adapter has become true.
    PublishWhenMet,
    /// It is not reconciled, and the last event is long enough ago.
    NotReconciledGapPassed,
    /// It is reconciled; this is its turn to be looked at all the same.
    ResyncDue,
    /// There is nothing new about it, and its turn has not come.
    UpToDate,
    /// It would get an event, but the last one is too recent.
    SuppressedByGap,
    /// No adapter's `publish_when` is true.
    PublishWhenNotMet,
    /// Its event is on the way to the broker.
    AwaitingConfirmation,
    /// The broker did not take its event; it is tried again.
    AwaitingBroker,
    /// It is another shard's.
    OtherShard,
}

impl Reason {
    /// Every reason, in the order of the reference page.
    pub const ALL: &'static [Self] = &[
        Self::New,
        Self::GenerationChanged,
        Self::DeletionRequested,
        Self::DependencyAvailable,
        Self::DependencyUnavailable,
        Self::PublishWhenMet,
        Self::NotReconciledGapPassed,
        Self::ResyncDue,
        Self::UpToDate,
        Self::SuppressedByGap,
        Self::PublishWhenNotMet,
        Self::AwaitingConfirmation,
        Self::AwaitingBroker,
        Self::OtherShard,
    ];

    /// The reason as logs and metrics write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "New",
            Self::GenerationChanged => "GenerationChanged",
            Self::DeletionRequested => "DeletionRequested",
            Self::DependencyAvailable => "DependencyAvailable",
            Self::DependencyUnavailable => "DependencyUnavailable",
            Self::PublishWhenMet => "PublishWhenMet",
            Self::NotReconciledGapPassed => "NotReconciledGapPassed",
            Self::ResyncDue => "ResyncDue",
            Self::UpToDate => "UpToDate",
            Self::SuppressedByGap => "SuppressedByGap",
            Self::PublishWhenNotMet => "PublishWhenNotMet",
            Self::AwaitingConfirmation => "AwaitingConfirmation",
            Self::AwaitingBroker => "AwaitingBroker",
            Self::OtherShard => "OtherShard",
        }
    }

    /// What it means, for the reference page.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::New => "It was not known before, and it is not reconciled.",
            Self::GenerationChanged => "What is wanted has changed.",
            Self::DeletionRequested => "Its deletion was asked for.",
            Self::DependencyAvailable => "An adapter has become available at this generation; others may wait for it.",
            Self::DependencyUnavailable => "An adapter that was available is not any more.",
            Self::PublishWhenMet => "An adapter's `publish_when` has become true.",
            Self::NotReconciledGapPassed => "It is not reconciled, and the last event is long enough ago.",
            Self::ResyncDue => "It is reconciled; this is its turn to be looked at all the same.",
            Self::UpToDate => "There is nothing new about it, and its turn has not come.",
            Self::SuppressedByGap => "It would get an event, but the last one is too recent.",
            Self::PublishWhenNotMet => "No adapter's `publish_when` is true.",
            Self::AwaitingConfirmation => "Its event is on the way to the broker.",
            Self::AwaitingBroker => "The broker did not take its event; it is tried again.",
            Self::OtherShard => "It is another shard's.",
        }
    }

    /// Whether it is a reason to publish.
    pub fn publishes(self) -> bool {
        matches!(
            self,
            Self::New
                | Self::GenerationChanged
                | Self::DeletionRequested
                | Self::DependencyAvailable
                | Self::DependencyUnavailable
                | Self::PublishWhenMet
                | Self::NotReconciledGapPassed
                | Self::ResyncDue
        )
    }

    /// Whether somebody has done something that adapters do not know of yet.
    pub fn is_news(self) -> bool {
        self.publishes() && !matches!(self, Self::NotReconciledGapPassed | Self::ResyncDue)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
