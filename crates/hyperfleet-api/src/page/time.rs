//! Times on the pages: relative to now, and exact.

use jiff::Timestamp;
use maud::{Markup, html};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Clock skew between machines up to which a time in the future is shown as `now`.
const AHEAD: i64 = -MINUTE;

/// The time relative to `now`, with the exact time as a tooltip.
pub(super) fn ago(at: Timestamp, now: Timestamp) -> Markup {
    html! { time datetime=(machine_readable(at)) title=(stamp(at)) { (relative(at, now)) } }
}

/// The exact time.
pub(super) fn exactly(at: Timestamp) -> Markup {
    html! { time datetime=(machine_readable(at)) { (stamp(at)) } }
}

/// Such as `2026-06-01 12:00:00 UTC`.
fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn machine_readable(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Such as `3 h ago`.
fn relative(at: Timestamp, now: Timestamp) -> String {
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
