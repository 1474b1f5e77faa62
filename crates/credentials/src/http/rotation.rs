//! The rotations of a cluster's credentials, which follow from the rows and the events of the ledger.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use registry_account::name::CredentialId;

use crate::credential::{Credential, Record};
use crate::ledger::{ClusterCredential, Entry};
use crate::reason::Reason;
use crate::state::State;

fleet_model::reasons! {
    /// The reason of a rotation.
    pub(crate) enum RotationReason {
        /// It is time.
        Scheduled = "scheduled",
        /// A credential is known to others.
        Compromise = "compromise",
        /// Any other one.
        Manual = "manual",
    }
}

fleet_model::reasons! {
    /// The status of a rotation.
    pub(crate) enum RotationStatus {
        /// A new credential cannot be used yet.
        Pending = "pending",
        /// The cluster does not use all new credentials yet, or old ones are still good.
        InProgress = "in_progress",
        /// The cluster uses the new credentials, and the old ones are dead.
        Completed = "completed",
        /// A new credential is lost.
        Failed = "failed",
        /// The old credentials were put back, or the new ones are on their way out as well.
        Cancelled = "cancelled",
    }
}

/// The order of a rotation, as the remark of its events has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RotationOrder {
    /// The id of the rotation.
    pub(crate) id: CredentialId,
    /// The reason.
    pub(crate) reason: RotationReason,
    /// True if the old credentials are revoked at once.
    pub(crate) is_forced: bool,
}

/// A rotation of a cluster's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rotation {
    /// The order; a replacement that a command or a rotation of many clusters has begun has the id of its new credential.
    pub(crate) order: RotationOrder,
    /// The caller, person or program.
    pub(crate) actor: String,
    /// The beginning.
    pub(crate) created: Timestamp,
    /// The replacements, one for each registry.
    pub(crate) replacements: Vec<Replacement>,
}

/// A credential and the one that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) old: Credential,
    pub(crate) new: Credential,
}

/// The assignment of a credential to its cluster.
struct Assigned<'a> {
    new: &'a ClusterCredential,
    event: &'a Entry,
}

/// Returns the rotations of a cluster, newest first.
pub(crate) fn rotations(credentials: &[ClusterCredential], events: &[Entry]) -> Vec<Rotation> {
    let by_id: BTreeMap<CredentialId, &ClusterCredential> =
        credentials.iter().map(|found| (found.credential.id, found)).collect();
    let mut successors: BTreeMap<CredentialId, Vec<Assigned<'_>>> = BTreeMap::new();
    for found in credentials {
        let assigned = |event: &&Entry| event.credential == found.credential.id && event.action != "OrderReplacement";
        if let (Some(old), Some(event)) = (found.credential.replaces, events.iter().rfind(assigned)) {
            successors.entry(old).or_default().push(Assigned { new: found, event });
        }
    }
    let mut rotations: BTreeMap<(Timestamp, CredentialId), Rotation> = BTreeMap::new();
    for (old, mut news) in successors {
        let Some(old) = by_id.get(&old).map(|found| &found.credential) else { continue };
        news.sort_by_key(|assigned| (assigned.event.time, assigned.new.credential.id));
        let mut open: Option<Begun> = None;
        for Assigned { new, event } in news {
            let ordered = ordered(events, old.id, event);
            // One whose account was lost before it was used has another one in its place, by the same rotation.
            let begun = open.take().filter(|begun| ordered.is_none() && begun.may_go_on);
            let begun = begun.unwrap_or_else(|| Begun::by(ordered, new.credential.id, event));
            let rotation = rotations.entry((begun.created, begun.order.id)).or_insert_with(|| begun.rotation());
            rotation.replacements.retain(|replacement| replacement.old.id != old.id);
            rotation.replacements.push(Replacement { old: old.clone(), new: new.credential.clone() });
            let given_up = new.credential.record.given_up;
            let may_go_on = !new.has_place && given_up != Some(Reason::RolledBack);
            open = Some(Begun { may_go_on, ..begun });
        }
    }
    rotations.into_values().rev().collect()
}

/// The beginning of a rotation.
struct Begun {
    order: RotationOrder,
    actor: String,
    created: Timestamp,
    /// True if another credential may take the place of its new one.
    may_go_on: bool,
}

impl Begun {
    fn by(ordered: Option<RotationOrder>, new: CredentialId, event: &Entry) -> Self {
        let unknown = RotationOrder { id: new, reason: RotationReason::Manual, is_forced: false };
        let order = ordered.unwrap_or(unknown);
        Self { order, actor: event.actor.clone(), created: event.time, may_go_on: false }
    }

    fn rotation(&self) -> Rotation {
        Rotation { order: self.order, actor: self.actor.clone(), created: self.created, replacements: Vec::new() }
    }
}

/// Returns the order of this API by which a credential was assigned in place of another one.
fn ordered(events: &[Entry], old: CredentialId, assigned: &Entry) -> Option<RotationOrder> {
    let is_order = |event: &&Entry| {
        event.credential == old
            && event.action == "OrderReplacement"
            && event.time == assigned.time
            && event.actor == assigned.actor
    };
    events.iter().rfind(is_order)?.remark.as_deref().and_then(RotationOrder::parse)
}

// === impl RotationOrder ===

impl RotationOrder {
    /// Reads the remark of an event; `None` if it is of another kind of order.
    fn parse(remark: &str) -> Option<Self> {
        let (id, rest) = remark.strip_prefix("rotation ")?.split_once(": ")?;
        let (reason, is_forced) = match rest.strip_suffix(", revoked at once") {
            Some(reason) => (reason, true),
            None => (rest, false),
        };
        Some(Self { id: id.parse().ok()?, reason: RotationReason::parse(reason)?, is_forced })
    }
}

impl fmt::Display for RotationOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forced = if self.is_forced { ", revoked at once" } else { "" };
        write!(formatter, "rotation {}: {}{forced}", self.id, self.reason)
    }
}

// === impl Rotation ===

impl Rotation {
    /// Returns the status: the worst of its replacements.
    pub(crate) fn status(&self) -> RotationStatus {
        const WORST_FIRST: [RotationStatus; 4] =
            [RotationStatus::Failed, RotationStatus::Pending, RotationStatus::InProgress, RotationStatus::Cancelled];
        let has = |status: &RotationStatus| self.replacements.iter().any(|each| each.status() == *status);
        WORST_FIRST.into_iter().find(has).unwrap_or(RotationStatus::Completed)
    }

    /// Returns the phase, a word that says more than the status while it is on its way.
    pub(crate) fn phase(&self) -> &'static str {
        let all = |holds: fn(&Replacement) -> bool| self.replacements.iter().all(holds);
        match self.status() {
            RotationStatus::Pending => "creating_credentials",
            RotationStatus::InProgress if all(|each| each.new.record.adopted.is_some()) => "retiring_old_credentials",
            RotationStatus::InProgress if all(|each| each.old.state.is_over()) => "awaiting_adoption",
            RotationStatus::InProgress => "dual_credential_period",
            status => status.as_str(),
        }
    }

    /// Returns true if every new credential was made and tried.
    pub(crate) fn has_created(&self) -> bool {
        let is_tried = |record: &Record| record.probed.or(record.adopted).is_some();
        self.replacements.iter().all(|each| is_tried(&each.new.record))
    }

    /// Returns true if the registries refuse every old credential.
    pub(crate) fn has_revoked(&self) -> bool {
        self.replacements.iter().all(|each| each.old.state.is_over())
    }

    /// Returns the time at which it was completed.
    pub(crate) fn completed(&self) -> Option<Timestamp> {
        if self.status() != RotationStatus::Completed {
            return None;
        }
        let times = self.replacements.iter().flat_map(|each| [each.new.record.adopted, each.old.record.dead]);
        times.flatten().max()
    }
}

// === impl Replacement ===

impl Replacement {
    fn status(&self) -> RotationStatus {
        let Self { old, new } = self;
        let record = &new.record;
        let is_over = new.state == State::Retiring || new.state.is_over();
        match record.adopted {
            _ if record.given_up == Some(Reason::RolledBack) => RotationStatus::Cancelled,
            Some(_) if old.state.is_over() => RotationStatus::Completed,
            None if record.order.is_some() => RotationStatus::Cancelled,
            None if is_over => RotationStatus::Failed,
            None if new.state < State::Pooled => RotationStatus::Pending,
            _ => RotationStatus::InProgress,
        }
    }
}

#[cfg(test)]
mod tests;
