//! How a call to a Kubernetes API server fails, told so that the caller knows what to do about it.

use std::fmt;
use std::time::Duration;

use daemon::retry::Transient;
use kube::core::Status;

use crate::verb::Verb;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The object does not exist.
    NotFound,
    /// The object's namespace does not exist.
    NamespaceMissing,
    /// The object's namespace is being deleted and takes nothing new.
    NamespaceTerminating,
    /// An object of that name exists.
    AlreadyExists,
    /// The object is not as it was when it was read.
    Changed,
    /// The identity may not do that.
    Forbidden,
    /// The namespace's quota is used up.
    QuotaExceeded,
    /// An admission plugin or webhook has refused the object.
    AdmissionDenied,
    /// The way to the server is not configured so that it could be used.
    Unusable,
    /// The server does not accept the identity, or none could be had.
    Unauthenticated,
    /// The server calls the object or request invalid.
    Invalid,
    /// The server asks for patience.
    TooManyRequests,
    /// The server could not be reached or cannot answer now.
    Unavailable,
    /// No answer came in time; what was asked may have been done.
    TimedOut,
    /// The server failed within, or gave an answer that is none; what was asked may have been done.
    Internal,
}

/// A call that failed.
#[derive(Debug, thiserror::Error)]
pub struct KubernetesError {
    /// What was being done.
    pub verb: Verb,
    /// What it was done to, such as `secret clusters-1/pull-secret`.
    pub object: String,
    /// What went wrong.
    pub fault: Fault,
    /// How long the server asked to wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// The server's own words, on one line and cut to a sane length. It redacts the content of Secrets itself.
    pub detail: Option<String>,
}

// === impl Fault ===

impl Fault {
    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::NamespaceMissing => "its namespace does not exist",
            Self::NamespaceTerminating => "its namespace is being deleted",
            Self::AlreadyExists => "already exists",
            Self::Changed => "was changed meanwhile",
            Self::Forbidden => "permission denied",
            Self::QuotaExceeded => "the namespace's quota is used up",
            Self::AdmissionDenied => "refused by admission",
            Self::Unusable => "not usable",
            Self::Unauthenticated => "not authenticated",
            Self::Invalid => "the server calls it invalid",
            Self::TooManyRequests => "the server asks for patience",
            Self::Unavailable => "the API server is unavailable",
            Self::TimedOut => "no answer in time",
            Self::Internal => "the API server failed",
        }
    }

    /// Forbidden has many meanings, of which mostly only the text tells.
    fn of_forbidden(status: &Status) -> Self {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let is_terminating = |reason: &str| reason == "NamespaceTerminating";
        let told = causes.map(|cause| cause.reason.as_str()).any(is_terminating);
        if told || status.message.contains("is being terminated") {
            Self::NamespaceTerminating
        } else if status.message.contains("status unknown for quota") {
            // A quota that is so new that nobody has counted yet.
            Self::Unavailable
        } else if status.message.contains("exceeded quota") {
            Self::QuotaExceeded
        } else if is_admission(&status.message) {
            Self::AdmissionDenied
        } else {
            Self::Forbidden
        }
    }

    fn of_status(verb: Verb, status: &Status) -> Self {
        match (status.code, status.reason.as_str()) {
            // What cannot be parsed did not come from an API server.
            (404, "Failed to parse error data") => Self::Invalid,
            (404, _) if verb == Verb::Create || status.message.starts_with("namespaces ") => Self::NamespaceMissing,
            (404, _) => Self::NotFound,
            (409, "AlreadyExists") => Self::AlreadyExists,
            (409, _) => Self::Changed,
            (401, _) => Self::Unauthenticated,
            (403, _) => Self::of_forbidden(status),
            (408 | 504, _) => Self::TimedOut,
            (429, _) => Self::TooManyRequests,
            // A watch from before what the server remembers: a new one is fine.
            (410 | 503, _) => Self::Unavailable,
            (400..=499, _) if is_admission(&status.message) => Self::AdmissionDenied,
            (400..=499, _) => Self::Invalid,
            _ if is_admission(&status.message) && status.message.contains("denied") => Self::AdmissionDenied,
            _ => Self::Internal,
        }
    }
}

fn is_admission(message: &str) -> bool {
    message.contains("admission webhook") || message.contains("ValidatingAdmissionPolicy")
}

// === impl KubernetesError ===

impl KubernetesError {
    /// An error without the server's own words.
    pub fn new(verb: Verb, object: impl Into<String>, fault: Fault) -> Self {
        Self { verb, object: object.into(), fault, retry_after: None, detail: None }
    }

    /// The client library's error in our words. Its own texts are not forwarded where they may quote an object.
    pub(crate) fn classify(verb: Verb, object: &str, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let mut classified = Self::new(verb, object, Fault::of_status(verb, status));
                let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
                classified.retry_after =
                    Some(u64::from(seconds)).filter(|seconds| *seconds > 0).map(Duration::from_secs);
                if status.reason == "Failed to parse error data" {
                    return classified.with_detail(&format!("HTTP status {}", status.code));
                }
                classified.with_detail(&status.message)
            }
            kube::Error::Auth(_) => Self::new(verb, object, Fault::Unauthenticated).with_detail("no credentials"),
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => {
                Self::new(verb, object, Fault::Internal).with_detail("the answer cannot be read")
            }
            kube::Error::BuildRequest(_) | kube::Error::HttpError(_) | kube::Error::TlsRequired => {
                Self::new(verb, object, Fault::Invalid)
            }
            other => Self::new(verb, object, Fault::Unavailable).with_detail(&innermost(other)),
        }
    }

    fn with_detail(mut self, detail: &str) -> Self {
        const LONGEST: usize = 400;
        let mut line: String = detail.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = line.char_indices().nth(LONGEST) {
            line.truncate(end);
            line.push('…');
        }
        self.detail = Some(line).filter(|line| !line.is_empty());
        self
    }

    /// What to do about it, where that can be said.
    pub fn hint(&self) -> Option<String> {
        let hint = match self.fault {
            Fault::NamespaceMissing => {
                "the placement adapter creates the namespace: check what it has reported for this cluster"
            }
            Fault::NamespaceTerminating => "wait until the namespace has gone and placement has created it anew",
            Fault::Forbidden => {
                return Some(format!(
                    "allow the identity that this program runs with to {} it (Role, RoleBinding)",
                    self.verb
                ));
            }
            Fault::QuotaExceeded => "raise the namespace's ResourceQuota for secrets, or remove what is not needed",
            Fault::AdmissionDenied => "the refusal names the policy: allow this Secret there",
            Fault::Unauthenticated => "check the kubeconfig or the pod's service account token",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for KubernetesError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot {} {}: {}", self.verb, self.object, self.fault.words())?;
        if let Some(detail) = &self.detail {
            write!(formatter, " (the server says: {detail})")?;
        }
        Ok(())
    }
}

impl Transient for KubernetesError {
    fn is_transient(&self) -> bool {
        matches!(self.fault, Fault::TooManyRequests | Fault::Unavailable | Fault::TimedOut | Fault::Internal)
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// The last cause of a failure to reach the server, such as "connection refused".
fn innermost(error: &kube::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Verb::Get, 404, "NotFound", "secrets \"x\" not found", Fault::NotFound)]
    #[case(Verb::Create, 404, "NotFound", "namespaces \"x\" not found", Fault::NamespaceMissing)]
    #[case(Verb::Get, 404, "Failed to parse error data", "<html>", Fault::Invalid)]
    #[case(Verb::Create, 409, "AlreadyExists", "secrets \"x\" already exists", Fault::AlreadyExists)]
    #[case(Verb::Apply, 409, "Conflict", "the object has been modified", Fault::Changed)]
    #[case(Verb::Create, 403, "Forbidden", "secrets is forbidden: User \"x\" cannot create resource", Fault::Forbidden)]
    #[case(
        Verb::Create,
        403,
        "Forbidden",
        "secrets \"x\" is forbidden: exceeded quota: q, requested: 1",
        Fault::QuotaExceeded
    )]
    #[case(
        Verb::Create,
        403,
        "Forbidden",
        "unable to create new content in namespace x because it is being terminated",
        Fault::NamespaceTerminating
    )]
    #[case(
        Verb::Create,
        403,
        "Forbidden",
        "admission webhook \"a.b.c\" denied the request: no",
        Fault::AdmissionDenied
    )]
    #[case(
        Verb::Create,
        400,
        "BadRequest",
        "admission webhook \"a.b.c\" denied the request: no",
        Fault::AdmissionDenied
    )]
    #[case(Verb::Apply, 422, "Invalid", "Secret \"x\" is invalid: type: field is immutable", Fault::Invalid)]
    #[case(Verb::Get, 401, "Unauthorized", "Unauthorized", Fault::Unauthenticated)]
    #[case(Verb::Get, 429, "TooManyRequests", "too many requests", Fault::TooManyRequests)]
    #[case(Verb::Get, 500, "InternalError", "etcdserver: no leader", Fault::Internal)]
    #[case(Verb::Get, 503, "ServiceUnavailable", "apiserver is shutting down", Fault::Unavailable)]
    #[case(Verb::Get, 504, "Timeout", "request did not complete", Fault::TimedOut)]
    fn statuses_are_told_apart(
        #[case] verb: Verb,
        #[case] code: u16,
        #[case] reason: &str,
        #[case] message: &str,
        #[case] expected: Fault,
    ) {
        let status = Status::failure(message, reason).with_code(code);
        let error = KubernetesError::classify(verb, "secret a/b", &kube::Error::Api(status.boxed()));
        assert_eq!(error.fault, expected);
        assert_eq!(error.is_transient(), code == 429 || code >= 500);
        assert!(!error.to_string().contains("<html>"));
    }

    #[test]
    fn an_error_names_action_and_object() {
        let error = KubernetesError::new(Verb::Create, "secret a/b", Fault::NamespaceMissing);
        assert_eq!(error.to_string(), "cannot create secret a/b: its namespace does not exist");
        assert!(error.hint().unwrap().contains("placement"));
    }
}
