//! How a call to a broker fails, told so that the caller knows what to do about it.

use std::fmt;

use daemon::retry::Transient;

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Setting up a client or reaching the broker.
    Connect,
    /// Publishing.
    Publish,
    /// Making sure that topic, subscription and dead-letter topic are there and fit.
    Prepare,
    /// Receiving.
    Receive,
    /// Telling the broker what has become of a delivery.
    Settle,
    /// Asking whether the broker is there.
    Probe,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The topic or the subscription does not exist.
    NotFound,
    /// Nobody has subscribed to the topic, so that nobody would get the event.
    Unrouted,
    /// What is there does not fit what was asked for, or the broker calls the request invalid.
    Misfit,
    /// The identity may not do this.
    PermissionDenied,
    /// The broker does not accept the identity, or there is none.
    Unauthenticated,
    /// The delivery is no longer this consumer's: its lease ended, or the connection that it came by did. It is delivered
    /// again.
    Lost,
    /// The broker could not be reached or cannot answer now.
    Unavailable,
    /// No answer came in time; what was asked may have been done.
    TimedOut,
    /// The broker failed within, or gave an answer that is none.
    Internal,
    /// The program was told to stop.
    Stopped,
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerError {
    /// What was being done.
    pub action: Action,
    /// What it was done to: the name of a topic, a subscription, a broker.
    pub resource: String,
    /// What went wrong.
    pub fault: Fault,
    /// The broker's own words, or ours about what to do, on one line and cut to a sane length.
    pub detail: Option<String>,
}

// === impl BrokerError ===

impl BrokerError {
    /// An error without further words.
    pub fn new(action: Action, resource: impl fmt::Display, fault: Fault) -> Self {
        Self { action, resource: resource.to_string(), fault, detail: None }
    }

    /// Adds words.
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
}

impl std::error::Error for BrokerError {}

impl fmt::Display for BrokerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            Action::Connect => "reach",
            Action::Publish => "publish to",
            Action::Prepare => "subscribe to",
            Action::Receive => "receive from",
            Action::Settle => "settle a delivery of",
            Action::Probe => "get an answer from",
        };
        let fault = match self.fault {
            Fault::NotFound => "not found",
            Fault::Unrouted => "nobody has subscribed to it",
            Fault::Misfit => "it does not fit",
            Fault::PermissionDenied => "permission denied",
            Fault::Unauthenticated => "not authenticated",
            Fault::Lost => "the delivery is no longer ours; it is delivered again",
            Fault::Unavailable => "the broker is unavailable",
            Fault::TimedOut => "no answer in time",
            Fault::Internal => "the broker failed",
            Fault::Stopped => "told to stop",
        };
        write!(formatter, "cannot {action} {}: {fault}", self.resource)?;
        if let Some(detail) = &self.detail {
            write!(formatter, " ({detail})")?;
        }
        Ok(())
    }
}

impl Transient for BrokerError {
    fn is_transient(&self) -> bool {
        matches!(self.fault, Fault::Unavailable | Fault::TimedOut | Fault::Internal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_that_names_action_object_and_cause() {
        let error =
            BrokerError::new(Action::Publish, "clusters", Fault::Unavailable).with_detail("connection\n refused");
        assert_eq!(error.to_string(), "cannot publish to clusters: the broker is unavailable (connection refused)");
        assert!(error.is_transient());
    }
}
