//! Conditions: what the API concludes about a resource, and what an adapter or a controller reports.

use std::fmt;

use jiff::Timestamp;
use serde::ser::{SerializeSeq as _, SerializeStruct as _};
use serde::{Deserialize, Serialize, Serializer};

use crate::{Generation, names};

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It cannot be determined. Reading also maps every unknown word to this.
    #[serde(other)]
    Unknown,
}

/// A conclusion of the API about a resource, such as `Reconciled`.
///
/// Reading is lenient, as other servers may leave members out: a missing generation is [`Generation::NONE`], a missing
/// time is [`UNKNOWN_TIME`]. Such members are not written either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Type of the condition, such as `Reconciled`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status of the condition.
    pub status: Status,
    /// Reason in one CamelCase word, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Explanation for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Generation of the resource that the condition describes.
    #[serde(default, alias = "observedGeneration", skip_serializing_if = "Generation::is_none")]
    pub observed_generation: Generation,
    /// Time at which a condition of this type first appeared.
    #[serde(default = "unknown_time", alias = "createdTime", skip_serializing_if = "is_unknown")]
    pub created_time: Timestamp,
    /// Time at which the evidence for the condition was last observed.
    #[serde(default = "unknown_time", alias = "lastUpdatedTime", skip_serializing_if = "is_unknown")]
    pub last_updated_time: Timestamp,
    /// Time at which the status last changed.
    #[serde(default = "unknown_time", alias = "lastTransitionTime", skip_serializing_if = "is_unknown")]
    pub last_transition_time: Timestamp,
    /// Time since which status and reason are what they are. Only this project's API knows it.
    #[serde(default = "unknown_time", alias = "reasonSinceTime", skip_serializing_if = "is_unknown")]
    pub reason_since_time: Timestamp,
}

/// A condition that an adapter or a controller reports, such as `Available`. Its generation is that of its report.
///
/// Members are written in `snake_case`, as HyperFleet's API does; [`CamelCase`] writes them as Kubernetes does. Both forms
/// are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedCondition {
    /// Type of the condition, such as `Available`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status of the condition.
    pub status: Status,
    /// Reason in one CamelCase word, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Explanation for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Time at which the status last changed, by the reporter's clock; [`UNKNOWN_TIME`] where it was left out.
    #[serde(default = "unknown_time", alias = "lastTransitionTime", skip_serializing_if = "is_unknown")]
    pub last_transition_time: Timestamp,
}

/// Stands for a time that the sender left out: the Unix epoch, which no condition and no report can have.
pub const UNKNOWN_TIME: Timestamp = Timestamp::UNIX_EPOCH;

/// Writes reported conditions with camelCase members, as Kubernetes does.
#[derive(Clone, Copy, Debug)]
pub struct CamelCase<'a, T: ?Sized>(pub &'a T);

// === impl Status ===

impl Status {
    /// Returns the status that is written as `text`.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::True, Self::False, Self::Unknown].into_iter().find(|status| status.as_str() == text)
    }

    /// Returns the status as conditions write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl From<Option<bool>> for Status {
    /// `None` is [`Status::Unknown`].
    fn from(holds: Option<bool>) -> Self {
        holds.map_or(Self::Unknown, Self::from)
    }
}

// === impl CamelCase ===

impl Serialize for CamelCase<'_, ReportedCondition> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ReportedCondition { kind, status, reason, message, last_transition_time } = self.0;
        let mut members = serializer.serialize_struct("Condition", 5)?;
        members.serialize_field("type", kind)?;
        members.serialize_field("status", status)?;
        match reason {
            Some(reason) => members.serialize_field("reason", reason)?,
            None => members.skip_field("reason")?,
        }
        match message {
            Some(message) => members.serialize_field("message", message)?,
            None => members.skip_field("message")?,
        }
        if is_unknown(last_transition_time) {
            members.skip_field("lastTransitionTime")?;
        } else {
            members.serialize_field("lastTransitionTime", last_transition_time)?;
        }
        members.end()
    }
}

impl Serialize for CamelCase<'_, [ReportedCondition]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = serializer.serialize_seq(Some(self.0.len()))?;
        for condition in self.0 {
            items.serialize_element(&CamelCase(condition))?;
        }
        items.end()
    }
}

/// Returns the type of an adapter's own condition: `my-adapter` becomes `MyAdapterSuccessful`.
pub fn condition_type(adapter: &str) -> String {
    let capitalised = adapter.split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    });
    capitalised.chain([names::condition::SUCCESSFUL_SUFFIX.to_owned()]).collect()
}

/// Returns the time, or `None` for [`UNKNOWN_TIME`].
pub fn known_time(time: Timestamp) -> Option<Timestamp> {
    (time != UNKNOWN_TIME).then_some(time)
}

pub(crate) fn unknown_time() -> Timestamp {
    UNKNOWN_TIME
}

pub(crate) fn is_unknown(time: &Timestamp) -> bool {
    *time == UNKNOWN_TIME
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TIME: &str = "2026-01-01T00:00:00Z";

    fn available() -> ReportedCondition {
        ReportedCondition {
            kind: "Available".to_owned(),
            status: Status::True,
            reason: Some("SecretStored".to_owned()),
            message: None,
            last_transition_time: TIME.parse().unwrap(),
        }
    }

    #[test]
    fn a_complete_condition_survives_reading_and_writing() {
        let json = json!({
            "type": "Reconciled", "status": "True", "reason": "All", "message": "…", "observed_generation": 2,
            "created_time": TIME, "last_updated_time": TIME, "last_transition_time": TIME,
        });
        let condition: Condition = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(condition.observed_generation, Generation::from(2));
        assert_eq!(serde_json::to_value(&condition).unwrap(), json);
    }

    #[test]
    fn absent_members_are_read_and_stay_absent() {
        let json = json!({"type": "Reconciled", "status": "False"});
        let condition: Condition = serde_json::from_value(json.clone()).unwrap();
        assert_eq!((condition.observed_generation, condition.created_time), (Generation::NONE, UNKNOWN_TIME));
        assert_eq!(serde_json::to_value(&condition).unwrap(), json);
    }

    #[test]
    fn an_unknown_status_is_unknown() {
        let read = |status: &str| {
            let json = json!({"type": "Available", "status": status});
            serde_json::from_value::<ReportedCondition>(json).unwrap().status
        };
        assert_eq!(
            ["True", "False", "Unknown", "Perhaps"].map(read).map(Status::as_str),
            ["True", "False", "Unknown", "Unknown"]
        );
        assert_eq!(Status::parse("Perhaps"), None);
    }

    #[test]
    fn both_spellings_are_written_and_read() {
        let snake =
            json!({"type": "Available", "status": "True", "reason": "SecretStored", "last_transition_time": TIME});
        let camel =
            json!({"type": "Available", "status": "True", "reason": "SecretStored", "lastTransitionTime": TIME});
        assert_eq!(serde_json::to_value(available()).unwrap(), snake);
        assert_eq!(serde_json::to_value(CamelCase(&available())).unwrap(), camel);
        assert_eq!(serde_json::to_value(CamelCase(&[available()][..])).unwrap(), Value::Array(vec![camel.clone()]));
        assert_eq!(
            [snake, camel].map(|json| serde_json::from_value(json).ok()),
            [Some(available()), Some(available())]
        );
    }
}
