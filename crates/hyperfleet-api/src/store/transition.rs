//! Transitions of conditions, as they are stored.

use jiff::Timestamp;
use serde::Serialize;

use super::database::Row;
use super::sql::Value;
use super::{StoreError, rows};
use crate::resource::Status;

/// A change of a condition's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Transition {
    /// The adapter that reported the condition; [`Transition::OWN`] for conditions of the API.
    pub adapter: String,
    /// The condition's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The previous status; absent for a new condition.
    pub from: Option<Status>,
    /// The new status.
    pub to: Status,
    /// The reason of the new status.
    pub reason: Option<String>,
    /// The message of the new status.
    pub message: Option<String>,
    /// The generation that the condition observes.
    pub observed_generation: i64,
    /// The time of the transition, by the clock of the adapter that observed it.
    pub time: Timestamp,
}

// === impl Transition ===

impl Transition {
    /// The adapter's name for conditions of the API itself.
    pub const OWN: &str = "hyperfleet-api";

    pub(super) fn values(&self, id: &str, number: i64) -> Vec<Value> {
        vec![
            Value::Text(id.to_owned()),
            Value::Number(number),
            Value::Text(self.adapter.clone()),
            Value::Text(self.kind.clone()),
            rows::text(self.from.map(|status| status.as_str().to_owned())),
            Value::Text(self.to.as_str().to_owned()),
            rows::text(self.reason.clone()),
            rows::text(self.message.clone()),
            Value::Number(self.observed_generation),
            Value::Number(self.time.as_microsecond()),
        ]
    }

    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let status = |text: String| {
            Status::parse(&text).ok_or(StoreError::Damaged { location: "transitions.from_status or to_status" })
        };
        Ok(Self {
            adapter: row.text(0)?,
            kind: row.text(1)?,
            from: row.optional_text(2)?.map(status).transpose()?,
            to: status(row.text(3)?)?,
            reason: row.optional_text(4)?,
            message: row.optional_text(5)?,
            observed_generation: row.number(6)?,
            time: rows::time(row.number(7)?)?,
        })
    }
}
