//! Documents of AMS.

use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;

use crate::contract::{ImportedCredential, Page, Registry};

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    total: u64,
    #[serde(default)]
    items: Vec<Credential>,
}

#[derive(Deserialize)]
struct Credential {
    id: String,
    registry: Reference,
    username: String,
    token: SecretString,
    #[serde(default)]
    account: Option<Reference>,
    #[serde(default)]
    external_resource_id: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
}

#[derive(Deserialize)]
struct Reference {
    id: String,
}

#[derive(Deserialize)]
struct RegistryDocument {
    id: String,
    #[serde(default)]
    name: String,
    url: String,
}

#[derive(Deserialize)]
struct Count {
    total: u64,
}

#[derive(Deserialize)]
struct Grant {
    access_token: SecretString,
    expires_in: u64,
}

/// An error of AMS: its code, such as `ACCOUNT-MGMT-11`.
#[derive(Deserialize)]
struct Refusal {
    code: String,
}

/// An access token, and its life in seconds.
pub(crate) struct Granted {
    pub(crate) token: SecretString,
    pub(crate) seconds: u64,
}

pub(crate) fn page(body: &[u8]) -> Option<Page> {
    let List { total, items } = serde_json::from_slice(body).ok()?;
    Some(Page { items: items.into_iter().map(credential).collect::<Option<_>>()?, total })
}

pub(crate) fn one(body: &[u8]) -> Option<ImportedCredential> {
    credential(serde_json::from_slice(body).ok()?)
}

pub(crate) fn count(body: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Count>(body).ok().map(|count| count.total)
}

pub(crate) fn registry(body: &[u8]) -> Option<Registry> {
    let RegistryDocument { id, name, url } = serde_json::from_slice(body).ok()?;
    let host = url.split_once("://").map_or(url.as_str(), |(_scheme, rest)| rest).trim_end_matches('/');
    (!host.is_empty()).then_some(Registry { id: id.parse().ok()?, name, host: host.to_owned() })
}

pub(crate) fn granted(body: &[u8]) -> Option<Granted> {
    let Grant { access_token, expires_in } = serde_json::from_slice(body).ok()?;
    Some(Granted { token: access_token, seconds: expires_in })
}

/// Returns the code of an error, if it is one of AMS's form: it may be shown, its reason may not.
pub(crate) fn code(body: &[u8]) -> Option<String> {
    let Refusal { code } = serde_json::from_slice(body).ok()?;
    let is_plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-';
    ((1..=40).contains(&code.len()) && code.bytes().all(is_plain)).then_some(code)
}

fn credential(document: Credential) -> Option<ImportedCredential> {
    let Credential { id, registry, username, token, account, external_resource_id, created_at } = document;
    Some(ImportedCredential {
        id: id.parse().ok()?,
        registry: registry.id.parse().ok()?,
        username,
        token,
        account: account.map(|account| account.id),
        resource: external_resource_id.filter(|resource| !resource.is_empty()),
        created: created_at.and_then(|text| text.parse::<Timestamp>().ok()),
    })
}
