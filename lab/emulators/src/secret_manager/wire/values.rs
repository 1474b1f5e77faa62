//! Values that both wires share: instants, durations, and the states of versions.

use prost::Enumeration;
use prost_types::{Duration, Timestamp};

/// The state of a version, on which access to its content depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Enumeration)]
pub(crate) enum VersionState {
    Unspecified = 0,
    Enabled = 1,
    Disabled = 2,
    Destroyed = 3,
}

impl VersionState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "STATE_UNSPECIFIED",
            Self::Enabled => "ENABLED",
            Self::Disabled => "DISABLED",
            Self::Destroyed => "DESTROYED",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Unspecified, Self::Enabled, Self::Disabled, Self::Destroyed]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// The wire's form of an instant.
pub(crate) fn timestamp(instant: jiff::Timestamp) -> Timestamp {
    Timestamp { seconds: instant.as_second(), nanos: instant.subsec_nanosecond() }.normalized()
}

/// The instant that the wire means, if it means one.
pub(crate) fn instant(timestamp: Option<&Timestamp>) -> Option<jiff::Timestamp> {
    let timestamp = timestamp?;
    jiff::Timestamp::new(timestamp.seconds, timestamp.nanos).ok()
}

/// A duration such as `3600s` or `1.500s`.
pub(crate) fn duration_text(duration: &Duration) -> String {
    let nanos = duration.nanos;
    match nanos {
        0 => format!("{}s", duration.seconds),
        _ if nanos % 1_000_000 == 0 => format!("{}.{:03}s", duration.seconds, nanos / 1_000_000),
        _ if nanos % 1_000 == 0 => format!("{}.{:06}s", duration.seconds, nanos / 1_000),
        _ => format!("{}.{nanos:09}s", duration.seconds),
    }
}
