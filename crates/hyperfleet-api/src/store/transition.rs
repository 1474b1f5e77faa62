//! Transitions of conditions as rows.

use database::{Row, Value};
use fleet_model::{Status, Transition};

use super::{StoreError, rows};

/// Returns the values of a transition's row.
pub(super) fn values(transition: &Transition, id: &str, number: i64) -> Vec<Value> {
    vec![
        Value::Text(id.to_owned()),
        Value::Number(number),
        Value::Text(transition.adapter.clone()),
        Value::Text(transition.kind.clone()),
        rows::text(transition.from.map(|status| status.as_str().to_owned())),
        Value::Text(transition.to.as_str().to_owned()),
        rows::text(transition.reason.clone()),
        rows::text(transition.message.clone()),
        Value::Number(transition.observed_generation.into()),
        Value::Number(transition.time.as_microsecond()),
    ]
}

/// Returns the transition of a row.
pub(super) fn read(row: &Row) -> Result<Transition, StoreError> {
    let status = |text: String| {
        Status::parse(&text).ok_or(StoreError::Damaged { location: "transitions.from_status or to_status" })
    };
    Ok(Transition {
        adapter: row.text(0)?,
        kind: row.text(1)?,
        from: row.optional_text(2)?.map(status).transpose()?,
        to: status(row.text(3)?)?,
        reason: row.optional_text(4)?,
        message: row.optional_text(5)?,
        observed_generation: rows::generation(row.number(6)?, "transitions.observed_generation")?,
        time: rows::time(row.number(7)?)?,
    })
}
