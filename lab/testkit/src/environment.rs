//! The environment of the tests: variables that name real parts.

use daemon::environment::{Environment as _, ProcessEnvironment};

/// A variable of this process's environment.
pub fn variable(name: &str) -> Option<String> {
    ProcessEnvironment.text(name).unwrap()
}

/// Prints that a real part cannot be had on this machine.
pub fn absent<T>(part: &str, why: &str) -> Option<T> {
    eprintln!("skipped: {part} cannot be had: {why}");
    None
}

/// Prints that a real part is missing; with `CI=true` that is a failure.
pub fn missing<T>(part: &str) -> Option<T> {
    assert_ne!(variable("CI").as_deref(), Some("true"), "{part}");
    eprintln!("{part}");
    None
}
