//! The closed vocabulary: what conditions, Events, logs and metrics say in one word.

use std::fmt;

/// Why a condition is as it is, or what an Event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Every additional Secret is valid.
    Valid,
    /// Valid, but not every reader on a node can use all of it.
    ValidWithWarnings,
    /// Bad entries were left out, the good ones are used.
    EntriesLeftOut,
    /// An additional Secret is no valid document; its last good entries are used.
    InvalidSecret,
    /// The merged document would be larger than a Secret may be.
    TooLarge,
    /// There is no additional Secret.
    NoAdditional,
    /// The merged Secret is up to date.
    Merged,
    /// No additional Secret has, or ever had, an entry that can be used.
    NothingToMerge,
    /// The original pull secret is not there or has no content.
    OriginalMissing,
    /// The original pull secret is no credential document.
    OriginalInvalid,
    /// Registries are being asked about new credentials, which wait for that.
    AskingRegistries,
    /// The registry takes the credential.
    CredentialAccepted,
    /// The registry refuses the credential.
    CredentialRefused,
    /// The registry has not said whether it takes the credential.
    RegistryUnreachable,
    /// Every node has the content.
    RolledOut,
    /// Nodes are being brought to the content.
    RollingOut,
    /// There is nothing to bring to nodes.
    NotDeployed,
    /// Nodes are being brought back to the original, before everything is removed.
    Reverting,
    /// All is well.
    AsExpected,
    /// Nodes do not come to the content.
    NodesNotInSync,
    /// An object of our name is somebody else's.
    ForeignObject,
    /// Some nodes were not brought back to the original in time; everything was removed all the same.
    RevertIncomplete,
    /// The server refuses or does not answer.
    ServerRefuses,
    /// Everything was removed.
    CleanedUp,
}

const CREDENTIAL_REFUSED: &str = "the registry refuses the credential; with `--probe-credentials block` it is held back, and \
                                  what was good before stays: correct it";
const REGISTRY_UNREACHABLE: &str = "the registry has not said whether it takes the credential, which is rolled out all the same; \
                                    it is asked again";

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 24] = [
        Self::Valid,
        Self::ValidWithWarnings,
        Self::EntriesLeftOut,
        Self::InvalidSecret,
        Self::TooLarge,
        Self::NoAdditional,
        Self::Merged,
        Self::NothingToMerge,
        Self::OriginalMissing,
        Self::OriginalInvalid,
        Self::AskingRegistries,
        Self::CredentialAccepted,
        Self::CredentialRefused,
        Self::RegistryUnreachable,
        Self::RolledOut,
        Self::RollingOut,
        Self::NotDeployed,
        Self::Reverting,
        Self::AsExpected,
        Self::NodesNotInSync,
        Self::ForeignObject,
        Self::RevertIncomplete,
        Self::ServerRefuses,
        Self::CleanedUp,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        self.words().0
    }

    /// What it means and what to do about it, for the reference page.
    pub fn meaning(self) -> &'static str {
        self.words().1
    }

    /// Whether somebody should look.
    pub fn is_warning(self) -> bool {
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
                | Self::NodesNotInSync
                | Self::ForeignObject
                | Self::RevertIncomplete
                | Self::ServerRefuses
        )
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Valid => ("Valid", "every additional Secret is valid"),
            Self::ValidWithWarnings => {
                ("ValidWithWarnings", "valid, but not every reader on a node can use all of it; the message says what")
            }
            Self::EntriesLeftOut => {
                ("EntriesLeftOut", "bad entries were left out (`--invalid-entries skip`), the good ones are used")
            }
            Self::InvalidSecret => (
                "InvalidSecret",
                "an additional Secret is refused; its last good entries stay, and the original is followed: correct it",
            ),
            Self::TooLarge => {
                ("TooLarge", "merged, it would not fit into a Secret; the last good entries stay: shorten it")
            }
            Self::NoAdditional => ("NoAdditional", "there is no additional Secret"),
            Self::Merged => {
                ("Merged", "`global-pull-secret` is up to date; the message counts registries and conflicts")
            }
            Self::NothingToMerge => {
                ("NothingToMerge", "no additional Secret has, or ever had, a usable entry, so nothing is deployed")
            }
            Self::OriginalMissing => (
                "OriginalMissing",
                "the original pull secret is missing in the hosted control plane's namespace or lacks its key; what is \
                 deployed stays",
            ),
            Self::OriginalInvalid => {
                ("OriginalInvalid", "the original pull secret is no credential document; what is deployed stays")
            }
            Self::AskingRegistries => {
                ("AskingRegistries", "registries are being asked about new credentials, which wait for that")
            }
            Self::CredentialAccepted => ("CredentialAccepted", "the registry takes the credential"),
            Self::CredentialRefused => ("CredentialRefused", CREDENTIAL_REFUSED),
            Self::RegistryUnreachable => ("RegistryUnreachable", REGISTRY_UNREACHABLE),
            Self::RolledOut => ("RolledOut", "every node has the content"),
            Self::RollingOut => ("RollingOut", "nodes are being brought to the content; the message counts them"),
            Self::NotDeployed => ("NotDeployed", "there is nothing to bring to nodes"),
            Self::Reverting => {
                ("Reverting", "nodes are being brought back to the original, before everything is removed")
            }
            Self::AsExpected => ("AsExpected", "all is well"),
            Self::NodesNotInSync => (
                "NodesNotInSync",
                "nodes have not come to the content in `--node-deadline`; the message names them: look at their syncer's log",
            ),
            Self::ForeignObject => (
                "ForeignObject",
                "an object of our name is not ours and is left alone: remove it, or label it as ours to hand it over",
            ),
            Self::RevertIncomplete => (
                "RevertIncomplete",
                "nodes were not back at the original within `--cleanup-deadline`; everything was removed, and they may \
                 still hold the credentials: the message names them",
            ),
            Self::ServerRefuses => ("ServerRefuses", "an API server refuses what must be done, or does not answer"),
            Self::CleanedUp => ("CleanedUp", "the nodes are back at the original, and everything was removed"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
