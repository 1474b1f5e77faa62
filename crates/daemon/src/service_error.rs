//! The error of a call to an external service: one shape for Kubernetes, secret stores and message brokers.

use std::fmt;
use std::time::Duration;

use crate::retry::Transient;

/// Kinds of failures of one service. `Display` completes "cannot create secret x: …".
pub trait Kind: Copy + fmt::Debug + fmt::Display + Eq {
    /// Operations of the service. `Display` completes "cannot …".
    type Operation: Copy + fmt::Debug + fmt::Display + Eq;

    /// Returns true if the same request may succeed later without a change of its input.
    fn is_transient(self) -> bool;

    /// Returns the remedy of a failed operation, where there is one.
    fn hint(self, operation: Self::Operation) -> Option<String>;
}

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError<K: Kind> {
    /// Operation that failed.
    pub operation: K::Operation,
    /// Name of the resource that the operation was for.
    pub resource: String,
    /// Kind of the failure.
    pub kind: K,
    /// Message of the service, or of its client; one line of bounded length, without content of a secret.
    pub detail: Option<String>,
    /// Remedy of this provider, in place of the kind's.
    pub hint: Option<String>,
    /// Delay before the next attempt that the service asked for.
    pub retry_after: Option<Duration>,
}

impl<K: Kind> ServiceError<K> {
    /// Returns an error without detail.
    pub fn new(operation: K::Operation, resource: impl fmt::Display, kind: K) -> Self {
        Self { operation, resource: resource.to_string(), kind, detail: None, hint: None, retry_after: None }
    }

    /// Adds the detail, on one line of bounded length.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        const MAX_CHARACTERS: usize = 400;
        let detail = detail.to_string();
        let is_separator = |char: char| char.is_whitespace() || char.is_control();
        let mut line = detail.split(is_separator).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = line.char_indices().nth(MAX_CHARACTERS) {
            line.truncate(end);
            line.push('…');
        }
        self.detail = Some(line).filter(|line| !line.is_empty());
        self
    }

    /// Returns the remedy, where there is one.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone().or_else(|| self.kind.hint(self.operation))
    }
}

impl<K: Kind> std::error::Error for ServiceError<K> {}

impl<K: Kind> fmt::Display for ServiceError<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot {} {}: {}", self.operation, self.resource, self.kind)?;
        match &self.detail {
            Some(detail) => write!(formatter, " ({detail})"),
            None => Ok(()),
        }
    }
}

impl<K: Kind> Transient for ServiceError<K> {
    fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Busy;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Publish;

    impl fmt::Display for Publish {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("publish to")
        }
    }

    impl fmt::Display for Busy {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("the service is unavailable")
        }
    }

    impl Kind for Busy {
        type Operation = Publish;

        fn is_transient(self) -> bool {
            true
        }

        fn hint(self, operation: Publish) -> Option<String> {
            Some(format!("{operation} another one"))
        }
    }

    #[test]
    fn an_error_is_one_line_that_names_operation_resource_and_kind() {
        let error = ServiceError::new(Publish, "clusters", Busy).with_detail("connection\n \u{1b}refused\r\n");
        assert_eq!(error.to_string(), "cannot publish to clusters: the service is unavailable (connection refused)");
        assert!(error.is_transient());
        assert_eq!(error.with_detail(" \n").to_string(), "cannot publish to clusters: the service is unavailable");
    }

    #[test]
    fn a_long_detail_is_cut() {
        let error = ServiceError::new(Publish, "clusters", Busy).with_detail("é".repeat(1000));
        assert_eq!(error.detail.unwrap(), format!("{}…", "é".repeat(400)));
    }

    #[test]
    fn the_hint_of_a_provider_replaces_that_of_the_kind() {
        let error = ServiceError::new(Publish, "clusters", Busy);
        assert_eq!(error.hint().as_deref(), Some("publish to another one"));
        let error = ServiceError { hint: Some("wait".to_owned()), ..error };
        assert_eq!(error.hint().as_deref(), Some("wait"));
    }
}
