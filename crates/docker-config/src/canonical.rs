//! The canonical form of a document: what the digest is taken over.
//!
//! Two documents have the same digest exactly if these are the same:
//!
//! - the entries, as a collection, and for each
//!   - the registry key, once as kubelet reads it and once as containers/image does: spellings are the same only if
//!     they are so for both;
//!   - who can use the user and the password: every reader (a padded `auth`), or kubelet only (an `auth` without its
//!     padding, or `username` and `password` without `auth`);
//!   - the user and the password as bytes;
//!   - its other members. `auth` itself is left out, and a `username` and a `password` that are empty or repeat it;
//! - the members of the document besides `auths`.
//!
//! A [`Document`](crate::Document) that [`parse`](crate::parse) accepts has the same digest there and here. An entry that
//! no reader can use counts as it is written.
//!
//! So what follows a warning and gives a credential to one more reader is a change, and will be stored.
//!
//! Members are compared by name, whatever their order; strings by their characters, however escaped; numbers as they
//! are written.
//!
//! The form is never built in memory: it goes into SHA-256 piece by piece. Every piece starts with a tag, and a length
//! where its size is not fixed (eight bytes, most significant first), so no two forms run into each other. An entry is
//! hashed by itself, and the document over the sorted hashes of its entries. The names of the forms end with a number
//! that must change with them.

use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::entry::Pair;
use crate::json::{Content, Member, Value};
use crate::registry_key::RegistryKey;

const DOCUMENT_DOMAIN: &[u8] = b"docker-config/document/1\0";
const ENTRY_DOMAIN: &[u8] = b"docker-config/entry/2\0";
const OPAQUE_DOMAIN: &[u8] = b"docker-config/opaque/1\0";

/// The digest of a document from those of its entries and its members beside them.
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

/// The digest of an entry that no reader can use, or of a key that is none: what is written there, and nothing made of it.
pub(crate) fn opaque(key: &str, content: &Value) -> Digest {
    let mut hasher = Sha256::new_with_prefix(OPAQUE_DOMAIN);
    bytes(&mut hasher, b'k', key.as_bytes());
    value(&mut hasher, content);
    Digest::finish(hasher)
}

/// The digest of one entry.
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
    let says_nothing_new = |member: &Member| {
        let repeats = |part: Option<&[u8]>| {
            let text = member.value.as_text();
            text.is_some_and(|text| text.is_empty() || part == Some(text.as_bytes()))
        };
        match member.name.as_str() {
            "auth" => true,
            "username" => repeats(pair.map(|p| p.user.as_slice())),
            "password" => repeats(pair.map(|p| p.password.as_slice())),
            _ => false,
        }
    };
    object(&mut hasher, named(members.iter().filter(|m| !says_nothing_new(m))).collect());
    Digest::finish(hasher)
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

/// Members with names as text.
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
