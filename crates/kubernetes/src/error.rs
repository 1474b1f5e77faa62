//! Errors of calls to a Kubernetes API server, classified by what the caller can do about them.

use std::fmt;
use std::time::Duration;

use daemon::service_error::{Kind, ServiceError};
use daemon::{calls, causes};
use kube::core::Status;

use crate::transport::ResponseTimedOut;
use crate::verb::Verb;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The object does not exist.
    NotFound,
    /// The object's namespace does not exist.
    NamespaceMissing,
    /// The object's namespace is being deleted and takes nothing new.
    NamespaceTerminating,
    /// An object of that name exists.
    AlreadyExists,
    /// The object has changed since it was observed.
    Changed,
    /// The identity is not permitted to do that.
    Forbidden,
    /// The namespace's quota is used up.
    QuotaExceeded,
    /// An admission plugin or webhook has refused the object.
    AdmissionDenied,
    /// The client configuration cannot be used.
    Unusable,
    /// The server does not accept the identity, or there is none.
    Unauthenticated,
    /// The server rejects the object or request as invalid.
    Invalid,
    /// The server throttles requests.
    TooManyRequests,
    /// The server could not be reached or cannot answer now.
    Unavailable,
    /// No answer came in time; the request may have been carried out.
    TimedOut,
    /// The answer is larger than is read.
    TooLarge,
    /// The server failed, or its answer cannot be read; the request may have been carried out.
    Internal,
}

/// A call to an API server that failed; the resource is an object, such as `secret clusters-1/pull-secret`.
pub type KubernetesError = ServiceError<ErrorKind>;

// === impl ErrorKind ===

impl ErrorKind {
    /// Status 403 has several meanings, most of which only the message distinguishes.
    fn of_forbidden(status: &Status) -> Self {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let is_terminating = |reason: &str| reason == "NamespaceTerminating";
        let is_cause = causes.map(|cause| cause.reason.as_str()).any(is_terminating);
        if is_cause || status.message.contains("is being terminated") {
            Self::NamespaceTerminating
        } else if status.message.contains("status unknown for quota") {
            // The usage of a new quota has not been computed yet.
            Self::Unavailable
        } else if status.message.contains("exceeded quota") {
            Self::QuotaExceeded
        } else if is_admission(&status.message) {
            Self::AdmissionDenied
        } else {
            Self::Forbidden
        }
    }

    fn of_status(status: &Status) -> Self {
        match (status.code, status.reason.as_str()) {
            // An answer that cannot be parsed did not come from an API server.
            (404, "Failed to parse error data") => Self::Invalid,
            (404, _) if is_about_namespace(status) => Self::NamespaceMissing,
            (404, _) => Self::NotFound,
            (409, "AlreadyExists") => Self::AlreadyExists,
            (409, _) => Self::Changed,
            (401, _) => Self::Unauthenticated,
            (403, _) => Self::of_forbidden(status),
            (408 | 504, _) => Self::TimedOut,
            (429, _) => Self::TooManyRequests,
            // The server no longer knows the version to watch from; a new list works.
            (410 | 503, _) => Self::Unavailable,
            (400..=499, _) if is_admission(&status.message) => Self::AdmissionDenied,
            (400..=499, _) => Self::Invalid,
            _ if is_admission(&status.message) && status.message.contains("denied") => Self::AdmissionDenied,
            _ => Self::Internal,
        }
    }
}

fn is_about_namespace(status: &Status) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|details| details.kind == "namespaces") || status.message.starts_with("namespaces ")
}

fn is_admission(message: &str) -> bool {
    message.contains("admission webhook") || message.contains("ValidatingAdmissionPolicy")
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFound => "not found",
            Self::NamespaceMissing => "its namespace does not exist",
            Self::NamespaceTerminating => "its namespace is being deleted",
            Self::AlreadyExists => "already exists",
            Self::Changed => "has changed since it was observed",
            Self::Forbidden => "permission denied",
            Self::QuotaExceeded => "the namespace's quota is used up",
            Self::AdmissionDenied => "refused by admission",
            Self::Unusable => "not usable",
            Self::Unauthenticated => "not authenticated",
            Self::Invalid => "the server rejects it as invalid",
            Self::TooManyRequests => "the server throttles requests",
            Self::Unavailable => "the API server is unavailable",
            Self::TimedOut => "no answer in time",
            Self::TooLarge => "the answer is too large",
            Self::Internal => "the API server failed",
        })
    }
}

impl Kind for ErrorKind {
    type Operation = Verb;

    fn is_transient(self) -> bool {
        matches!(self, Self::TooManyRequests | Self::Unavailable | Self::TimedOut | Self::Internal)
    }

    fn hint(self, operation: Verb) -> Option<String> {
        let hint = match self {
            Self::NamespaceMissing => {
                "the placement adapter creates the namespace: check what it has reported for this cluster"
            }
            Self::NamespaceTerminating => "wait until the namespace has gone and placement has created it anew",
            Self::Forbidden => {
                return Some(format!(
                    "allow the identity that this program runs with to {operation} it (Role, RoleBinding)"
                ));
            }
            Self::QuotaExceeded => "raise the namespace's ResourceQuota for secrets, or remove what is not needed",
            Self::AdmissionDenied => "the refusal names the policy: allow this Secret there",
            Self::Unauthenticated => "check the kubeconfig or the pod's service account token",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// Beginnings of quotations in a server's refusals: of the whole patched object if it cannot be read, and of an applied value
/// that is of another type than its field. Unlike in other refusals, the content of Secrets is not redacted there.
const QUOTATIONS: [&str; 2] = ["patch: Invalid value: ", ", got "];

/// Classifies the client library's error. Neither its messages nor the server's are forwarded where they may quote an object.
pub(crate) fn classify(verb: Verb, object: &str, error: &kube::Error) -> KubernetesError {
    let failed = |kind| KubernetesError::new(verb, object, kind);
    match error {
        kube::Error::Api(status) => {
            let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            let retry_after = Some(u64::from(seconds)).filter(|seconds| *seconds > 0).map(Duration::from_secs);
            let classified = KubernetesError { retry_after, ..failed(ErrorKind::of_status(status)) };
            if status.reason == "Failed to parse error data" {
                return classified.with_detail(format!("HTTP status {}", status.code));
            }
            classified.with_detail(without_quotation(&status.message))
        }
        kube::Error::Auth(_) => failed(ErrorKind::Unauthenticated).with_detail("no credentials"),
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => {
            failed(ErrorKind::Internal).with_detail("the answer cannot be read")
        }
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) | kube::Error::TlsRequired => {
            failed(ErrorKind::Invalid)
        }
        other if is_timeout(other) => failed(ErrorKind::TimedOut),
        other => failed(ErrorKind::Unavailable).with_detail(causes::innermost(other)),
    }
}

/// Returns the HTTP status of an answer that is an error; of a call without an answer that of its cause.
pub(crate) fn status_code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        kube::Error::Auth(_) => 401,
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => 200,
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) | kube::Error::TlsRequired => 400,
        other if is_timeout(other) => calls::TIMED_OUT,
        _ => calls::UNREACHABLE,
    }
}

/// The server's message up to where it quotes an object.
fn without_quotation(message: &str) -> String {
    let quotations = QUOTATIONS.iter().filter_map(|beginning| Some(message.find(beginning)? + beginning.len()));
    match quotations.min().and_then(|end| message.get(..end)) {
        Some(before) => format!("{before}(not shown: it may hold content)"),
        None => message.to_owned(),
    }
}

/// Returns true if the response did not begin in time.
fn is_timeout(error: &kube::Error) -> bool {
    causes::cause::<ResponseTimedOut>(error).is_some()
}

#[cfg(test)]
mod tests {
    use daemon::retry::Transient as _;
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_namespace_is_missing_whatever_the_message_says() {
        let status = r#"{"status": "Failure", "code": 404, "message": "no", "details": {"kind": "namespaces"}}"#;
        let status: Status = serde_json::from_str(status).unwrap();
        let error = classify(Verb::Create, "secret a/b", &kube::Error::Api(status.boxed()));
        assert_eq!(error.kind, ErrorKind::NamespaceMissing);
    }

    #[rstest]
    #[case(Verb::Get, 404, "NotFound", "secrets \"x\" not found", ErrorKind::NotFound)]
    #[case(Verb::Create, 404, "NotFound", "namespaces \"x\" not found", ErrorKind::NamespaceMissing)]
    #[case(Verb::Create, 404, "NotFound", "the server could not find the requested resource", ErrorKind::NotFound)]
    #[case(Verb::Get, 404, "Failed to parse error data", "<html>", ErrorKind::Invalid)]
    #[case(Verb::Create, 409, "AlreadyExists", "secrets \"x\" already exists", ErrorKind::AlreadyExists)]
    #[case(Verb::Apply, 409, "Conflict", "the object has been modified", ErrorKind::Changed)]
    #[case(
        Verb::Create,
        403,
        "Forbidden",
        "secrets is forbidden: User \"x\" cannot create resource",
        ErrorKind::Forbidden
    )]
    #[case(
        Verb::Create,
        403,
        "Forbidden",
        "secrets \"x\" is forbidden: exceeded quota: q, requested: 1",
        ErrorKind::QuotaExceeded
    )]
    #[case(
        Verb::Create,
        403,
        "Forbidden",
        "unable to create new content in namespace x because it is being terminated",
        ErrorKind::NamespaceTerminating
    )]
    #[case(
        Verb::Create,
        403,
        "Forbidden",
        "admission webhook \"a.b.c\" denied the request: no",
        ErrorKind::AdmissionDenied
    )]
    #[case(
        Verb::Create,
        400,
        "BadRequest",
        "admission webhook \"a.b.c\" denied the request: no",
        ErrorKind::AdmissionDenied
    )]
    #[case(Verb::Apply, 422, "Invalid", "Secret \"x\" is invalid: type: field is immutable", ErrorKind::Invalid)]
    #[case(Verb::Get, 401, "Unauthorized", "Unauthorized", ErrorKind::Unauthenticated)]
    #[case(Verb::Get, 429, "TooManyRequests", "too many requests", ErrorKind::TooManyRequests)]
    #[case(Verb::Get, 500, "InternalError", "etcdserver: no leader", ErrorKind::Internal)]
    #[case(Verb::Get, 503, "ServiceUnavailable", "apiserver is shutting down", ErrorKind::Unavailable)]
    #[case(Verb::Get, 504, "Timeout", "request did not complete", ErrorKind::TimedOut)]
    fn statuses_are_classified(
        #[case] verb: Verb,
        #[case] code: u16,
        #[case] reason: &str,
        #[case] message: &str,
        #[case] expected: ErrorKind,
    ) {
        let status = Status::failure(message, reason).with_code(code);
        let error = classify(verb, "secret a/b", &kube::Error::Api(status.boxed()));
        assert_eq!(error.kind, expected);
        assert_eq!(error.is_transient(), code == 429 || code >= 500);
        assert!(!error.to_string().contains("<html>"));
    }

    /// Refusals of Kubernetes 1.37, with the base64 of a canary in the first.
    #[rstest]
    #[case::patch(
        r#" "" is invalid: patch: Invalid value: "{\"data\":{\"a\":1,\"key\":\"YzRuNHJ5\"},\"kind\":\"Secret\"}": json: cannot unmarshal number"#,
        r#""" is invalid: patch: Invalid value: (not shown: it may hold content)"#
    )]
    #[case::apply(
        r#"failed to create typed patch object (/; /v1, Kind=Secret): .data.a: expected string, got &value.valueUnstructured{Value:"YzRuNHJ5"}"#,
        "failed to create typed patch object (/; /v1, Kind=Secret): .data.a: expected string, got (not shown: it may hold content)"
    )]
    #[case::field(
        "Secret \"x\" is invalid: type: field is immutable",
        "Secret \"x\" is invalid: type: field is immutable"
    )]
    fn objects_that_a_server_quotes_are_not_forwarded(#[case] message: &str, #[case] detail: &str) {
        let status = Status::failure(message, "Invalid").with_code(422);
        let error = classify(Verb::Apply, "secret a/b", &kube::Error::Api(status.boxed()));
        assert_eq!(error.detail.as_deref(), Some(detail));
        assert!(!format!("{error} {error:?}").contains("YzRuNHJ5"));
    }

    #[test]
    fn an_error_names_action_and_object() {
        let error = KubernetesError::new(Verb::Create, "secret a/b", ErrorKind::NamespaceMissing);
        assert_eq!(error.to_string(), "cannot create secret a/b: its namespace does not exist");
        assert!(error.hint().unwrap().contains("placement"));
    }
}
