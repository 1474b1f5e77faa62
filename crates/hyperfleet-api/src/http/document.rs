//! The bodies of problems and of `/api/hyperfleet`; their `OpenAPI` schemas are derived from these types.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::{Code, FieldError};

/// The reason for which a request was not carried out (RFC 9457).
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemDocument<'a> {
    /// The type of the problem.
    #[serde(rename = "type")]
    #[schemars(extend("format" = "uri"))]
    pub(crate) kind: &'a str,
    /// The name of the type, for people.
    pub(crate) title: &'a str,
    /// The HTTP status.
    #[schemars(with = "i32", range(min = 400, max = 599))]
    pub(crate) status: u16,
    /// The cause and the next step, for people.
    pub(crate) detail: &'a str,
    /// The path of the request.
    pub(crate) instance: &'a str,
    /// The code of the problem, for programs.
    #[schemars(extend("enum" = codes()))]
    pub(crate) code: &'a str,
    /// The time of the response.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub(crate) timestamp: Timestamp,
    /// The id of the request in the server's log.
    #[schemars(extend("format" = "uuid"))]
    pub(crate) trace_id: &'a str,
    /// The members or parameters at fault.
    #[serde(skip_serializing_if = "<[FieldError]>::is_empty")]
    #[schemars(length(min = 1))]
    pub(crate) errors: &'a [FieldError],
}

/// The service's name and version.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Service")]
pub(crate) struct ServiceDocument<'a> {
    /// The id of the service.
    #[schemars(extend("enum" = ["hyperfleet"]))]
    pub(crate) id: &'a str,
    /// The kind of the service.
    #[schemars(extend("enum" = ["API"]))]
    pub(crate) kind: &'a str,
    /// The path of this document.
    #[schemars(extend("format" = "uri-reference"))]
    pub(crate) href: &'a str,
    /// The version of the build.
    pub(crate) version: &'a str,
    /// The time of the build.
    pub(crate) build_time: &'a str,
}

fn codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.as_str()).collect()
}
