//! The documents of the KV engine, version 2.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::contract::{LiveVersion, NewVersion, VersionState};
use crate::{Version, VersionNumber, VersionSummary};

/// The entry of a version's data that holds a content that is UTF-8.
const TEXT: &str = "pull-secret";
/// The entry of a version's data that holds another content, in base64.
const BASE64: &str = "pull-secret-base64";
/// The entry of a version's data that holds the record.
const RECORD: &str = "record";

/// A refusal.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Refusal {
    pub(super) errors: Option<Vec<String>>,
    pub(super) warnings: Option<Vec<String>>,
}

/// Custom metadata: texts by key.
pub(super) type Custom = BTreeMap<String, String>;

/// A secret without its content.
#[derive(Deserialize)]
pub(super) struct SecretInfo {
    pub(super) created_time: String,
    /// Counts the changes of the metadata; only OpenBao has it.
    pub(super) current_metadata_version: Option<u64>,
    pub(super) custom_metadata: Option<Custom>,
    #[serde(default)]
    versions: BTreeMap<String, VersionInfo>,
}

/// The state of a version.
#[derive(Deserialize)]
struct VersionInfo {
    /// Empty, or the time from which the content cannot be read; it may lie ahead.
    #[serde(default)]
    deletion_time: String,
    #[serde(default)]
    destroyed: bool,
}

/// One page of a folder.
#[derive(Deserialize)]
pub(super) struct Folder {
    pub(super) keys: Vec<String>,
    /// Only of a detailed list.
    pub(super) key_info: Option<BTreeMap<String, Value>>,
}

/// A mount of a secrets engine.
#[derive(Deserialize)]
pub(super) struct Mount {
    pub(super) options: Option<BTreeMap<String, String>>,
}

/// A version that was read.
#[derive(Deserialize)]
struct VersionData {
    data: Option<Map<String, Value>>,
    metadata: Option<VersionInfo>,
}

/// A token that was issued.
#[derive(Deserialize)]
pub(super) struct Issued {
    pub(super) auth: IssuedToken,
}

#[derive(Deserialize)]
pub(super) struct IssuedToken {
    client_token: String,
    /// In seconds; 0 if the token does not expire.
    pub(super) lease_duration: u64,
}

/// Changes of a secret's metadata.
#[derive(Serialize)]
pub(super) struct Change {
    pub(super) custom_metadata: Custom,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata_cas: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_versions: Option<usize>,
}

/// Returns what the entry `data` of an answer holds; `None` if it is not of that form.
pub(super) fn data<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    #[derive(Deserialize)]
    struct Envelope<T> {
        data: T,
    }
    // The parser's error would quote the value.
    serde_json::from_slice::<Envelope<T>>(body).ok().map(|envelope| envelope.data)
}

/// Returns the body of a request that adds a version if the newest one is the one before.
pub(super) fn addition(new: &NewVersion<'_>) -> String {
    let bytes = new.content.expose_secret();
    let (key, content) = match std::str::from_utf8(bytes) {
        Ok(text) => (TEXT, text.to_owned()),
        Err(_error) => (BASE64, STANDARD.encode(bytes)),
    };
    let mut data = Map::from_iter([(key.to_owned(), Value::String(content))]);
    if !new.record.is_empty() {
        data.insert(RECORD.to_owned(), json!(new.record));
    }
    json!({"options": {"cas": new.number.get() - 1}, "data": data}).to_string()
}

/// Returns the number of a version that was added.
pub(super) fn added(body: &[u8]) -> Option<VersionNumber> {
    #[derive(Deserialize)]
    struct Added {
        version: u64,
    }
    data::<Added>(body).and_then(|added| VersionNumber::new(added.version))
}

/// Returns the version that an answer holds; the body of a "not found" holds one that was deleted or destroyed. `None` if the
/// answer is not of that form.
pub(super) fn version(body: &[u8]) -> Option<Version> {
    let VersionData { data, metadata } = data(body)?;
    match (data, metadata) {
        (Some(data), _) => Some(Version::Live(live(data))),
        (None, Some(VersionInfo { destroyed: true, .. })) => Some(Version::Destroyed),
        (None, Some(VersionInfo { destroyed: false, .. })) => Some(Version::Disabled),
        (None, None) => None,
    }
}

/// A version that something else has added has other entries. Its content is then the whole object: it is a version all the
/// same, and no pull secret.
fn live(mut data: Map<String, Value>) -> LiveVersion {
    let text = data.get(TEXT).and_then(Value::as_str).map(|text| text.as_bytes().to_vec());
    let decoded = || STANDARD.decode(data.get(BASE64)?.as_str()?).ok();
    let content = text.or_else(decoded).unwrap_or_else(|| Value::Object(data.clone()).to_string().into_bytes());
    let record = match data.remove(RECORD) {
        Some(Value::Object(record)) => {
            record.into_iter().filter_map(|(key, value)| Some((key, text_of(value)?))).collect()
        }
        _ => BTreeMap::new(),
    };
    LiveVersion { content: SecretSlice::from(content), record }
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

// === impl SecretInfo ===

impl SecretInfo {
    /// Returns the versions, newest first, with their state as of `now`.
    pub(super) fn versions(&self, now: Timestamp) -> Vec<VersionSummary> {
        let summary = |(number, info): (&String, &VersionInfo)| {
            Some(VersionSummary { number: number.parse().ok()?, state: info.state(now) })
        };
        let mut versions: Vec<_> = self.versions.iter().filter_map(summary).collect();
        versions.sort_unstable_by_key(|version| std::cmp::Reverse(version.number));
        versions
    }
}

// === impl VersionInfo ===

impl VersionInfo {
    fn state(&self, now: Timestamp) -> VersionState {
        let is_past = |time: &str| time.parse::<Timestamp>().map_or(!time.is_empty(), |time| time <= now);
        match self {
            Self { destroyed: true, .. } => VersionState::Destroyed,
            Self { deletion_time, .. } if is_past(deletion_time) => VersionState::Disabled,
            _ => VersionState::Live,
        }
    }
}

// === impl IssuedToken ===

impl IssuedToken {
    pub(super) fn into_token(self) -> SecretString {
        self.client_token.into()
    }
}
