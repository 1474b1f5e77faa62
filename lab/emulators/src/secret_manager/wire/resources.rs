//! Secrets and their versions, as `google.cloud.secretmanager.v1` numbers and names them.

use std::collections::BTreeMap;
use std::fmt;

use prost::Message;
use prost_types::{Duration, Timestamp};
use serde::{Deserialize, Serialize};

use super::json::{self, unset};
use super::values::VersionState;

/// A secret: everything but the content.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Secret {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) replication: Option<Replication>,
    #[prost(message, optional, tag = "3")]
    #[serde(alias = "create_time", with = "json::timestamp", skip_serializing_if = "unset")]
    pub(crate) create_time: Option<Timestamp>,
    #[prost(btree_map = "string, string", tag = "4")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) labels: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "5")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) topics: Vec<Topic>,
    #[prost(message, optional, tag = "6")]
    #[serde(alias = "expire_time", with = "json::timestamp", skip_serializing_if = "unset")]
    pub(crate) expire_time: Option<Timestamp>,
    /// Input only: answered as `expire_time`.
    #[prost(message, optional, tag = "7")]
    #[serde(with = "json::duration", skip_serializing_if = "unset")]
    pub(crate) ttl: Option<Duration>,
    #[prost(string, tag = "8")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) etag: String,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) rotation: Option<Rotation>,
    #[prost(btree_map = "string, int64", tag = "11")]
    #[serde(alias = "version_aliases", with = "json::int64_map", skip_serializing_if = "unset")]
    pub(crate) version_aliases: BTreeMap<String, i64>,
    #[prost(btree_map = "string, string", tag = "13")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[prost(message, optional, tag = "14")]
    #[serde(alias = "version_destroy_ttl", with = "json::duration", skip_serializing_if = "unset")]
    pub(crate) version_destroy_ttl: Option<Duration>,
    #[prost(message, optional, tag = "15")]
    #[serde(alias = "customer_managed_encryption", skip_serializing_if = "unset")]
    pub(crate) customer_managed_encryption: Option<Encryption>,
    /// Input only: accepted, never answered.
    #[prost(btree_map = "string, string", tag = "16")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) tags: BTreeMap<String, String>,
}

/// Location of the content; exactly one of the two is set.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Replication {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) automatic: Option<Automatic>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "user_managed", skip_serializing_if = "unset")]
    pub(crate) user_managed: Option<UserManaged>,
}

/// Everywhere.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Automatic {
    #[prost(message, optional, tag = "1")]
    #[serde(alias = "customer_managed_encryption", skip_serializing_if = "unset")]
    pub(crate) customer_managed_encryption: Option<Encryption>,
}

/// In chosen locations.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UserManaged {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) replicas: Vec<Replica>,
}

/// One chosen location.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Replica {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) location: String,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "customer_managed_encryption", skip_serializing_if = "unset")]
    pub(crate) customer_managed_encryption: Option<Encryption>,
}

/// The caller's own key.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Encryption {
    #[prost(string, tag = "1")]
    #[serde(alias = "kms_key_name", skip_serializing_if = "unset")]
    pub(crate) kms_key_name: String,
}

/// The topic for notifications, which are not published.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Topic {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

/// The time of rotation notifications, which are not published.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Rotation {
    #[prost(message, optional, tag = "1")]
    #[serde(alias = "next_rotation_time", with = "json::timestamp", skip_serializing_if = "unset")]
    pub(crate) next_rotation_time: Option<Timestamp>,
    #[prost(message, optional, tag = "2")]
    #[serde(alias = "rotation_period", with = "json::duration", skip_serializing_if = "unset")]
    pub(crate) rotation_period: Option<Duration>,
}

/// A version: everything but the content.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SecretVersion {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    #[serde(with = "json::timestamp", skip_serializing_if = "unset")]
    pub(crate) create_time: Option<Timestamp>,
    #[prost(message, optional, tag = "3")]
    #[serde(with = "json::timestamp", skip_serializing_if = "unset")]
    pub(crate) destroy_time: Option<Timestamp>,
    #[prost(enumeration = "VersionState", tag = "4")]
    #[serde(with = "json::state", skip_serializing_if = "unset")]
    pub(crate) state: i32,
    #[prost(message, optional, tag = "5")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) replication_status: Option<ReplicationStatus>,
    #[prost(string, tag = "6")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) etag: String,
    #[prost(bool, tag = "7")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) client_specified_payload_checksum: bool,
    #[prost(message, optional, tag = "8")]
    #[serde(with = "json::timestamp", skip_serializing_if = "unset")]
    pub(crate) scheduled_destroy_time: Option<Timestamp>,
    #[prost(message, optional, tag = "9")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) customer_managed_encryption: Option<EncryptionStatus>,
}

/// Location of a version's content.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ReplicationStatus {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) automatic: Option<AutomaticStatus>,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) user_managed: Option<UserManagedStatus>,
}

/// Everywhere, and under which key.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct AutomaticStatus {
    #[prost(message, optional, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) customer_managed_encryption: Option<EncryptionStatus>,
}

/// In chosen locations.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UserManagedStatus {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) replicas: Vec<ReplicaStatus>,
}

/// One location, and under which key.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ReplicaStatus {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) location: String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) customer_managed_encryption: Option<EncryptionStatus>,
}

/// The version of the caller's key with which the content is encrypted.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct EncryptionStatus {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) kms_key_version_name: String,
}

/// The content itself, which cannot be printed.
#[derive(Clone, PartialEq, Message, Serialize, Deserialize)]
#[prost(skip_debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SecretPayload {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(with = "json::bytes", skip_serializing_if = "unset")]
    pub(crate) data: Vec<u8>,
    #[prost(int64, optional, tag = "2")]
    #[serde(alias = "data_crc32c", with = "json::int64", skip_serializing_if = "unset")]
    pub(crate) data_crc32c: Option<i64>,
}

impl fmt::Debug for SecretPayload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretPayload({} bytes, redacted)", self.data.len())
    }
}
