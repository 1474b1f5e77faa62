//! A secret as answers show it.

use std::collections::BTreeMap;

use serde::Serialize;

/// A version, or a secret by its newest one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Option<String>,
    pub(super) attributes: Attributes,
    pub(super) tags: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(super) deletion: Option<Deletion>,
}

/// Times are Unix seconds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attributes {
    pub(super) enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nbf: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exp: Option<i64>,
    pub(super) created: i64,
    pub(super) updated: i64,
    pub(super) recovery_level: String,
    pub(super) recoverable_days: u16,
}

/// Times are Unix seconds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deletion {
    pub(super) recovery_id: String,
    pub(super) deleted_date: i64,
    pub(super) scheduled_purge_date: i64,
}
