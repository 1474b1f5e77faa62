//! Errors of calls, with what the caller can do about them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use daemon::connections;
use daemon::retry::{Interrupted, Transient};

use crate::wire::Problem;

/// The cause of a failed setup.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The HTTP client could not be made.
    #[error(transparent)]
    Connections(#[from] connections::SetupError),
    /// The token would be sent over plain HTTP.
    #[error(
        "refused to send the bearer token to {host} in clear text; use an https address, or set plain_http_host to this host"
    )]
    ClearText {
        /// The API's host.
        host: String,
    },
}

/// A call that failed. `call` says what was asked, such as `get clusters/cls-123`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The arguments cannot be sent.
    #[error("cannot {call}: {what}")]
    Invalid {
        /// The request.
        call: String,
        /// The fault, and the expected form.
        what: &'static str,
    },
    /// The file with the bearer token could not be read.
    #[error("cannot {call}: cannot read the token file; check its path, that it is mounted and holds one line")]
    Token {
        /// The request.
        call: String,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No answer was had; what was asked may have been done.
    #[error("cannot {call}: the API cannot be reached, or the connection broke; check its address and that it runs")]
    Unreachable {
        /// The request.
        call: String,
        /// The cause, without the address.
        source: reqwest::Error,
    },
    /// No answer came in time; what was asked may have been done.
    #[error("cannot {call}: no answer within {after:?}; check how busy the API and its database are")]
    TimedOut {
        /// The request.
        call: String,
        /// Maximum time of an attempt.
        after: Duration,
    },
    /// The API answered that it will not, or cannot.
    #[error("cannot {call}: the API answers {status}{}; {}", detail(problem.as_deref()), hint(*status))]
    Refused {
        /// The request.
        call: String,
        /// The status of the answer.
        status: u16,
        /// Its body, if it is a problem; other bodies are not kept.
        problem: Option<Box<Problem>>,
        /// The wait that the API requests.
        retry_after: Option<Duration>,
    },
    /// The answer is not what the contract says.
    #[error(
        "cannot {call}: the answer is not of the contract's form (line {line}, column {column}); check the address"
    )]
    Unreadable {
        /// The request.
        call: String,
        /// The line in the response, from 1.
        line: usize,
        /// The column in the line.
        column: usize,
    },
    /// The answer is longer than anything that the contract allows.
    #[error("cannot {call}: the answer is longer than {limit} bytes; ask for smaller pages or fewer fields")]
    TooLong {
        /// The request.
        call: String,
        /// Maximum number of bytes that are read.
        limit: usize,
    },
    /// A change stream ended, which it should not; it is resumed.
    #[error("cannot {call}: {how}; it will be resumed")]
    Cut {
        /// The request.
        call: String,
        /// The status of the response.
        how: &'static str,
    },
    /// The caller's budget is spent, or it is shutting down.
    #[error("cannot {call}: {interrupted}")]
    Interrupted {
        /// The request.
        call: String,
        /// The cause of the interruption.
        interrupted: Interrupted,
        /// The failure that was to be got over, if there was one.
        source: Option<Box<Self>>,
    },
}

// === impl Error ===

impl Error {
    /// The request, such as `get clusters/cls-123`.
    pub fn call(&self) -> &str {
        match self {
            Self::Invalid { call, .. }
            | Self::Token { call, .. }
            | Self::Unreachable { call, .. }
            | Self::TimedOut { call, .. }
            | Self::Refused { call, .. }
            | Self::Unreadable { call, .. }
            | Self::TooLong { call, .. }
            | Self::Cut { call, .. }
            | Self::Interrupted { call, .. } => call,
        }
    }

    /// Returns true if the same call may succeed later without a change.
    pub fn transient(&self) -> bool {
        match self {
            Self::Token { .. } | Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Cut { .. } => true,
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Invalid { .. } | Self::Unreadable { .. } | Self::TooLong { .. } => false,
            Self::Interrupted { source, .. } => source.as_ref().is_none_or(|last| last.transient()),
        }
    }

    /// The status that the API answered with, if it answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Interrupted { source: Some(last), .. } => last.status(),
            _ => None,
        }
    }

    /// The API's own account, if it gave one.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => problem.as_deref(),
            Self::Interrupted { source: Some(last), .. } => last.problem(),
            _ => None,
        }
    }

    /// The API's code, such as `HYPERFLEET-CNF-001`.
    pub fn code(&self) -> Option<&str> {
        self.problem()?.code.as_deref()
    }

    /// Message of the API; not trusted.
    pub fn detail(&self) -> Option<&str> {
        self.problem()?.detail.as_deref()
    }

    /// Returns true if the API answers that there is no such resource, and not merely that nothing is served at the address.
    pub fn is_absent(&self) -> bool {
        let unknown_path = || self.code().is_some_and(|code| code.ends_with("NTF-000"));
        self.status() == Some(404) && self.problem().is_some() && !unknown_path()
    }
}

impl Transient for Error {
    fn is_transient(&self) -> bool {
        self.transient()
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

fn detail(problem: Option<&Problem>) -> String {
    problem.map(|problem| format!(": {problem}")).unwrap_or_default()
}

fn hint(status: u16) -> &'static str {
    match status {
        300..=399 => "redirections are not followed, so configure the address that they lead to",
        401 => "check the token file, and which issuers and audience the API accepts",
        403 => "ask the operator of the API to grant it",
        404 => "check the address, the kind and the id",
        409 | 412 => "read it again and decide anew",
        408 | 429 | 500.. => "try again later",
        _ => "correct the request",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn refused(status: u16, body: &str) -> Error {
        let problem = Problem::parse(body.as_bytes()).map(Box::new);
        Error::Refused { call: "get clusters/a".to_owned(), status, problem, retry_after: None }
    }

    #[rstest]
    #[case(500, true)]
    #[case(503, true)]
    #[case(408, true)]
    #[case(429, true)]
    #[case(302, false)]
    #[case(400, false)]
    #[case(401, false)]
    #[case(404, false)]
    #[case(409, false)]
    fn what_may_pass_is_known(#[case] status: u16, #[case] transient: bool) {
        assert_eq!(refused(status, "").transient(), transient);
    }

    #[test]
    fn a_refusal_tells_the_action_the_words_and_what_to_do() {
        let problem = r#"{"code": "HYPERFLEET-CNF-001", "detail": "This Cluster already exists"}"#;
        assert_eq!(
            refused(409, problem).to_string(),
            "cannot get clusters/a: the API answers 409: This Cluster already exists (HYPERFLEET-CNF-001); read it \
             again and decide anew"
        );
        assert_eq!(
            refused(502, "<html>hunter2").to_string(),
            "cannot get clusters/a: the API answers 502; try again later"
        );
    }

    #[rstest]
    #[case(r#"{"code": "HYPERFLEET-NTF-001"}"#, true)]
    #[case(r#"{"code": "HYPERFLEET-NTF-000"}"#, false)]
    #[case("404 page not found", false)]
    fn absence_is_distinguished_from_a_wrong_address(#[case] body: &str, #[case] absent: bool) {
        assert_eq!(refused(404, body).is_absent(), absent);
    }
}
