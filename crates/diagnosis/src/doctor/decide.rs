//! The lines of `pull-secret doctor`, from facts.

mod api;
mod kubernetes;
#[cfg(test)]
mod tests;

use super::facts::Facts;
use super::{Group, Line, State};

/// Derives a line for each check.
pub fn lines(facts: &Facts) -> Vec<Line> {
    let mut lines = api::lines(facts);
    lines.extend(kubernetes::lines(facts.kubernetes.as_ref()));
    lines
}

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
