//! The lines of `pull-secret doctor`, from facts.

mod api;
mod broker;
mod checks;
mod credentials;
mod files;
mod kubernetes;
pub(super) mod store;
#[cfg(test)]
mod tests;

use super::Line;
use super::facts::Facts;

/// Derives a line for each check.
pub fn lines(facts: &Facts) -> Vec<Line> {
    let mut lines = api::lines(facts);
    lines.extend(kubernetes::lines(facts.kubernetes.as_ref()));
    lines.extend(broker::lines(facts.broker.as_ref()));
    lines.extend(store::lines(facts.store.as_ref()));
    lines.extend(credentials::lines(facts.credentials.as_ref()));
    lines.extend(files::lines(&facts.files, facts.now));
    lines
}
