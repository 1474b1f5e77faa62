//! The normal form of a document, in which equal meaning is equal bytes.
//!
//! Each registry occurs once, under the key by which both readers find it; members are sorted, and a credential has one
//! spelling. What a reader finds by a key before, it finds by the normal form of the key too.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use zeroize::Zeroizing;

use crate::canonical;
use crate::credentials::{Document, RawEntry};
use crate::entry::{self, Pair};
use crate::json::{self, Content, Member, Value};
use crate::path::Path;
use crate::problem::{Findings, Position};
use crate::registry_key::RegistryKey;

impl Document {
    /// Returns the document in normal form: each registry once, under its normalised key, with the entry that the readers
    /// prefer of several spellings. A document of equal meaning, spelled otherwise, has equal bytes then.
    ///
    /// ```
    /// use docker_config::{Document, Limits};
    ///
    /// let text = br#"{"auths": {"https://QUAY.io/v2/": {"email": "a@b", "auth": "YTpi"}}}"#;
    /// let document = Document::parse(text, &Limits::default())?.normalized();
    /// assert_eq!(document.keys().collect::<Vec<_>>(), ["quay.io"]);
    /// # Ok::<(), docker_config::Problems>(())
    /// ```
    #[must_use]
    pub fn normalized(&self) -> Self {
        let mut document = self.without_entries().map_other_members(sorted);
        let mut written: BTreeMap<String, &str> = BTreeMap::new();
        for (key, entry) in self.entries() {
            let registry = normal_key(key);
            let last = written.get(&registry);
            if last.is_none_or(|last| preference(&registry, key) < preference(&registry, last)) {
                document.insert(registry.clone(), entry.normalized());
                written.insert(registry, key);
            }
        }
        document
    }
}

/// The order in which readers prefer spellings of `registry`: containers/image takes the exact one, kubelet tries all.
pub(crate) fn preference<'a>(registry: &str, key: &'a str) -> (bool, &'a str) {
    (key != registry, key)
}

/// Returns the normalised key. A text that is no key, or whose normal form is read as another key, stays as it is.
pub(crate) fn normal_key(key: &str) -> String {
    let stable = |normal: &&str| RegistryKey::parse(normal).is_ok_and(|again| again.normalized() == *normal);
    let parsed = RegistryKey::parse(key).ok();
    parsed.as_ref().map(RegistryKey::normalized).filter(stable).unwrap_or(key).to_owned()
}

// === impl RawEntry ===

impl RawEntry {
    /// Returns the entry in normal form: members sorted, the credential in one spelling.
    ///
    /// An entry without a credential that a reader can use keeps its members as they are; sorted, unless two names differ
    /// only in case, of which readers take the last.
    pub(crate) fn normalized(&self) -> Self {
        let mut findings = Findings::default();
        let credential = entry::read(&Path::root(), self.value(), true, &mut findings);
        let value = match (self.value().as_object(), credential) {
            _ if json::has_duplicates(self.value()) => sorted(self.value()),
            (Some(members), Some(credential)) => with_pair(members, credential.pair.as_ref()),
            _ => sorted(self.value()),
        };
        Self::of(Arc::new(value))
    }
}

/// Returns the members of an entry with its credential in the shortest spelling that the same readers can use.
fn with_pair(members: &[Member], pair: Option<&Pair>) -> Value {
    let others = members.iter().filter(|member| !canonical::is_redundant(member, pair));
    let mut kept: Vec<Member> = others.map(sorted_member).collect();
    let has_half = kept.iter().any(|member| matches!(member.name.as_str(), "username" | "password"));
    let halves = pair.filter(|pair| pair.only_kubelet && !has_half && !pair.password.is_empty());
    let halves = halves.and_then(|pair| Some((as_text(&pair.user)?, as_text(&pair.password)?)));
    match (halves, pair) {
        (Some((user, password)), _) => kept.extend([text_member("username", user), text_member("password", password)]),
        (None, Some(pair)) => kept.push(text_member("auth", &encoded(pair))),
        (None, None) => {}
    }
    kept.sort_by(|one, other| one.name.cmp(&other.name));
    object(kept)
}

fn as_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Returns base64 of `user:password`; without padding if only kubelet is to read it.
fn encoded(pair: &Pair) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(pair.user.len() + pair.password.len() + 1));
    for part in [pair.user.as_slice(), b":", &pair.password] {
        bytes.extend_from_slice(part);
    }
    let engine = if pair.only_kubelet { &STANDARD_NO_PAD } else { &STANDARD };
    Zeroizing::new(engine.encode(&*bytes))
}

/// Returns the value with the members of its objects sorted.
pub(crate) fn sorted(value: &Value) -> Value {
    let content = match &value.content {
        Content::Null => Content::Null,
        Content::Boolean(truth) => Content::Boolean(*truth),
        Content::Number(number) => Content::Number(number.clone()),
        Content::Text(text) => Content::Text(text.clone()),
        Content::Array(values) => Content::Array(values.iter().map(sorted).collect()),
        Content::Object(members) => {
            let mut members: Vec<Member> = members.iter().map(sorted_member).collect();
            if !has_two_cases(&members) {
                members.sort_by(|one, other| one.name.cmp(&other.name));
            }
            Content::Object(members)
        }
    };
    Value { position: Position::START, content }
}

/// Returns true if two names differ only in case, or not at all: then their order has a meaning.
fn has_two_cases(members: &[Member]) -> bool {
    members.iter().enumerate().any(|(at, one)| {
        let lower = one.name.to_lowercase();
        members.iter().skip(at + 1).any(|other| other.name.to_lowercase() == lower)
    })
}

fn sorted_member(member: &Member) -> Member {
    Member { name: member.name.clone(), position: Position::START, value: sorted(&member.value) }
}

fn text_member(name: &str, text: &str) -> Member {
    let content = Content::Text(Zeroizing::new(text.to_owned()));
    let value = Value { position: Position::START, content };
    Member { name: Zeroizing::new(name.to_owned()), position: Position::START, value }
}

fn object(members: Vec<Member>) -> Value {
    Value { position: Position::START, content: Content::Object(members) }
}
