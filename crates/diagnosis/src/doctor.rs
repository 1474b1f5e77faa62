//! Checks of the parts that the service depends on, before its installation and after it: a line for each check, with the
//! command that fixes what has failed. Nothing is changed anywhere.

pub mod decide;
pub mod facts;
pub mod observe;

use std::fmt::{self, Write as _};

use daemon::output::plain;
use serde::Serialize;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The part that was checked.
    pub group: Group,
    /// Name of the check.
    pub check: String,
    /// Its state.
    pub state: State,
    /// The observation behind the state; of a skipped check the reason.
    pub message: String,
    /// The command that fixes it, or that makes the check possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// The state of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is as it must be.
    Ok,
    /// It works, but not for long or not for all.
    Warning,
    /// It does not work.
    Failed,
    /// It could not be checked, or there is nothing to check.
    Skipped,
}

/// A part that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The HyperFleet API.
    Api,
    /// The Kubernetes cluster in which Jobs run.
    Kubernetes,
    /// The message broker.
    Broker,
    /// The secret store.
    SecretStore,
    /// The credentials service.
    Credentials,
    /// Files that settings name.
    Files,
}

/// Returns true if no check has failed.
pub fn none_failed(lines: &[Line]) -> bool {
    lines.iter().all(|line| line.state != State::Failed)
}

/// The lines for a terminal, group by group, and their numbers.
pub fn text(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.check.chars().count()).max().unwrap_or_default();
    let (mut text, mut group) = (String::new(), None);
    for line in lines {
        // Writing to a String cannot fail, here and below.
        if group.replace(line.group) != Some(line.group) {
            let _infallible = writeln!(text, "{}", line.group);
        }
        let Line { check, state, message, fix, .. } = line;
        let (check, message) = (plain(check), plain(message));
        let _infallible = writeln!(text, "  {:<7}  {check:<width$}  {message}", state.to_string());
        if let Some(fix) = fix {
            let _infallible = writeln!(text, "           fix: {}", plain(fix));
        }
    }
    let count = |state| lines.iter().filter(|line| line.state == state).count();
    let counts =
        [State::Ok, State::Warning, State::Failed, State::Skipped].map(|state| format!("{} {state}", count(state)));
    text + &format!("{}\n", counts.join(", "))
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        })
    }
}

impl fmt::Display for Group {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Api => "HyperFleet API",
            Self::Kubernetes => "Kubernetes",
            Self::Broker => "Broker",
            Self::SecretStore => "Secret store",
            Self::Credentials => "Credentials service",
            Self::Files => "Files",
        })
    }
}
