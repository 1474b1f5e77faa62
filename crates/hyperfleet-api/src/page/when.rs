//! Times as people read them: how long ago, and exactly when.

use jiff::Timestamp;

use super::html::{Element, el};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Clocks differ: what is ahead of ours by less is now.
const AHEAD: i64 = -MINUTE;

/// How long ago that was; exactly when, for who points at it.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> Element {
    time(at).attr("title", &stamp(at)).text(&words(at, now))
}

/// Exactly when that was.
pub(super) fn exactly(at: Timestamp) -> Element {
    time(at).text(&stamp(at))
}

/// Such as `2026-06-01 12:00:00 UTC`.
pub(super) fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn time(at: Timestamp) -> Element {
    el("time").attr("datetime", &at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Such as `3 h ago`.
fn words(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(at.as_second());
    match seconds {
        AHEAD..1 => "now".to_owned(),
        ..1 => stamp(at),
        1..MINUTE => format!("{seconds} s ago"),
        MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        HOUR..DAY => format!("{} h ago", seconds / HOUR),
        _ => format!("{} d ago", seconds / DAY),
    }
}
