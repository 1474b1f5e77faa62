//! RFC 9457 problems with HyperFleet's codes: the answers to requests that were not carried out.

mod domain;
mod rejection;

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::excerpt::excerpt;

pub use rejection::Rejection;

/// The answer to a request that was not carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The contract's code.
    pub code: Code,
    /// The status, if it differs from the code's own.
    pub status: Option<StatusCode>,
    /// The cause and the remedy, for people; never a driver's text, never a credential.
    pub detail: String,
    /// The members or parameters at fault, if known.
    pub errors: Vec<FieldError>,
}

/// One rule that one member or parameter breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FieldError {
    /// The member's path or the parameter's name.
    pub field: String,
    /// The given value, unchanged, if it is harmless to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    pub value: Option<Value>,
    /// The kind of rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("enum" = [
        "required", "min", "max", "min_length", "max_length", "pattern", "enum", "format", "unique",
    ]))]
    pub constraint: Option<&'static str>,
    /// The rule, for people.
    pub message: String,
}

fleet_model::problem_codes! {
    /// The error codes of HyperFleet's API, which clients key on.
    pub enum Code {
        /// A member or parameter breaks a rule.
        Validation = "VAL-000", BAD_REQUEST, "Validation Failed", "validation-error";
        /// The search, order or fields parameter, or an empty PATCH.
        BadRequest = "VAL-005", BAD_REQUEST, "Bad Request", "bad-request";
        /// A body that is not JSON of the expected form.
        Malformed = "VAL-006", BAD_REQUEST, "Malformed Request", "malformed-request";
        /// No credentials, or no identity in them.
        Unauthenticated = "AUT-001", UNAUTHORIZED, "Authentication Required", "authentication-error";
        /// Credentials that cannot be used.
        InvalidCredentials = "AUT-002", UNAUTHORIZED, "Invalid Credentials", "authentication-error";
        /// A token that has expired.
        InvalidToken = "AUT-003", UNAUTHORIZED, "Invalid Token", "authentication-error";
        /// The caller may not do that.
        PermissionDenied = "AUZ-001", FORBIDDEN, "Permission Denied", "permission-denied";
        /// Nothing is served at that path.
        NoEndpoint = "NTF-000", NOT_FOUND, "Endpoint Not Found", "not-found";
        /// There is no such resource.
        NotFound = "NTF-001", NOT_FOUND, "Resource Not Found", "not-found";
        /// Another resource has that name or id.
        Conflict = "CNF-001", CONFLICT, "Resource Conflict", "conflict";
        /// The resource has another generation than `If-Match` says.
        PreconditionFailed = "CNF-002", PRECONDITION_FAILED, "Precondition Failed", "conflict";
        /// The resource's state, its children or its references forbid it.
        State = "CNF-003", CONFLICT, "State Conflict", "conflict";
        /// The change stream does not hold what came after that version, or the database was restored since.
        Gone = "CNF-004", GONE, "Resource Version Too Old", "conflict";
        /// A body or header that is too large.
        TooLarge = "LMT-002", PAYLOAD_TOO_LARGE, "Request Too Large", "limit-exceeded";
        /// A defect of this server; its log says more, under the same trace id.
        Internal = "INT-001", INTERNAL_SERVER_ERROR, "Internal Server Error", "internal-error";
        /// The database is unavailable; try again.
        Unavailable = "SVC-001", SERVICE_UNAVAILABLE, "Service Unavailable", "service-unavailable";
        /// It took too long; try again.
        Timeout = "SVC-002", GATEWAY_TIMEOUT, "Service Timeout", "service-unavailable";
    }
}

// === impl Problem ===

impl Problem {
    /// Returns a problem with that code.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, status: None, detail: detail.into(), errors: Vec::new() }
    }

    /// Returns a problem for a broken rule.
    pub fn validation(detail: impl Into<String>) -> Self {
        Self::new(Code::Validation, detail)
    }

    /// Returns a problem for a body of another form than expected.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(Code::Malformed, detail)
    }

    /// Returns a problem for a resource that does not exist.
    pub fn not_found(kind: &str, id: &str) -> Self {
        Self::new(Code::NotFound, format!("{kind} with id='{}' not found", excerpt(id)))
    }

    /// Returns a problem for a state that forbids the request.
    pub fn state(detail: impl Into<String>) -> Self {
        Self::new(Code::State, detail)
    }

    /// Returns the problem with another status than its code's own.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// Returns the problem with the members or parameters at fault.
    #[must_use]
    pub fn at(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = errors;
        self
    }

    /// Returns the status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| self.code.status())
    }
}

// === impl FieldError ===

impl FieldError {
    /// Returns an error of that member or parameter.
    pub fn new(field: impl Into<String>, constraint: &'static str, message: impl Into<String>) -> Self {
        Self { field: field.into(), value: None, constraint: Some(constraint), message: message.into() }
    }

    /// Returns the error with the given value.
    #[must_use]
    pub fn with_value(mut self, value: impl Into<Value>) -> Self {
        self.value = Some(value.into());
        self
    }
}
