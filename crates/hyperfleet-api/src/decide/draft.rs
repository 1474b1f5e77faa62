//! A condition before its history is known.

use fleet_model::{Condition, Generation, Status, UNKNOWN_TIME};
use jiff::Timestamp;

/// A condition without creation and transition times.
pub(super) struct ConditionDraft {
    pub(super) kind: String,
    pub(super) status: Status,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) observed_generation: Generation,
    pub(super) last_updated_time: Timestamp,
}

// === impl ConditionDraft ===

impl ConditionDraft {
    /// Returns the condition that succeeds the one of its type in `previous`; a new one is created at `created`.
    pub(super) fn after(self, previous: &[Condition], created: Timestamp) -> Condition {
        let previous = previous.iter().find(|condition| condition.kind == self.kind);
        let unchanged = previous.filter(|previous| previous.status == self.status);
        let same_reason = unchanged.filter(|previous| previous.reason == self.reason);
        Condition {
            created_time: previous.map_or(created, |previous| previous.created_time),
            last_transition_time: unchanged.map_or(self.last_updated_time, |previous| previous.last_transition_time),
            reason_since_time: same_reason.map_or(self.last_updated_time, since),
            last_updated_time: self.last_updated_time,
            observed_generation: self.observed_generation,
            kind: self.kind,
            status: self.status,
            reason: self.reason,
            message: self.message,
        }
    }
}

/// The time since which a stored condition has its reason; one of an older version has it since its last transition.
fn since(condition: &Condition) -> Timestamp {
    let is_known = condition.reason_since_time != UNKNOWN_TIME;
    if is_known { condition.reason_since_time } else { condition.last_transition_time }
}
