//! Refused requests: problems of RFC 9457 with HyperFleet's codes.

use serde::Serialize;

use crate::ledger::LedgerError;
use daemon::log::causes;
use daemon::retry::Transient as _;

/// The answer to a request that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The code.
    pub(crate) code: Code,
    /// Cause and remedy, for people; never a credential.
    pub(crate) detail: String,
    /// The members or parameters at fault.
    pub(crate) errors: Vec<FieldError>,
    /// The cause, for the log alone.
    pub(crate) cause: Option<String>,
    /// Seconds after which the same request may succeed.
    pub(crate) retry_after: Option<u64>,
}

/// A rule that a member or parameter breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FieldError {
    /// The member's path, or the parameter's name.
    pub(crate) field: &'static str,
    /// The kind of rule.
    pub(crate) constraint: &'static str,
    /// The rule, for people.
    pub(crate) message: String,
}

fleet_model::problem_codes! {
    /// The codes of problems, which clients key on.
    pub(crate) enum Code {
        /// A member or parameter breaks a rule.
        Validation = "VAL-001", BAD_REQUEST, "Validation Failed", "validation-error";
        /// A body that is not JSON of the expected form.
        Malformed = "VAL-006", BAD_REQUEST, "Malformed Request", "malformed-request";
        /// A body of another content type than JSON.
        MediaType = "VAL-007", UNSUPPORTED_MEDIA_TYPE, "Unsupported Media Type", "malformed-request";
        /// A method that the path does not have.
        Method = "VAL-008", METHOD_NOT_ALLOWED, "Method Not Allowed", "malformed-request";
        /// No bearer token, or one that Kubernetes does not accept for the audience.
        Unauthenticated = "AUT-001", UNAUTHORIZED, "Authentication Required", "authentication-error";
        /// The caller lacks a permission, or the request is of a web page.
        PermissionDenied = "AUZ-001", FORBIDDEN, "Permission Denied", "permission-denied";
        /// Nothing is served at that path.
        NoEndpoint = "NTF-000", NOT_FOUND, "Endpoint Not Found", "not-found";
        /// There is no such cluster, rotation, or credential of the cluster.
        NotFound = "NTF-001", NOT_FOUND, "Resource Not Found", "resource-not-found";
        /// Credentials are asked for while those of the cluster are replaced.
        Rotating = "CNF-001", CONFLICT, "Resource Conflict", "resource-conflict";
        /// A rotation is asked for while another one is on its way.
        RotationOpen = "CNF-002", CONFLICT, "Resource Conflict", "resource-conflict";
        /// The state of the cluster forbids it.
        State = "CNF-003", CONFLICT, "State Conflict", "resource-conflict";
        /// The caller has made too many requests.
        RateLimited = "LMT-001", TOO_MANY_REQUESTS, "Rate Limit Exceeded", "limit-exceeded";
        /// The body is too large.
        TooLarge = "LMT-002", PAYLOAD_TOO_LARGE, "Request Too Large", "limit-exceeded";
        /// A defect of this service; its log says more, under the same trace id.
        Internal = "INT-001", INTERNAL_SERVER_ERROR, "Internal Server Error", "internal-error";
        /// The ledger, Kubernetes or the HyperFleet API is unavailable, or the service is busy: try again.
        Unavailable = "SVC-001", SERVICE_UNAVAILABLE, "Service Unavailable", "service-unavailable";
        /// It took too long: try again.
        Timeout = "SVC-002", GATEWAY_TIMEOUT, "Service Timeout", "service-unavailable";
    }
}

// === impl Problem ===

impl Problem {
    /// Returns a problem with that code.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), errors: Vec::new(), cause: None, retry_after: None }
    }

    /// Returns a problem for a member or parameter that breaks a rule.
    pub(crate) fn invalid(field: &'static str, constraint: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        let detail = format!("{field}: {message}");
        Self { errors: vec![FieldError { field, constraint, message }], ..Self::new(Code::Validation, detail) }
    }

    /// Returns a problem for a part that is unavailable.
    pub(crate) fn unavailable(detail: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), retry_after: Some(1), ..Self::new(Code::Unavailable, detail) }
    }

    /// Returns true for a request that was denied, which is recorded.
    pub(crate) fn is_denial(&self) -> bool {
        matches!(self.code, Code::Unauthenticated | Code::PermissionDenied)
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        if error.is_transient() {
            return Self::unavailable("the ledger is not available: try again", causes(&error));
        }
        match error {
            LedgerError::TooLate(_) | LedgerError::Held(_) => Self::new(Code::State, error.to_string()),
            _ => {
                let detail = "an internal error; the service's log says more";
                Self { cause: Some(causes(&error)), ..Self::new(Code::Internal, detail) }
            }
        }
    }
}
