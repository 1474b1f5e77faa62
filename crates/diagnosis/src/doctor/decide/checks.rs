//! Collects the lines of a group.

use jiff::SignedDuration;

use crate::doctor::{Group, Line, State};

/// Remaining time from which a certificate is about to expire, as in charts/pull-secret/monitoring/alerts.yaml.
pub(super) const CERTIFICATE_EXPIRING: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The lines of a group.
pub(super) struct Checks {
    group: Group,
    pub(super) lines: Vec<Line>,
}

impl Checks {
    pub(super) fn of(group: Group) -> Self {
        Self { group, lines: Vec::new() }
    }

    pub(super) fn add(&mut self, check: &str, state: State, message: impl Into<String>) {
        let (check, message) = (check.to_owned(), message.into());
        self.lines.push(Line { group: self.group, check, state, message, fix: None });
    }

    pub(super) fn ok(&mut self, check: &str, message: impl Into<String>) {
        self.add(check, State::Ok, message);
    }

    pub(super) fn skipped(&mut self, check: &str, reason: impl Into<String>) {
        self.add(check, State::Skipped, reason);
    }

    pub(super) fn failed(&mut self, check: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.add(check, State::Failed, message);
        self.fix(fix);
    }

    pub(super) fn warning(&mut self, check: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.add(check, State::Warning, message);
        self.fix(fix);
    }

    /// Adds the command to the last line.
    pub(super) fn fix(&mut self, fix: impl Into<String>) {
        if let Some(line) = self.lines.last_mut() {
            line.fix = Some(fix.into());
        }
    }
}
