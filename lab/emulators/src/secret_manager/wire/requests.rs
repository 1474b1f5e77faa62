//! Requests and responses; requests of the same shape share a message.

use prost::Message;
use prost::bytes::Buf;
use prost_types::FieldMask;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::json::unset;
use super::resources::{Secret, SecretPayload, SecretVersion};
use super::values::VersionState;
use crate::secret_manager::method::Method;

/// One call, the same whichever wire brought it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    ListSecrets(List),
    CreateSecret(Create),
    AddVersion(Add),
    GetSecret(Named),
    UpdateSecret(Update),
    DeleteSecret(Tagged),
    ListVersions(List),
    GetVersion(Named),
    AccessVersion(Named),
    ChangeVersion(Change, Tagged),
    TestIamPermissions(TestIamPermissions),
    /// A method that the real service has and this one does not; the text is the resource.
    Unserved(Method, String),
}

/// Changes of a version's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Disable,
    Enable,
    Destroy,
}

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Response {
    Secrets(SecretsPage),
    Secret(Secret),
    Versions(VersionsPage),
    Version(SecretVersion),
    Accessed(Accessed),
    Permissions(Permissions),
    Empty,
}

/// Asks for a page of `parent`'s children.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct List {
    #[prost(string, tag = "1")]
    pub(crate) parent: String,
    #[prost(int32, tag = "2")]
    pub(crate) page_size: i32,
    #[prost(string, tag = "3")]
    pub(crate) page_token: String,
    #[prost(string, tag = "4")]
    pub(crate) filter: String,
}

/// Asks for a new secret.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Create {
    #[prost(string, tag = "1")]
    pub(crate) parent: String,
    #[prost(string, tag = "2")]
    pub(crate) secret_id: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) secret: Option<Secret>,
}

/// Asks for a new version.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Add {
    #[prost(string, tag = "1")]
    pub(crate) parent: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) payload: Option<SecretPayload>,
}

/// Asks for one thing by name.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Named {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

/// Asks for a change of a secret.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Update {
    #[prost(message, optional, tag = "1")]
    pub(crate) secret: Option<Secret>,
    #[prost(message, optional, tag = "2")]
    pub(crate) update_mask: Option<FieldMask>,
}

/// Asks for a change of one thing by name, if its etag is still this one.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tagged {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) etag: String,
}

/// Asks which of these permissions the caller has.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TestIamPermissions {
    #[prost(string, tag = "1")]
    pub(crate) resource: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) permissions: Vec<String>,
}

/// A page of secrets.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretsPage {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) secrets: Vec<Secret>,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) next_page_token: String,
    #[prost(int32, tag = "3")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) total_size: i32,
}

/// A page of versions.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionsPage {
    #[prost(message, repeated, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) versions: Vec<SecretVersion>,
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) next_page_token: String,
    #[prost(int32, tag = "3")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) total_size: i32,
}

/// The content of a version.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct Accessed {
    #[prost(string, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) payload: Option<SecretPayload>,
}

/// The permissions that the caller has.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(crate) struct Permissions {
    #[prost(string, repeated, tag = "1")]
    #[serde(skip_serializing_if = "unset")]
    pub(crate) permissions: Vec<String>,
}

impl Request {
    /// The name that the call is about, as the caller wrote it.
    pub(crate) fn resource(&self) -> &str {
        match self {
            Self::ListSecrets(list) | Self::ListVersions(list) => &list.parent,
            Self::CreateSecret(create) => &create.parent,
            Self::AddVersion(add) => &add.parent,
            Self::GetSecret(named) | Self::GetVersion(named) | Self::AccessVersion(named) => &named.name,
            Self::UpdateSecret(update) => update.secret.as_ref().map_or("", |secret| &secret.name),
            Self::DeleteSecret(tagged) | Self::ChangeVersion(_, tagged) => &tagged.name,
            Self::TestIamPermissions(test) => &test.resource,
            Self::Unserved(_, resource) => resource,
        }
    }

    /// Reads the message that `method` takes.
    pub(crate) fn decode(method: Method, bytes: impl Buf) -> Result<Self, prost::DecodeError> {
        Ok(match method {
            Method::ListSecrets => Self::ListSecrets(List::decode(bytes)?),
            Method::CreateSecret => Self::CreateSecret(Create::decode(bytes)?),
            Method::AddVersion => Self::AddVersion(Add::decode(bytes)?),
            Method::GetSecret => Self::GetSecret(Named::decode(bytes)?),
            Method::UpdateSecret => Self::UpdateSecret(Update::decode(bytes)?),
            Method::DeleteSecret => Self::DeleteSecret(Tagged::decode(bytes)?),
            Method::ListVersions => Self::ListVersions(List::decode(bytes)?),
            Method::GetVersion => Self::GetVersion(Named::decode(bytes)?),
            Method::AccessVersion => Self::AccessVersion(Named::decode(bytes)?),
            Method::DisableVersion => Self::ChangeVersion(Change::Disable, Tagged::decode(bytes)?),
            Method::EnableVersion => Self::ChangeVersion(Change::Enable, Tagged::decode(bytes)?),
            Method::DestroyVersion => Self::ChangeVersion(Change::Destroy, Tagged::decode(bytes)?),
            Method::TestIamPermissions => Self::TestIamPermissions(TestIamPermissions::decode(bytes)?),
            // The resource is the first field of each of them.
            Method::GetIamPolicy | Method::SetIamPolicy | Method::EnableManagedRotation | Method::RotateSecret => {
                Self::Unserved(method, Named::decode(bytes)?.name)
            }
        })
    }
}

impl Response {
    /// The JSON form, with the state of versions as a number if `numbers`.
    pub(crate) fn json(&self, numbers: bool) -> Value {
        let mut value = match self {
            Self::Secrets(page) => json!(page),
            Self::Secret(secret) => json!(secret),
            Self::Versions(page) => json!(page),
            Self::Version(version) => json!(version),
            Self::Accessed(accessed) => json!(accessed),
            Self::Permissions(permissions) => json!(permissions),
            Self::Empty => json!({}),
        };
        if numbers {
            match self {
                Self::Version(_) => number_state(&mut value),
                Self::Versions(_) => {
                    let versions = value.get_mut("versions").and_then(Value::as_array_mut);
                    versions.into_iter().flatten().for_each(number_state);
                }
                _ => {}
            }
        }
        value
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Secrets(page) => page.encode_to_vec(),
            Self::Secret(secret) => secret.encode_to_vec(),
            Self::Versions(page) => page.encode_to_vec(),
            Self::Version(version) => version.encode_to_vec(),
            Self::Accessed(accessed) => accessed.encode_to_vec(),
            Self::Permissions(permissions) => permissions.encode_to_vec(),
            Self::Empty => Vec::new(),
        }
    }
}

fn number_state(version: &mut Value) {
    if let Some(state) = version.get_mut("state")
        && let Some(known) = state.as_str().and_then(VersionState::named)
    {
        *state = json!(known as i32);
    }
}
