//! Parts that many documents have.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use serde_json::{Value, json};

/// A time as Quay's answers have it: RFC 2822, with `-0000`.
pub(super) fn date(time: Timestamp) -> Value {
    DateTimePrinter::new().timestamp_to_string(&time).map_or(Value::Null, Value::from)
}

/// The picture of a user or team.
pub(super) fn avatar(name: &str, kind: &str) -> Value {
    json!({"name": name, "hash": format!("{:016x}", crate::folder::fnv(name)), "color": "#969696", "kind": kind})
}
