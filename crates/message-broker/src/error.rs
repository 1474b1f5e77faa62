//! The error of a call to a broker: operation, resource, kind, detail and hint.

use std::fmt;

use daemon::retry::Transient;

/// Operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Set up the client or reach the broker.
    Connect,
    /// Publish.
    Publish,
    /// Ensure that topic, subscription and dead-letter topic exist and are compatible.
    Prepare,
    /// Receive.
    Receive,
    /// Settle a delivery with the broker.
    Settle,
    /// Check the health of the broker.
    Probe,
}

/// Kind of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The topic or the subscription does not exist.
    NotFound,
    /// The topic has no subscription, so that the event would be lost.
    Unrouted,
    /// The broker's objects are not compatible with the configuration, or the broker calls the request invalid.
    Incompatible,
    /// The identity lacks a permission.
    PermissionDenied,
    /// The broker does not accept the identity, or there is none.
    Unauthenticated,
    /// The consumer no longer owns the delivery: its lease or its connection has ended. It is delivered again.
    Lost,
    /// The broker could not be reached or cannot answer now.
    Unavailable,
    /// No answer came in time; the operation may have been carried out.
    TimedOut,
    /// The broker failed, or its answer cannot be read.
    Internal,
    /// The program is stopping.
    Stopped,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerError {
    /// Operation that failed.
    pub operation: Operation,
    /// Name of the topic, subscription or broker.
    pub resource: String,
    /// Kind of the failure.
    pub kind: ErrorKind,
    /// The broker's message, or what to do next; one line of bounded length.
    pub detail: Option<String>,
}

// === impl BrokerError ===

impl BrokerError {
    /// Returns an error without detail.
    pub fn new(operation: Operation, resource: impl fmt::Display, kind: ErrorKind) -> Self {
        Self { operation, resource: resource.to_string(), kind, detail: None }
    }

    /// Adds the detail, on one line of bounded length.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        const LONGEST: usize = 600;
        let detail = detail.to_string();
        let apart = |char: char| char.is_whitespace() || char.is_control();
        let mut line = detail.split(apart).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = line.char_indices().nth(LONGEST) {
            line.truncate(end);
            line.push('…');
        }
        self.detail = Some(line).filter(|line| !line.is_empty());
        self
    }

    /// Returns what to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            ErrorKind::NotFound => Some("create the topic and the subscription, or allow the program to create them"),
            ErrorKind::Unrouted => Some("start a consumer of the topic, or create its subscription"),
            ErrorKind::PermissionDenied => Some("grant the identity the permissions of a publisher and a subscriber"),
            ErrorKind::Unauthenticated => Some("check the credentials of the broker"),
            ErrorKind::Incompatible
            | ErrorKind::Lost
            | ErrorKind::Unavailable
            | ErrorKind::TimedOut
            | ErrorKind::Internal
            | ErrorKind::Stopped => None,
        }
    }
}

impl std::error::Error for BrokerError {}

impl fmt::Display for BrokerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.operation {
            Operation::Connect => "reach",
            Operation::Publish => "publish to",
            Operation::Prepare => "subscribe to",
            Operation::Receive => "receive from",
            Operation::Settle => "settle a delivery of",
            Operation::Probe => "get an answer from",
        };
        let kind = match self.kind {
            ErrorKind::NotFound => "not found",
            ErrorKind::Unrouted => "it has no subscription",
            ErrorKind::Incompatible => "incompatible configuration",
            ErrorKind::PermissionDenied => "permission denied",
            ErrorKind::Unauthenticated => "not authenticated",
            ErrorKind::Lost => "the lease has ended; the message is delivered again",
            ErrorKind::Unavailable => "the broker is unavailable",
            ErrorKind::TimedOut => "no answer in time",
            ErrorKind::Internal => "the broker failed",
            ErrorKind::Stopped => "stopping",
        };
        write!(formatter, "cannot {operation} {}: {kind}", self.resource)?;
        if let Some(detail) = &self.detail {
            write!(formatter, " ({detail})")?;
        }
        Ok(())
    }
}

impl Transient for BrokerError {
    fn is_transient(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::TimedOut | ErrorKind::Internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_that_names_operation_resource_and_kind() {
        let error = BrokerError::new(Operation::Publish, "clusters", ErrorKind::Unavailable)
            .with_detail("connection\n refused");
        assert_eq!(error.to_string(), "cannot publish to clusters: the broker is unavailable (connection refused)");
        assert!(error.is_transient());
    }
}
