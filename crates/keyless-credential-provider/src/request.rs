//! The kubelet's request.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;

use crate::interface::{API_VERSION, REQUEST};
use crate::refusal::Refusal;

/// A request for the credentials of one image. Members that a later kubelet adds are left alone.
#[derive(Debug)]
pub struct Request {
    pub(crate) image: String,
    pub(crate) token: Option<SecretString>,
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    api_version: Option<String>,
    kind: Option<String>,
    image: Option<String>,
    service_account_token: Option<SecretString>,
    service_account_annotations: Option<BTreeMap<String, String>>,
}

// === impl Request ===

impl Request {
    /// Reads a request. A message of the parser would quote values, so only the position is in the error.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let document: Document = serde_json::from_slice(bytes).map_err(|error| {
            Refusal::Request(format!("it is malformed at line {}, column {}", error.line(), error.column()))
        })?;
        if document.api_version.as_deref() != Some(API_VERSION) || document.kind.as_deref() != Some(REQUEST) {
            return Err(Refusal::Version);
        }
        Ok(Self {
            image: document.image.unwrap_or_default(),
            token: document.service_account_token,
            annotations: document.service_account_annotations.unwrap_or_default(),
        })
    }
}
