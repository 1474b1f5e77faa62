//! The policy of decisions, which the settings are made into.

use std::time::Duration;

use docker_config::merge::{self, InvalidEntries};

use crate::finding::Rules;
use crate::objects::Syncer;

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
    /// Maximum time for a node to apply a change before it is reported as degraded.
    pub node_deadline: Duration,
    /// Maximum time for the nodes to revert to the original before everything is removed all the same.
    pub cleanup_deadline: Duration,
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
