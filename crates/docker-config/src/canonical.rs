//! The canonical form of a document, over which the digest is computed.
//!
//! Two documents have the same digest exactly if these are the same:
//!
//! - the entries, as a collection, and for each
//!   - the registry key, once as kubelet reads it and once as containers/image does: spellings are equal only if both
//!     readers treat them alike;
//!   - the readers that can use the user and the password: every reader (a padded `auth`), or kubelet only (an `auth` without its
//!     padding, or `username` and `password` without `auth`);
//!   - the user and the password as bytes;
//!   - its other members. `auth` itself is left out, and a `username` and a `password` that are empty or repeat it;
//! - the members of the document besides `auths`.
//!
//! A [`Document`](crate::Document) that [`parse`](crate::parse) accepts has the same digest there and here. An entry that
//! no reader can use counts as it is written.
//!
//! So a correction that makes a credential usable by one more reader is a change, and is stored.
//!
//! Members are compared by name, whatever their order; strings by their characters, however escaped; numbers as they
//! are written.
//!
//! The form is never built in memory: it is fed to SHA-256 piece by piece. Every piece starts with a tag, and a length if
//! its size is not fixed (eight bytes, most significant first), so no two forms are ambiguous. An entry is hashed by
//! itself, and the document over the sorted hashes of its entries. The domain of each form ends with a number that must
//! change with the form.

use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::entry::Pair;
use crate::json::{Content, Member, Value};
use crate::registry_key::RegistryKey;

const DOCUMENT_DOMAIN: &[u8] = b"docker-config/document/1\0";
const ENTRY_DOMAIN: &[u8] = b"docker-config/entry/2\0";
const OPAQUE_DOMAIN: &[u8] = b"docker-config/opaque/1\0";

/// Returns the digest of a document from those of its entries and from its other members.
pub(crate) fn document<'a>(mut entries: Vec<Digest>, others: impl Iterator<Item = (&'a str, &'a Value)>) -> Digest {
    entries.sort_unstable();
    let mut hasher = Sha256::new_with_prefix(DOCUMENT_DOMAIN);
    length(&mut hasher, b'[', entries.len());
    for entry in &entries {
        hasher.update(entry.bytes());
    }
    object(&mut hasher, others.collect());
    Digest::finish(hasher)
}

/// Returns the digest of an entry that no reader can use, or of an invalid key, taken literally.
pub(crate) fn opaque(key: &str, content: &Value) -> Digest {
    let mut hasher = Sha256::new_with_prefix(OPAQUE_DOMAIN);
    bytes(&mut hasher, b'k', key.as_bytes());
    value(&mut hasher, content);
    Digest::finish(hasher)
}

/// Returns the digest of one entry.
pub(crate) fn entry(key: &RegistryKey, pair: Option<&Pair>, members: &[Member]) -> Digest {
    let mut hasher = Sha256::new_with_prefix(ENTRY_DOMAIN);
    for key in key.as_read() {
        bytes(&mut hasher, b'k', key.as_bytes());
    }
    if let Some(pair) = pair {
        hasher.update(if pair.only_kubelet { b"o" } else { b"e" });
        bytes(&mut hasher, b'u', &pair.user);
        bytes(&mut hasher, b'p', &pair.password);
    }
    object(&mut hasher, named(members.iter().filter(|member| !is_redundant(member, pair))).collect());
    Digest::finish(hasher)
}

/// Returns true for `auth` itself, and for a `username` or `password` that is empty or repeats its half of the credential.
pub(crate) fn is_redundant(member: &Member, pair: Option<&Pair>) -> bool {
    let repeats = |part: Option<&[u8]>| {
        let text = member.value.as_text();
        text.is_some_and(|text| text.is_empty() || part == Some(text.as_bytes()))
    };
    match member.name.as_str() {
        "auth" => true,
        "username" => repeats(pair.map(|pair| pair.user.as_slice())),
        "password" => repeats(pair.map(|pair| pair.password.as_slice())),
        _ => false,
    }
}

fn value(hasher: &mut Sha256, value: &Value) {
    match &value.content {
        Content::Null => hasher.update(b"n"),
        Content::Boolean(false) => hasher.update(b"f"),
        Content::Boolean(true) => hasher.update(b"t"),
        Content::Number(number) => bytes(hasher, b'#', number.as_bytes()),
        Content::Text(text) => bytes(hasher, b's', text.as_bytes()),
        Content::Array(values) => {
            length(hasher, b'[', values.len());
            for item in values {
                self::value(hasher, item);
            }
        }
        Content::Object(members) => object(hasher, named(members.iter()).collect()),
    }
}

/// Returns the members with their names as text.
pub(crate) fn named<'a>(members: impl Iterator<Item = &'a Member>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    members.map(|member| (member.name.as_str(), &member.value))
}

fn object(hasher: &mut Sha256, mut members: Vec<(&str, &Value)>) {
    members.sort_by_key(|(name, _)| *name);
    length(hasher, b'{', members.len());
    for (name, content) in members {
        bytes(hasher, b's', name.as_bytes());
        value(hasher, content);
    }
}

fn bytes(hasher: &mut Sha256, tag: u8, bytes: &[u8]) {
    length(hasher, tag, bytes.len());
    hasher.update(bytes);
}

fn length(hasher: &mut Sha256, tag: u8, length: usize) {
    hasher.update([tag]);
    hasher.update((length as u64).to_be_bytes());
}
