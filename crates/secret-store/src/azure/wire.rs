//! The documents of Key Vault's interface.

use azure_core::http::headers::{HeaderName, Headers};
use azure_security_keyvault_secrets::models::{
    Secret, SecretAttributes, SecretProperties, SetSecretParameters, UpdateSecretPropertiesParameters,
};
use azure_security_keyvault_secrets::{ResourceExt as _, ResourceId};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::fmt::rfc2822;
use secrecy::{ExposeSecret as _, SecretSlice};

use super::tags::Tags;
use super::view::Entry;

/// The content type of a content that is not UTF-8, and is kept in base64.
const BASE64: &str = "application/octet-stream;base64";

/// Result of reading a version.
pub(super) enum Got {
    Found(Found),
    Disabled,
    Absent,
}

/// A version that can be read.
pub(super) struct Found {
    pub(super) id: String,
    pub(super) content: SecretSlice<u8>,
    pub(super) tags: Tags,
}

/// A version that is to be written.
pub(super) struct New<'a> {
    pub(super) content: &'a SecretSlice<u8>,
    pub(super) is_enabled: bool,
    pub(super) tags: Tags,
}

/// A version that was written.
pub(super) struct Written {
    pub(super) id: String,
    /// In Unix seconds.
    pub(super) created: i64,
}

/// A change of a version; what is `None` stays.
#[derive(Default)]
pub(super) struct Change {
    pub(super) is_enabled: Option<bool>,
    pub(super) tags: Option<Tags>,
}

/// Returns the document that adds a version.
pub(super) fn addition(new: New<'_>) -> SetSecretParameters {
    let bytes = new.content.expose_secret();
    let (value, content_type) = match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_error) => (STANDARD.encode(bytes), Some(BASE64.to_owned())),
    };
    SetSecretParameters {
        content_type,
        secret_attributes: Some(enabled(new.is_enabled)),
        tags: Some(new.tags.into_iter().collect()),
        value: Some(value),
    }
}

/// Returns the document that changes a version.
pub(super) fn change(change: Change) -> UpdateSecretPropertiesParameters {
    UpdateSecretPropertiesParameters {
        content_type: None,
        secret_attributes: change.is_enabled.map(enabled),
        tags: change.tags.map(|tags| tags.into_iter().collect()),
    }
}

fn enabled(is_enabled: bool) -> SecretAttributes {
    SecretAttributes { enabled: Some(is_enabled), ..SecretAttributes::default() }
}

/// Returns id and time of a version that was added; `None` if the answer is not of that form.
pub(super) fn written(secret: &Secret) -> Option<Written> {
    let created = secret.attributes.as_ref()?.created?.unix_timestamp();
    Some(Written { id: secret.resource_id().ok()?.version?, created })
}

/// Returns the time of an answer, in Unix seconds.
pub(super) fn date(headers: &Headers) -> Option<i64> {
    let date = headers.get_optional_str(&HeaderName::from_static("date"))?;
    rfc2822::parse(date).ok().map(|date| date.timestamp().as_second())
}

/// Returns a version of a list; `None` if it is not of that form.
pub(super) fn entry(version: SecretProperties) -> Option<Entry> {
    let ResourceId { version: id, .. } = version.resource_id().ok()?;
    let attributes = version.attributes?;
    Some(Entry {
        id: id?,
        created: attributes.created?.unix_timestamp(),
        is_enabled: attributes.enabled.unwrap_or(true),
        tags: version.tags.unwrap_or_default().into_iter().collect(),
    })
}

/// Returns a version that was read; `None` if the answer is not of that form.
pub(super) fn found(secret: Secret) -> Option<Found> {
    let ResourceId { version: id, .. } = secret.resource_id().ok()?;
    let value = secret.value?;
    let content = match secret.content_type.as_deref() {
        Some(BASE64) => STANDARD.decode(value).ok()?,
        _ => value.into_bytes(),
    };
    Some(Found {
        id: id?,
        content: SecretSlice::from(content),
        tags: secret.tags.unwrap_or_default().into_iter().collect(),
    })
}
