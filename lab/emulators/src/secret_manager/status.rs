//! Errors, once for both wires: the canonical code, a message, and typed details.

use std::fmt;
use std::time::Duration;

use prost::Message;
use serde_json::{Value, json};

use super::wire::errors::{BadRequest, ErrorInfo, FieldViolation, Help, Link, RetryInfo};
use super::wire::values::duration_text;

/// The canonical code with which a call ended, as gRPC numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The call did what was asked.
    Ok = 0,
    /// The caller gave up.
    Cancelled = 1,
    /// The cause is unknown.
    Unknown = 2,
    /// The request can never succeed as written.
    InvalidArgument = 3,
    /// The time ran out; the work may or may not be done.
    DeadlineExceeded = 4,
    /// There is no such resource.
    NotFound = 5,
    /// The resource exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A quota is used up.
    ResourceExhausted = 8,
    /// The resource is in the wrong state, or its etag is another one.
    FailedPrecondition = 9,
    /// A race was lost.
    Aborted = 10,
    /// Past the end.
    OutOfRange = 11,
    /// The method exists in the real service, not here.
    Unimplemented = 12,
    /// The server broke.
    Internal = 13,
    /// The server is unavailable for a moment.
    Unavailable = 14,
    /// Stored data is lost.
    DataLoss = 15,
    /// No or wrong credentials.
    Unauthenticated = 16,
}

/// Every code with its JSON name and its HTTP status, in numeric order.
const CODES: [(Code, &str, u16); 17] = [
    (Code::Ok, "OK", 200),
    (Code::Cancelled, "CANCELLED", 499),
    (Code::Unknown, "UNKNOWN", 500),
    (Code::InvalidArgument, "INVALID_ARGUMENT", 400),
    (Code::DeadlineExceeded, "DEADLINE_EXCEEDED", 504),
    (Code::NotFound, "NOT_FOUND", 404),
    (Code::AlreadyExists, "ALREADY_EXISTS", 409),
    (Code::PermissionDenied, "PERMISSION_DENIED", 403),
    (Code::ResourceExhausted, "RESOURCE_EXHAUSTED", 429),
    (Code::FailedPrecondition, "FAILED_PRECONDITION", 400),
    (Code::Aborted, "ABORTED", 409),
    (Code::OutOfRange, "OUT_OF_RANGE", 400),
    (Code::Unimplemented, "UNIMPLEMENTED", 501),
    (Code::Internal, "INTERNAL", 500),
    (Code::Unavailable, "UNAVAILABLE", 503),
    (Code::DataLoss, "DATA_LOSS", 500),
    (Code::Unauthenticated, "UNAUTHENTICATED", 401),
];

impl Code {
    /// The name as JSON errors carry it, such as `NOT_FOUND`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The HTTP status that goes with the code.
    pub fn http(self) -> u16 {
        self.row().2
    }

    /// The name as faults are written, such as `not-found`.
    pub(crate) fn kebab(self) -> String {
        self.name().to_lowercase().replace('_', "-")
    }

    /// The error codes that a fault can answer with.
    pub(crate) fn errors() -> impl Iterator<Item = Self> {
        CODES.iter().skip(1).map(|row| row.0)
    }

    fn row(self) -> &'static (Self, &'static str, u16) {
        CODES.iter().find(|row| row.0 == self).unwrap_or(&(Self::Unknown, "UNKNOWN", 500))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A refused call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) details: Vec<Detail>,
}

/// The typed messages that Google puts beside an error's text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Detail {
    ErrorInfo(ErrorInfo),
    RetryInfo(RetryInfo),
    BadRequest(BadRequest),
    Help(Help),
}

/// Makes the short constructors, which differ in nothing but the code.
macro_rules! refusals {
    ($($name:ident => $code:ident),* $(,)?) => {
        $(pub(crate) fn $name(message: impl Into<String>) -> Self {
            Self::new(Code::$code, message)
        })*
    };
}

impl Status {
    refusals! {
        invalid => InvalidArgument,
        not_found => NotFound,
        exists => AlreadyExists,
        precondition => FailedPrecondition,
        internal => Internal,
        unimplemented => Unimplemented,
        unavailable => Unavailable,
    }

    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Vec::new() }
    }

    /// A request that is wrong at `field`, which is empty where the request as a whole is meant.
    pub(crate) fn bad_field(field: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let violation = FieldViolation { field: field.to_owned(), description: message.clone() };
        Self::invalid(message).with(Detail::BadRequest(BadRequest { field_violations: vec![violation] }))
    }

    #[must_use]
    pub(crate) fn with(mut self, detail: Detail) -> Self {
        self.details.push(detail);
        self
    }

    #[must_use]
    pub(crate) fn with_info(self, reason: &str, domain: &str, metadata: &[(&str, &str)]) -> Self {
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.with(Detail::ErrorInfo(ErrorInfo { reason: reason.to_owned(), domain: domain.to_owned(), metadata }))
    }

    #[must_use]
    pub(crate) fn with_help(self, description: &str, url: &str) -> Self {
        let link = Link { description: description.to_owned(), url: url.to_owned() };
        self.with(Detail::Help(Help { links: vec![link] }))
    }

    #[must_use]
    pub(crate) fn with_retry(self, after: Duration) -> Self {
        let retry_delay = prost_types::Duration::try_from(after).ok();
        self.with(Detail::RetryInfo(RetryInfo { retry_delay }))
    }

    /// The value of the HTTP header `Retry-After`: whole seconds, rounded up.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.iter().find_map(|detail| match detail {
            Detail::RetryInfo(RetryInfo { retry_delay: Some(delay) }) => {
                let seconds = delay.seconds.saturating_add(i64::from(delay.nanos > 0));
                u64::try_from(seconds).ok()
            }
            _ => None,
        })
    }

    /// The error document of the REST wire.
    pub(crate) fn json(&self) -> Value {
        let mut error = json!({"code": self.code.http(), "message": self.message, "status": self.code.name()});
        if !self.details.is_empty()
            && let Some(members) = error.as_object_mut()
        {
            members.insert("details".to_owned(), self.details.iter().map(Detail::json).collect());
        }
        json!({ "error": error })
    }

    /// The same on the gRPC wire, where the details travel as an encoded `google.rpc.Status`.
    pub(crate) fn grpc(self) -> tonic::Status {
        let code = tonic::Code::from_i32(self.code as i32);
        let details = self.details.iter().map(Detail::any).collect();
        let status = super::wire::errors::RpcStatus { code: self.code as i32, message: self.message.clone(), details };
        tonic::Status::with_details(code, self.message, status.encode_to_vec().into())
    }
}

impl Detail {
    fn json(&self) -> Value {
        let (name, mut value) = match self {
            Self::ErrorInfo(info) => ("ErrorInfo", json!(info)),
            Self::BadRequest(request) => ("BadRequest", json!(request)),
            Self::Help(help) => ("Help", json!(help)),
            Self::RetryInfo(RetryInfo { retry_delay }) => {
                ("RetryInfo", json!({"retryDelay": retry_delay.as_ref().map(duration_text)}))
            }
        };
        if let Some(members) = value.as_object_mut() {
            members.insert("@type".to_owned(), Value::String(type_url(name)));
        }
        value
    }

    fn any(&self) -> prost_types::Any {
        let (name, value) = match self {
            Self::ErrorInfo(info) => ("ErrorInfo", info.encode_to_vec()),
            Self::BadRequest(request) => ("BadRequest", request.encode_to_vec()),
            Self::Help(help) => ("Help", help.encode_to_vec()),
            Self::RetryInfo(retry) => ("RetryInfo", retry.encode_to_vec()),
        };
        prost_types::Any { type_url: type_url(name), value }
    }
}

fn type_url(name: &str) -> String {
    format!("type.googleapis.com/google.rpc.{name}")
}
