//! The policy of decisions, which the settings are made into.

use std::time::Duration;

use docker_config::merge::{self, ConflictPolicy, InvalidEntries, Prefix};
use serde::{Deserialize, Serialize};

use crate::finding::Rules;
use crate::objects::Syncer;

/// The conflict policies, as settings name them.
pub const ADDITIONAL_WINS: &str = "additional-wins";
/// See [`ADDITIONAL_WINS`].
pub const ORIGINAL_WINS: &str = "original-wins";
/// The treatments of an invalid entry, as settings name them.
pub const REJECT_ALL: &str = "reject-all";
/// See [`REJECT_ALL`].
pub const SKIP: &str = "skip";

/// The settings that decisions depend on.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The conflict policy, and the protected prefixes.
    pub merge: merge::Policy,
    /// The handling of an additional Secret with an invalid entry.
    pub invalid: InvalidEntries,
    /// The rules of probing registries about new credentials.
    pub probe: Rules,
    /// The roll-out mode.
    pub rollout: Rollout,
    /// The options of the syncer's DaemonSet.
    pub syncer: Syncer,
    /// True if images of running Pods that lose their keys are reported.
    pub running_images: bool,
    /// Maximum time for a node to apply a change before it is reported as degraded.
    pub node_deadline: Duration,
    /// Maximum time for the nodes to revert to the original before everything is removed all the same.
    pub cleanup_deadline: Duration,
}

/// The part of a policy that decides which key an image gets, as the status has it for `plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedPolicy {
    /// `additional-wins` or `original-wins`.
    pub conflict_policy: String,
    /// The protected prefixes.
    pub protected_prefixes: Vec<String>,
    /// `reject-all` or `skip`.
    pub invalid_entries: String,
}

/// The roll-out mode of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rollout {
    /// The syncers watch the Secret: all nodes at once.
    #[default]
    Immediate,
    /// A Pod is for one revision: the DaemonSet replaces them step by step.
    Rolling,
}

// === impl ReportedPolicy ===

impl From<&Policy> for ReportedPolicy {
    fn from(policy: &Policy) -> Self {
        let conflict = match policy.merge.conflict {
            ConflictPolicy::AdditionalWins => ADDITIONAL_WINS,
            ConflictPolicy::OriginalWins => ORIGINAL_WINS,
        };
        let invalid = match policy.invalid {
            InvalidEntries::RejectAll => REJECT_ALL,
            InvalidEntries::Skip => SKIP,
        };
        Self {
            conflict_policy: conflict.to_owned(),
            protected_prefixes: policy.merge.protected.iter().map(Prefix::to_string).collect(),
            invalid_entries: invalid.to_owned(),
        }
    }
}
