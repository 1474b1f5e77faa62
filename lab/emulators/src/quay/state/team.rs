//! A team as it is stored.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A team.
#[derive(Debug, Default)]
pub(super) struct Team {
    pub(super) role: TeamRole,
    pub(super) description: String,
    /// Names of robots with the organization's.
    pub(super) members: BTreeSet<String>,
}

/// The right that a team's members have in the organization.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TeamRole {
    /// None but what repositories grant.
    #[default]
    Member,
    /// To create repositories.
    Creator,
    /// Everything.
    Admin,
}
