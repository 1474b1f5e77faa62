//! The messages of both wires, each declared once: field numbers for protobuf, member names for JSON.

pub(crate) mod errors;
pub(crate) mod json;
pub(crate) mod requests;
pub(crate) mod resources;
pub(crate) mod values;

pub(crate) use requests::{Change, Request, Response};
pub(crate) use resources::{Secret, SecretPayload, SecretVersion};
pub(crate) use values::VersionState;
