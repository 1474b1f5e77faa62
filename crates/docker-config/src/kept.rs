//! The document with its credentials, for whoever writes it on.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use secrecy::SecretSlice;

use crate::canonical;
use crate::digest::Digest;
use crate::document::{KNOWN, Limits, MISSPELLINGS, read_json};
use crate::entry::{self, CredentialKind};
use crate::json::{self, Member, Piece, Sink, Value, member, write_text, write_value};
use crate::path::Path;
use crate::problem::{Findings, Problem, ProblemKind};
use crate::problems::Problems;
use crate::registry_key::RegistryKey;
use crate::shape;

/// A document that keeps its credentials: the entries by key as written, and the members beside them.
///
/// Holds whatever an entry says, also what no reader can use: validity is [`parse`](crate::parse)'s matter. Written
/// compactly, keys in order, so equal documents are written alike. Its memory is wiped when it goes.
#[derive(Clone, Default)]
pub struct Document {
    entries: BTreeMap<String, KeptEntry>,
    others: BTreeMap<String, Arc<Value>>,
}

/// One entry as it stands in a document, credential included.
#[derive(Clone)]
pub struct KeptEntry(Arc<Value>);

/// What reading brings up: the document, and the keys that stand in it more than once (of which it has the first).
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) document: Document,
    pub(crate) repeated: BTreeSet<String>,
}

// === impl Document ===

impl Document {
    /// Reads a document: a JSON object with an object `auths`, in which no key stands twice. What the entries say is not
    /// looked at.
    ///
    /// ```
    /// use docker_config::{Document, Limits};
    ///
    /// let mut document = Document::parse(br#"{"auths": {"quay.io": {"auth": "YTpi"}}}"#, &Limits::default()).unwrap();
    /// let entry = document.entry("quay.io").unwrap().clone();
    /// document.insert("quay.io/team", entry);
    /// assert_eq!(document.keys().collect::<Vec<_>>(), ["quay.io", "quay.io/team"]);
    /// ```
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, Problems> {
        let mut findings = Findings::default();
        let read = read(bytes, limits, &mut findings);
        let Findings { mut problems, warnings } = findings;
        match read {
            Ok(Read { document, .. }) if problems.is_empty() => return Ok(document),
            Ok(_) => {}
            Err(fatal) => problems.push(fatal),
        }
        problems.sort_by_key(Problem::position);
        Err(Problems { found: problems, entries: Vec::new(), warnings })
    }

    /// The keys as written, in order. A key may hold a credential by mistake: show it by
    /// [`shown_key`](crate::shown_key) only.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &KeptEntry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// The members beside `auths` alone.
    pub(crate) fn without_entries(&self) -> Self {
        Self { entries: BTreeMap::new(), others: self.others.clone() }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of that key, as written.
    pub fn entry(&self, key: &str) -> Option<&KeptEntry> {
        self.entries.get(key)
    }

    /// Puts an entry, and gives back the one that it replaces.
    pub fn insert(&mut self, key: impl Into<String>, entry: KeptEntry) -> Option<KeptEntry> {
        self.entries.insert(key.into(), entry)
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &str) -> Option<KeptEntry> {
        self.entries.remove(key)
    }

    /// The names of the members beside `auths`, in order.
    pub fn other_members(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(String::as_str)
    }

    /// Takes a member beside `auths` out; says whether it was there.
    pub fn remove_other_member(&mut self, name: &str) -> bool {
        self.others.remove(name).is_some()
    }

    /// Puts the member of that name beside `auths` as it stands in another document; says whether it is there.
    pub fn copy_other_member(&mut self, from: &Self, name: &str) -> bool {
        let found = from.others.get(name).map(Arc::clone);
        found.map(|value| self.others.insert(name.to_owned(), value)).is_some()
    }

    /// The document as JSON: compact, members and keys in order, entries as they were read.
    pub fn to_bytes(&self) -> SecretSlice<u8> {
        let mut bytes = self.bytes();
        SecretSlice::from(std::mem::take(&mut *bytes))
    }

    /// What it means: equal to [`DockerConfig::digest`](crate::DockerConfig::digest) of the same document.
    pub fn digest(&self) -> Digest {
        let entries = self.entries.iter().map(|(key, entry)| entry.digest(key)).collect();
        canonical::document(entries, self.others.iter().map(|(name, value)| (name.as_str(), &**value)))
    }

    /// What the entry of that key means.
    pub fn entry_digest(&self, key: &str) -> Option<Digest> {
        self.entry(key).map(|entry| entry.digest(key))
    }
}

impl Piece for Document {
    fn write(&self, sink: &mut dyn Sink) {
        sink.take(b"{");
        let before = self.others.iter().filter(|(name, _)| name.as_str() < "auths");
        for (name, value) in before {
            write_member(name, value, sink);
            sink.take(b",");
        }
        sink.take(b"\"auths\":{");
        for (index, (key, KeptEntry(value))) in self.entries.iter().enumerate() {
            sink.take(if index == 0 { b"" } else { b"," });
            write_member(key, value, sink);
        }
        sink.take(b"}");
        for (name, value) in self.others.iter().filter(|(name, _)| name.as_str() > "auths") {
            sink.take(b",");
            write_member(name, value, sink);
        }
        sink.take(b"}");
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Document({} entries, redacted)", self.entries.len())
    }
}

// === impl KeptEntry ===

impl KeptEntry {
    /// The entry as compact JSON.
    pub fn to_bytes(&self) -> SecretSlice<u8> {
        let mut bytes = self.0.bytes();
        SecretSlice::from(std::mem::take(&mut *bytes))
    }

    /// `USER:PASSWORD`, as HTTP's Basic authentication has them (RFC 7617); `None` where the entry holds a credential of
    /// another kind, or none that a reader can use.
    pub fn basic(&self) -> Option<SecretSlice<u8>> {
        let mut findings = Findings::default();
        let credential = entry::read(&Path::root(), &self.0, true, &mut findings)?;
        let is_pair = matches!(credential.kind, CredentialKind::Auth | CredentialKind::UsernamePassword);
        let pair = credential.pair.as_ref().filter(|_| is_pair)?;
        Some(SecretSlice::from([pair.user.as_slice(), b":", pair.password.as_slice()].concat()))
    }

    /// What it means under that key; equal to what [`parse`](crate::parse) takes into its digest if the entry is valid.
    pub fn digest(&self, key: &str) -> Digest {
        let mut findings = Findings::default();
        // Whether a helper serves the registry changes only whether an entry without a credential is accepted.
        let credential = entry::read(&Path::root(), &self.0, true, &mut findings);
        match (RegistryKey::parse(key), credential, self.0.as_object()) {
            (Ok(parsed), Some(credential), Some(members)) if !json::has_duplicates(&self.0) => {
                canonical::entry(&parsed, credential.pair.as_ref(), members)
            }
            _ => canonical::opaque(key, &self.0),
        }
    }
}

impl fmt::Debug for KeptEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeptEntry(redacted)")
    }
}

/// Fails where there is no document to keep; other problems go to the findings.
pub(crate) fn read(bytes: &[u8], limits: &Limits, findings: &mut Findings) -> Result<Read, Problem> {
    let value = read_json(bytes, limits, findings)?;
    let root = Path::root();
    let members = value.object_or(&root)?;
    let Some(auths) = member(members, "auths") else {
        let kind = shape::of_members(members).unwrap_or(ProblemKind::MissingAuths);
        let near = entry::misspellings(&root, members, KNOWN, MISSPELLINGS, findings);
        findings.problems.extend(near);
        return Err(Problem::new(root, kind, value.position));
    };
    // `Auths` beside `auths` is a problem; misspellings alone are somebody's own members.
    entry::misspellings(&root, members, &["auths"], &[], findings);
    let path = root.member("auths");
    auths.value.object_or(&path)?;
    let mut names = BTreeSet::new();
    let mut read = Read::default();
    let json::Content::Object(members) = value.content else { return Ok(read) };
    for Member { name, position, value } in members {
        if !names.insert(name.as_str().to_owned()) {
            findings.problems.push(Problem::new(root.member(&name), ProblemKind::DuplicateMember, position));
        } else if *name == "auths" {
            read.take_entries(value, &path, findings);
        } else {
            read.document.others.insert(name.as_str().to_owned(), Arc::new(value));
        }
    }
    Ok(read)
}

impl Read {
    fn take_entries(&mut self, auths: Value, path: &Path, findings: &mut Findings) {
        let json::Content::Object(members) = auths.content else { return };
        for Member { name, position, value } in members {
            if self.document.entries.contains_key(name.as_str()) {
                findings.problems.push(Problem::new(path.key(&name), ProblemKind::DuplicateMember, position));
                self.repeated.insert(name.as_str().to_owned());
            } else {
                self.document.entries.insert(name.as_str().to_owned(), KeptEntry(Arc::new(value)));
            }
        }
    }
}

fn write_member(name: &str, value: &Value, sink: &mut dyn Sink) {
    write_text(name, sink);
    sink.take(b":");
    write_value(value, sink);
}
