//! Sends an HTTP request once, within a time, records it, and reads the answer to its limit.

use std::fmt;

use http::HeaderMap;
use reqwest::RequestBuilder;
use tokio::time::{Instant, timeout_at};

use crate::calls::{self, CallLog};
use crate::causes::innermost;
use crate::service_error::{Kind, ServiceError};

/// A request that is to be sent.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The request.
    pub request: RequestBuilder,
    /// The time at which it is given up.
    pub deadline: Instant,
    /// Maximum size of the answer, in bytes.
    pub longest: usize,
    /// Its name in metrics.
    pub name: &'static str,
    /// The record of calls.
    pub log: Option<&'a CallLog>,
}

/// Answer of any status. Its `Debug` does not show the body, which may be a credential.
pub struct Answered {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

/// Kinds of failures of a service that is asked over HTTP.
pub trait HttpKind: Kind {
    /// Returns the kind of a request without an answer.
    fn of_unanswered(unanswered: &Unanswered) -> Self;
}

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The cause, without the address.
    Broken(String),
    /// The answer is longer than this number of bytes.
    TooLong(usize),
    /// No answer came in time.
    TimedOut,
}

// === impl Exchange ===

impl Exchange<'_> {
    /// Sends the request once.
    ///
    /// # Errors
    ///
    /// No answer, or one that is too long.
    pub async fn send(self) -> Result<Answered, Unanswered> {
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
    // The time of a connection is that of the call: its end must not look like a server that cannot be reached.
    let broken = |error: reqwest::Error| {
        if error.is_timeout() { Unanswered::TimedOut } else { Unanswered::Broken(innermost(&error.without_url())) }
    };
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
    pub fn into_error<K: HttpKind>(self, failed: ServiceError<K>) -> ServiceError<K> {
        let is_about_trust = matches!(&self, Self::Broken(cause) if cause.contains("certificate"));
        let hint = "check that the file of certificate authorities is that of the server, and that its certificate is for \
                    this address";
        let kind = K::of_unanswered(&self);
        if self == Self::TimedOut {
            return ServiceError { kind, ..failed };
        }
        let hint = is_about_trust.then(|| hint.to_owned());
        ServiceError { kind, hint, ..failed }.with_detail(self)
    }
}

impl fmt::Debug for Answered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Answered").field("status", &self.status).finish_non_exhaustive()
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
