//! A call as it was read: its target, its page, its body.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::operation::Operation;

/// A call on secrets.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) operation: Operation,
    /// The secret's name; empty for lists of secrets.
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) page: Page,
    pub(crate) bundle: Bundle,
    /// The address of this server as the caller wrote it, such as `https://127.0.0.1:8443`.
    pub(crate) base: String,
}

/// The part of a list that is asked for.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The largest number of items.
    pub(crate) size: Option<usize>,
    /// The last item of the page before.
    pub(crate) after: Option<String>,
    /// The version of the API, for the link to the next page.
    pub(crate) api_version: String,
}

/// The body of a call that writes.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bundle {
    pub(crate) value: Option<String>,
    pub(crate) content_type: Option<String>,
    #[serde(default)]
    pub(crate) attributes: Option<Attributes>,
    pub(crate) tags: Option<BTreeMap<String, String>>,
}

/// The attributes that a caller can set; times are Unix seconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Attributes {
    pub(crate) enabled: Option<bool>,
    pub(crate) nbf: Option<i64>,
    pub(crate) exp: Option<i64>,
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Bundle(redacted)")
    }
}
