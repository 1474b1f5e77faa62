//! Sends an HTTP request once, within a time, records it, and reads the answer to its limit.

use std::fmt;

use daemon::calls::{self, CallLog};
use http::HeaderMap;
use reqwest::RequestBuilder;
use tokio::time::{Instant, timeout_at};

use crate::StoreError;
use crate::causes::innermost;
use crate::error::ErrorKind;

/// A request that is to be sent.
pub(crate) struct Exchange<'a> {
    pub(crate) request: RequestBuilder,
    pub(crate) deadline: Instant,
    /// Maximum size of the answer, in bytes.
    pub(crate) longest: usize,
    /// Its name in metrics.
    pub(crate) name: &'static str,
    pub(crate) log: Option<&'a CallLog>,
}

/// Answer of any status.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The cause, without the address.
    Broken(String),
    /// The answer is longer than this number of bytes.
    TooLong(usize),
    TimedOut,
}

// === impl Exchange ===

impl Exchange<'_> {
    pub(crate) async fn send(self) -> Result<Answered, Unanswered> {
        let start = Instant::now();
        let answered =
            timeout_at(self.deadline, receive(self.request, self.longest)).await.unwrap_or(Err(Unanswered::TimedOut));
        if let Some(log) = self.log {
            let status_code = match &answered {
                Ok(answer) => answer.status,
                Err(Unanswered::Broken(_) | Unanswered::TooLong(_)) => calls::UNREACHABLE,
                Err(Unanswered::TimedOut) => calls::TIMED_OUT,
            };
            log.record(self.name, status_code, start.elapsed());
        }
        answered
    }
}

async fn receive(request: RequestBuilder, longest: usize) -> Result<Answered, Unanswered> {
    let broken = |error: reqwest::Error| Unanswered::Broken(innermost(&error.without_url()));
    let mut response = request.send().await.map_err(broken)?;
    let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len().saturating_add(chunk.len()) > longest {
            return Err(Unanswered::TooLong(longest));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answered { status, headers, body })
}

// === impl Unanswered ===

impl Unanswered {
    /// Adds kind, detail and remedy to the error of an operation.
    pub(crate) fn into_error(self, failed: StoreError) -> StoreError {
        let is_about_trust = matches!(&self, Self::Broken(cause) if cause.contains("certificate"));
        let hint = "check that the file of certificate authorities is that of the server, and that its certificate is for \
                    this address";
        let kind = match &self {
            Self::Broken(_) => ErrorKind::Unavailable,
            Self::TooLong(_) => ErrorKind::Internal,
            Self::TimedOut => return StoreError { kind: ErrorKind::TimedOut, ..failed },
        };
        let hint = is_about_trust.then(|| hint.to_owned());
        StoreError { kind, hint, ..failed }.with_detail(self)
    }
}

impl std::error::Error for Unanswered {}

impl fmt::Display for Unanswered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(cause) => formatter.write_str(cause),
            Self::TooLong(longest) => write!(formatter, "the answer is longer than {longest} bytes"),
            Self::TimedOut => formatter.write_str("no answer in time"),
        }
    }
}
