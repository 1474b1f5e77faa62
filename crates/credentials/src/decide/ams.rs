//! The phases in which a cluster leaves AMS, and the conditions of each.

use std::time::Duration;

use jiff::Timestamp;

use super::facts::later;
use crate::state::State;

/// The longest time between two comparisons that belong together: beyond it there may have been anything meanwhile.
pub const LONGEST_GAP: Duration = Duration::from_hours(48);

fleet_model::reasons! {
    /// The phase of a cluster on its way from AMS.
    pub enum Phase {
        /// Its pull secret was read; it was not without a difference for long enough.
        Imported,
        /// Its pull secret was as expected for the demanded time.
        Compared,
        /// It has credentials of our own beside those of AMS; its pull secret is unchanged.
        Issued,
        /// Its pull secret names our credentials; it does not use them for certain.
        Moving,
        /// It uses our credentials; those of AMS still live.
        Moved,
        /// The credentials of AMS that it had are deleted.
        Retired,
    }
}

fleet_model::reasons! {
    /// A difference between a pull secret and the one that AMS's credentials make, which nothing explains.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub enum Difference {
        /// The entry is neither of AMS nor of this service, and would be replaced: find out who uses it.
        Foreign,
        /// AMS has another token for this user: the cluster has an old one.
        OtherToken,
        /// The entry does not exist, and would be added.
        Missing,
        /// Several entries are for this host, and one would be left.
        SeveralSpellings,
        /// The entry would change, although it is of no registry that is configured.
        Collateral,
        /// The pull secret is by reference, hidden from the service, or unreadable.
        NotReadable,
    }
}

fleet_model::reasons! {
    /// The reason for which a credential of AMS is not retired.
    pub enum Obstacle {
        /// It is not proven that the cluster uses the credential of this service: see `pull-secret credentials list --cluster`.
        NotMoved,
        /// Another cluster has the same credential of AMS, and is not moved.
        Shared,
        /// The pull secret still has it, at a host that stays AMS's (`ams.keep_hosts`) or at one that was not moved.
        StillNamed,
        /// It was used lately.
        StillUsed,
        /// It was not quiet for the quiet time yet.
        AwaitingQuiet,
        /// The registry does not show who uses it: a person must attest the silence (`--attest-quiet`).
        NoUsageLog,
        /// AMS has another user or token for it than was imported: import again.
        Changed,
    }
}

/// The facts about an entry of a pull secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct EntryFacts {
    /// True if a configured registry takes the host over.
    pub is_taken: bool,
    /// Number of entries that mean the host.
    pub spellings: usize,
    /// True if the entry is of AMS or of this service.
    pub is_known: bool,
    /// True if AMS has the user with another token.
    pub has_other_token: bool,
    /// True if the composed pull secret has another entry.
    pub changes: bool,
}

/// The facts about one registry of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFacts {
    /// The state of this service's newest credential; `None` if there is none.
    pub state: Option<State>,
    /// True if it is kept from publication.
    pub is_held: bool,
}

/// The facts about a cluster.
#[derive(Clone, Copy, Debug)]
pub struct PhaseFacts<'a> {
    /// The registries that take over.
    pub own: &'a [OwnFacts],
    /// The beginning of the time without a difference.
    pub clean_since: Option<Timestamp>,
    /// The time of the last comparison.
    pub compared_at: Timestamp,
    /// The demanded time without a difference.
    pub demanded: Duration,
    /// True if every credential of AMS at the hosts that are taken over is deleted.
    pub is_retired: bool,
    /// The time.
    pub now: Timestamp,
}

/// The facts about the retirement of a credential of AMS.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a part of the proof")]
pub struct RetireFacts {
    /// True if the cluster uses the credentials of this service.
    pub is_moved: bool,
    /// True if every other cluster that has it uses those of this service, or does not exist any more.
    pub are_others_moved: bool,
    /// True if a pull secret that was read just now has it.
    pub is_named: bool,
    /// True if AMS has it as it was imported.
    pub is_as_imported: bool,
    /// True if a person attests that nothing uses it.
    pub is_attested: bool,
    /// The last pull, if the registry has a usage log; `None` if it has none.
    pub usage: Option<SilenceFacts>,
    /// The time at which the last cluster was moved.
    pub moved: Option<Timestamp>,
    /// The demanded time without a pull.
    pub quiet: Duration,
    /// The time.
    pub now: Timestamp,
}

/// The use of an account by the usage log of its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SilenceFacts {
    /// The last pull in the time that was asked for.
    pub last_pull: Option<Timestamp>,
    /// False if there is more than could be read.
    pub is_complete: bool,
}

/// Returns the difference at an entry that nothing explains.
pub fn difference(facts: &EntryFacts) -> Option<Difference> {
    let EntryFacts { is_taken, spellings, is_known, has_other_token, changes } = *facts;
    match (is_taken, spellings) {
        _ if has_other_token => Some(Difference::OtherToken),
        (true, 0) => Some(Difference::Missing),
        (true, 2..) => Some(Difference::SeveralSpellings),
        (true, _) if !is_known => Some(Difference::Foreign),
        (false, _) if changes => Some(Difference::Collateral),
        _ => None,
    }
}

/// Returns the beginning of the time without a difference, after another comparison.
pub fn clean_since(
    before: Option<Timestamp>,
    compared_at: Option<Timestamp>,
    clean: bool,
    now: Timestamp,
) -> Option<Timestamp> {
    let goes_on = compared_at.is_some_and(|compared_at| compared_at <= now && later(compared_at, LONGEST_GAP) >= now);
    clean.then(|| before.filter(|_| goes_on).unwrap_or(now))
}

/// Returns the phase of a cluster.
pub fn phase(facts: &PhaseFacts<'_>) -> Phase {
    let PhaseFacts { own, clean_since, compared_at, demanded, is_retired, now } = *facts;
    let step = |own: &OwnFacts| match own.state {
        Some(State::Adopted) => Phase::Moved,
        Some(State::Probed) if own.is_held => Phase::Issued,
        Some(State::Probed | State::Published) => Phase::Moving,
        _ => Phase::Imported,
    };
    let is_fresh = later(compared_at, LONGEST_GAP) >= now;
    let is_compared = is_fresh && clean_since.is_some_and(|since| later(since, demanded) <= compared_at);
    match own.iter().map(step).min() {
        Some(Phase::Moved) if is_retired => Phase::Retired,
        Some(phase @ (Phase::Issued | Phase::Moving | Phase::Moved)) => phase,
        _ if is_compared => Phase::Compared,
        _ => Phase::Imported,
    }
}

/// Returns the reason for which a credential of AMS must not be deleted.
pub fn obstacle(facts: &RetireFacts) -> Option<Obstacle> {
    if !facts.is_moved {
        return Some(Obstacle::NotMoved);
    }
    if !facts.are_others_moved {
        return Some(Obstacle::Shared);
    }
    if facts.is_named {
        return Some(Obstacle::StillNamed);
    }
    if !facts.is_as_imported {
        return Some(Obstacle::Changed);
    }
    if facts.is_attested {
        return None;
    }
    let Some(SilenceFacts { last_pull, is_complete }) = facts.usage else { return Some(Obstacle::NoUsageLog) };
    let after = facts.moved.max(last_pull).unwrap_or(facts.now);
    if later(after, facts.quiet) > facts.now {
        let is_used = last_pull.is_some_and(|pull| facts.moved.is_none_or(|moved| pull > moved));
        return Some(if is_used { Obstacle::StillUsed } else { Obstacle::AwaitingQuiet });
    }
    (!is_complete && last_pull.is_none()).then_some(Obstacle::NoUsageLog)
}
