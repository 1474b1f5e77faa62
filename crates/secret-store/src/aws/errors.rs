//! Maps AWS's errors to [`StoreError`].

use crate::StoreError;
use crate::error::ErrorKind;
use crate::quote::quotes;

/// Codes that this crate acts on.
pub(super) const NOT_FOUND: &str = "ResourceNotFoundException";
pub(super) const EXISTS: &str = "ResourceExistsException";
pub(super) const INVALID_PARAMETER: &str = "InvalidParameterException";
const INVALID_REQUEST: &str = "InvalidRequestException";

/// A request that was not carried out, or whose answer is not known.
#[derive(Debug)]
pub(super) struct Fault {
    /// AWS's code; empty if the answer has none, or if there is none.
    pub(super) code: String,
    pub(super) error: StoreError,
}

/// An answer of AWS, or of what stands in its place.
pub(super) struct Refused<'a> {
    pub(super) status: u16,
    /// Empty if the answer is not AWS's own.
    pub(super) code: &'a str,
    pub(super) message: &'a str,
    /// The action that the request needs.
    pub(super) needs: &'static str,
    /// The text that no error may quote.
    pub(super) secret: Option<&'a str>,
}

/// Kind, detail and remedy of a refusal.
pub(super) struct Classified {
    pub(super) kind: ErrorKind,
    pub(super) detail: String,
    pub(super) hint: Option<String>,
}

/// Returns kind, detail and remedy of a refusal.
pub(super) fn classify(refused: &Refused<'_>) -> Classified {
    let Refused { status, code, message, needs, secret } = *refused;
    let kind = kind_of(status, code, message);
    let is_quotable = is_quotable(code) && !secret.is_some_and(|secret| quotes(message, secret));
    let detail = match (code, message) {
        ("", _) => format!("HTTP status {status}"),
        (_, "") => code.to_owned(),
        _ if is_quotable => format!("{code}: {message}"),
        _ => code.to_owned(),
    };
    let detail = if kind == ErrorKind::PermissionDenied { format!("needs {needs}; {detail}") } else { detail };
    Classified { kind, detail, hint: hint(kind, code, needs) }
}

fn hint(kind: ErrorKind, code: &str, needs: &str) -> Option<String> {
    let hint = match (kind, code) {
        (ErrorKind::PermissionDenied, _) => {
            return Some(format!("allow the role {needs} on the secret, and the use of its KMS key"));
        }
        (ErrorKind::PendingDeletion, _) => {
            "restore it (aws secretsmanager restore-secret --secret-id NAME), or wait until it is gone: a deletion without \
             a recovery window takes up to a few minutes"
        }
        (ErrorKind::Unauthenticated, "RequestExpired" | "RequestTimeTooSkewed") => "set the machine's clock",
        (ErrorKind::Unauthenticated, _) => {
            "check AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE and the trust policy of the role, or the keys of the environment"
        }
        (ErrorKind::Invalid, "EncryptionFailure" | "DecryptionFailure") => {
            "check that the secret's KMS key exists and is enabled"
        }
        (ErrorKind::QuotaExceeded, "LimitExceededException") => {
            "delete what is not used, or ask for a higher quota; a secret may have 20 labels and 50 tags"
        }
        (ErrorKind::QuotaExceeded, _) => "run fewer Jobs at once, or ask for a higher rate",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Answers are 400 for nearly everything; the code says what it is.
fn kind_of(status: u16, code: &str, message: &str) -> ErrorKind {
    match code {
        NOT_FOUND => ErrorKind::NotFound,
        EXISTS => ErrorKind::AlreadyExists,
        // Of a secret in use: "marked for deletion", "marked deleted"; of a name: "scheduled for deletion".
        INVALID_REQUEST if message.contains("deletion") || message.contains("marked deleted") => {
            ErrorKind::PendingDeletion
        }
        INVALID_REQUEST
        | INVALID_PARAMETER
        | "InvalidNextTokenException"
        | "ValidationException"
        | "SerializationException"
        | "MalformedPolicyDocumentException"
        | "PreconditionNotMetException"
        | "UnknownOperationException"
        | "EncryptionFailure"
        | "DecryptionFailure" => ErrorKind::Invalid,
        "AccessDeniedException" | "AccessDenied" | "UnauthorizedOperation" => ErrorKind::PermissionDenied,
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "ExpiredTokenException"
        | "ExpiredToken"
        | "InvalidSignatureException"
        | "SignatureDoesNotMatch"
        | "IncompleteSignature"
        | "IncompleteSignatureException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "RequestExpired"
        | "RequestTimeTooSkewed"
        | "NotAuthorized"
        | "OptInRequired" => ErrorKind::Unauthenticated,
        "LimitExceededException"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "TooManyRequestsException"
        | "RequestLimitExceeded"
        | "RequestThrottled" => ErrorKind::QuotaExceeded,
        "InternalServiceError" | "InternalServiceErrorException" | "InternalFailure" => ErrorKind::Internal,
        "ServiceUnavailable" | "ServiceUnavailableException" => ErrorKind::Unavailable,
        _ => of_http(status),
    }
}

/// Maps an answer without a known code, such as that of a proxy: its 404 says nothing about secrets.
fn of_http(status: u16) -> ErrorKind {
    match status {
        401 => ErrorKind::Unauthenticated,
        403 => ErrorKind::PermissionDenied,
        408 | 504 => ErrorKind::TimedOut,
        429 => ErrorKind::QuotaExceeded,
        300..=499 => ErrorKind::Invalid,
        // 200: an answer that is not of its form.
        200 | 500 => ErrorKind::Internal,
        _ => ErrorKind::Unavailable,
    }
}

/// Returns true if messages with this code tell about the secret's state or the identity's rights only. Others may repeat what
/// was sent: those about a signature quote headers and with them the session's token, those about a value the value.
fn is_quotable(code: &str) -> bool {
    matches!(
        code,
        NOT_FOUND
            | EXISTS
            | INVALID_REQUEST
            | INVALID_PARAMETER
            | "AccessDeniedException"
            | "AccessDenied"
            | "EncryptionFailure"
            | "DecryptionFailure"
            | "LimitExceededException"
            | "Throttling"
            | "ThrottlingException"
    )
}
