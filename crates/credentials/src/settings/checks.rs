//! The checks of an item of `registries[]`, and the faults that they find.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use daemon::settings::duration;

/// Collects the faults of one item of a list.
pub(super) struct Checks<'a> {
    index: usize,
    faults: &'a mut Vec<String>,
}

// === impl Checks ===

impl<'a> Checks<'a> {
    pub(super) fn new(index: usize, faults: &'a mut Vec<String>) -> Self {
        Self { index, faults }
    }

    pub(super) fn fault(&mut self, key: &str, fault: impl Display) {
        self.faults.push(format!("registries[{}].{key}: {fault}", self.index));
    }

    pub(super) fn parsed<T: FromStr<Err: Display>>(&mut self, key: &str, text: &str) -> Option<T> {
        text.trim().parse().map_err(|error| self.fault(key, error)).ok()
    }

    /// Reads a text that must be given.
    pub(super) fn required<T: FromStr<Err: Display>>(
        &mut self,
        key: &str,
        given: Option<&String>,
        meaning: &str,
    ) -> Option<T> {
        self.given(key, given, meaning).and_then(|text| self.parsed(key, text))
    }

    /// Returns a value that must be given.
    pub(super) fn given<'v, T>(&mut self, key: &str, given: Option<&'v T>, meaning: &str) -> Option<&'v T> {
        if given.is_none() {
            self.fault(key, format!("missing: {meaning}"));
        }
        given
    }

    /// Reads a duration; `given` is `None` where the default holds.
    pub(super) fn duration(&mut self, key: &str, given: Option<&String>, default: Duration) -> Duration {
        let Some(text) = given else { return default };
        let duration = duration::parse(text.trim()).filter(|duration| !duration.is_zero());
        if duration.is_none() {
            self.fault(key, duration::MUST);
        }
        duration.unwrap_or(default)
    }
}
