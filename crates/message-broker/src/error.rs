//! Operations of a broker and kinds of their failures.

use std::fmt;

use daemon::service_error::{Kind, ServiceError};

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

/// A call to a broker that failed; the resource is a topic, a subscription or the broker.
pub type BrokerError = ServiceError<ErrorKind>;

impl ErrorKind {
    /// Returns true if the broker refuses the identity: it refuses every further attempt until credentials or permissions are changed.
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::PermissionDenied | Self::Unauthenticated)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Connect => "reach",
            Self::Publish => "publish to",
            Self::Prepare => "subscribe to",
            Self::Receive => "receive from",
            Self::Settle => "settle a delivery of",
            Self::Probe => "get an answer from",
        })
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFound => "not found",
            Self::Unrouted => "it has no subscription",
            Self::Incompatible => "incompatible configuration",
            Self::PermissionDenied => "permission denied",
            Self::Unauthenticated => "not authenticated",
            Self::Lost => "the lease has ended; the message is delivered again",
            Self::Unavailable => "the broker is unavailable",
            Self::TimedOut => "no answer in time",
            Self::Internal => "the broker failed",
            Self::Stopped => "stopping",
        })
    }
}

impl Kind for ErrorKind {
    type Operation = Operation;

    fn is_transient(self) -> bool {
        matches!(self, Self::Unavailable | Self::TimedOut | Self::Internal)
    }

    fn hint(self, operation: Operation) -> Option<String> {
        let hint = match self {
            Self::NotFound => "create the topic and the subscription, or allow the program to create them",
            Self::Unrouted => "start a consumer of the topic, or create its subscription",
            Self::PermissionDenied if operation == Operation::Connect => {
                "check the vhost in the broker's URL, and the user's permissions in it"
            }
            Self::PermissionDenied => "grant the identity the permissions of a publisher and a subscriber",
            Self::Unauthenticated => "check the credentials of the broker",
            Self::Incompatible | Self::Lost | Self::Unavailable | Self::TimedOut | Self::Internal | Self::Stopped => {
                return None;
            }
        };
        Some(hint.to_owned())
    }
}
