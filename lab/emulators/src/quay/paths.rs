//! The paths that settings of a registry name.

/// The path at which registries' clients get their tokens.
pub(crate) const AUTH_PATH: &str = "/v2/auth";

/// The path at which a registry reports its pulls. Quay has no such path.
pub(crate) const EVENTS_PATH: &str = "/emulator/events";
