//! The lines of `pull-secret doctor`, from facts.

mod api;
mod broker;
mod files;
mod kubernetes;
pub(super) mod store;
#[cfg(test)]
mod tests;

use jiff::SignedDuration;

use super::facts::Facts;
use super::{Group, Line, State};

/// Derives a line for each check.
pub fn lines(facts: &Facts) -> Vec<Line> {
    let mut lines = api::lines(facts);
    lines.extend(kubernetes::lines(facts.kubernetes.as_ref()));
    lines.extend(broker::lines(facts.broker.as_ref()));
    lines.extend(store::lines(facts.store.as_ref()));
    lines.extend(files::lines(&facts.files, facts.now));
    lines
}

/// Remaining time from which a certificate is about to expire, as in charts/pull-secret/monitoring/alerts.yaml.
const CERTIFICATE_EXPIRING: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The lines of a group.
struct Checks {
    group: Group,
    lines: Vec<Line>,
}

impl Checks {
    fn of(group: Group) -> Self {
        Self { group, lines: Vec::new() }
    }

    fn add(&mut self, check: &str, state: State, message: impl Into<String>) {
        let (check, message) = (check.to_owned(), message.into());
        self.lines.push(Line { group: self.group, check, state, message, fix: None });
    }

    fn ok(&mut self, check: &str, message: impl Into<String>) {
        self.add(check, State::Ok, message);
    }

    fn skipped(&mut self, check: &str, reason: impl Into<String>) {
        self.add(check, State::Skipped, reason);
    }

    fn failed(&mut self, check: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.add(check, State::Failed, message);
        self.fix(fix);
    }

    fn warning(&mut self, check: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.add(check, State::Warning, message);
        self.fix(fix);
    }

    /// Adds the command to the last line.
    fn fix(&mut self, fix: impl Into<String>) {
        if let Some(line) = self.lines.last_mut() {
            line.fix = Some(fix.into());
        }
    }
}
