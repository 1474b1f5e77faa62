//! The rules for the credentials of a registry, and their check.

use std::time::Duration;

use serde::Deserialize;

use super::checks::Checks;
use crate::credential::{Approval, NodesEvidence, Policy, Retire};

/// The least time in which a lost request counts as carried out: beyond the lease of a claimed row.
const LEAST_LATE: Duration = Duration::from_mins(5);

/// The rules for the credentials of a registry. Durations are written such as `15m` or `24h`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// The condition for the retirement of a quiet credential: `manual` (default) or `when_adopted`.
    pub retire: Option<RetireSetting>,
    /// The source of the evidence about nodes: `required` (default) or `renounced`.
    pub nodes: Option<NodesSetting>,
    /// The condition for a revocation at once: `none` (default) or `another_person`.
    pub revocation: Option<ApprovalSetting>,
    /// See [`Policy::quiet`].
    pub quiet: Option<String>,
    /// See [`Policy::deadline`].
    pub deadline: Option<String>,
    /// See [`Policy::interval`].
    pub interval: Option<String>,
    /// See [`Policy::fresh`].
    pub fresh: Option<String>,
    /// See [`Policy::resync`].
    pub resync: Option<String>,
    /// See [`Policy::late`].
    pub late: Option<String>,
}

/// See [`Retire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetireSetting {
    /// A person's approval.
    Manual,
    /// None beside the evidence.
    WhenAdopted,
}

/// See [`NodesEvidence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodesSetting {
    /// Nodes are reported, or attested.
    Required,
    /// No system of the fleet reports nodes.
    Renounced,
}

/// See [`Approval`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSetting {
    /// One person orders it.
    None,
    /// Another person orders it as well.
    AnotherPerson,
}

// === impl PolicySettings ===

impl PolicySettings {
    pub(super) fn check(&self, checks: &mut Checks<'_>) -> Policy {
        let default = Policy::default();
        let policy = Policy {
            retire: match self.retire {
                Some(RetireSetting::WhenAdopted) => Retire::WhenAdopted,
                Some(RetireSetting::Manual) | None => Retire::Manual,
            },
            nodes: match self.nodes {
                Some(NodesSetting::Renounced) => NodesEvidence::Renounced,
                Some(NodesSetting::Required) | None => NodesEvidence::Required,
            },
            revocation: match self.revocation {
                Some(ApprovalSetting::AnotherPerson) => Approval::AnotherPerson,
                Some(ApprovalSetting::None) | None => Approval::None,
            },
            quiet: checks.duration("policy.quiet", self.quiet.as_ref(), default.quiet),
            deadline: checks.duration("policy.deadline", self.deadline.as_ref(), default.deadline),
            interval: checks.duration("policy.interval", self.interval.as_ref(), default.interval),
            fresh: checks.duration("policy.fresh", self.fresh.as_ref(), default.fresh),
            resync: checks.duration("policy.resync", self.resync.as_ref(), default.resync),
            late: checks.duration("policy.late", self.late.as_ref(), default.late),
            ..default
        };
        if policy.late < LEAST_LATE {
            checks.fault(
                "policy.late",
                "must be 5m or more: a request that was lost may still be carried out until then",
            );
        }
        policy
    }
}
