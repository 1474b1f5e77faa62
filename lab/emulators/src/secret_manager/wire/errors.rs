//! The `google.rpc` messages that travel beside an error.

use std::collections::BTreeMap;

use prost::Message;
use serde::Serialize;

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<prost_types::Any>,
}

/// The rule that refused the call, for programs.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct ErrorInfo {
    #[prost(string, tag = "1")]
    pub(crate) reason: String,
    #[prost(string, tag = "2")]
    pub(crate) domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(crate) metadata: BTreeMap<String, String>,
}

/// The delay before a retry.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub(crate) retry_delay: Option<prost_types::Duration>,
}

/// The invalid members of the request.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) field_violations: Vec<FieldViolation>,
}

/// One wrong member.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct FieldViolation {
    #[prost(string, tag = "1")]
    pub(crate) field: String,
    #[prost(string, tag = "2")]
    pub(crate) description: String,
}

/// Links to documentation.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct Help {
    #[prost(message, repeated, tag = "1")]
    pub(crate) links: Vec<Link>,
}

/// One page to read.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct Link {
    #[prost(string, tag = "1")]
    pub(crate) description: String,
    #[prost(string, tag = "2")]
    pub(crate) url: String,
}
