//! A document with its credentials, for programs that write it elsewhere.

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

/// A document with its credentials: the entries by key as written, and the members besides them.
///
/// Holds entries as they are, also those that no reader can use: [`parse`](crate::parse) validates. Written compactly,
/// keys in order, so equal documents are written alike. Its memory is wiped when it is dropped.
#[derive(Clone, Default)]
pub struct Document {
    entries: BTreeMap<String, RawEntry>,
    others: BTreeMap<String, Arc<Value>>,
}

/// One entry of a document, including its credential.
#[derive(Clone)]
pub struct RawEntry(Arc<Value>);

/// A parsed document, and the keys that occur in it more than once (of which it has the first entry).
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) document: Document,
    pub(crate) repeated: BTreeSet<String>,
}

// === impl Document ===

impl Document {
    /// Parses a document: a JSON object with an object `auths`, in which no key occurs twice. The entries are not validated.
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

    /// The keys as written, in order. A key may hold a credential by mistake: print it by
    /// [`shown_key`](crate::shown_key) only.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &RawEntry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// Returns the document without its entries.
    pub(crate) fn without_entries(&self) -> Self {
        Self { entries: BTreeMap::new(), others: self.others.clone() }
    }

    /// Changes every value beside `auths`.
    pub(crate) fn map_other_members(mut self, change: impl Fn(&Value) -> Value) -> Self {
        for value in self.others.values_mut() {
            *value = Arc::new(change(value));
        }
        self
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry of that key, as written.
    pub fn entry(&self, key: &str) -> Option<&RawEntry> {
        self.entries.get(key)
    }

    /// Inserts an entry. Returns the one that it replaces.
    pub fn insert(&mut self, key: impl Into<String>, entry: RawEntry) -> Option<RawEntry> {
        self.entries.insert(key.into(), entry)
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &str) -> Option<RawEntry> {
        self.entries.remove(key)
    }

    /// The names of the members besides `auths`, in order.
    pub fn other_members(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(String::as_str)
    }

    /// Removes a member besides `auths`. Returns true if it existed.
    pub fn remove_other_member(&mut self, name: &str) -> bool {
        self.others.remove(name).is_some()
    }

    /// Copies the member of that name besides `auths` from another document. Returns true if it exists there.
    pub fn copy_other_member(&mut self, from: &Self, name: &str) -> bool {
        let found = from.others.get(name).map(Arc::clone);
        found.map(|value| self.others.insert(name.to_owned(), value)).is_some()
    }

    /// The document as JSON: compact, members and keys in order, entries as they were read.
    pub fn to_bytes(&self) -> SecretSlice<u8> {
        let mut bytes = self.bytes();
        SecretSlice::from(std::mem::take(&mut *bytes))
    }

    /// The digest of its meaning: equal to [`DockerConfig::digest`](crate::DockerConfig::digest) of the same document.
    pub fn digest(&self) -> Digest {
        let entries = self.entries.iter().map(|(key, entry)| entry.digest(key)).collect();
        canonical::document(entries, self.others.iter().map(|(name, value)| (name.as_str(), &**value)))
    }

    /// The digest of the entry of that key.
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
        for (index, (key, RawEntry(value))) in self.entries.iter().enumerate() {
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

// === impl RawEntry ===

impl RawEntry {
    pub(crate) fn of(value: Arc<Value>) -> Self {
        Self(value)
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    /// The entry as compact JSON.
    pub fn to_bytes(&self) -> SecretSlice<u8> {
        let mut bytes = self.0.bytes();
        SecretSlice::from(std::mem::take(&mut *bytes))
    }

    /// `USER:PASSWORD`, as HTTP's Basic authentication has them (RFC 7617); `None` if the entry holds a credential of
    /// another kind, or none that a reader can use.
    pub fn basic(&self) -> Option<SecretSlice<u8>> {
        let mut findings = Findings::default();
        let credential = entry::read(&Path::root(), &self.0, true, &mut findings)?;
        let is_pair = matches!(credential.kind, CredentialKind::Auth | CredentialKind::UsernamePassword);
        let pair = credential.pair.as_ref().filter(|_| is_pair)?;
        Some(SecretSlice::from([pair.user.as_slice(), b":", pair.password.as_slice()].concat()))
    }

    /// The digest of its meaning under that key; equal to the one that [`parse`](crate::parse) uses if the entry is valid.
    pub fn digest(&self, key: &str) -> Digest {
        let mut findings = Findings::default();
        // A credential helper only decides about the acceptance of an entry without a credential.
        let credential = entry::read(&Path::root(), &self.0, true, &mut findings);
        match (RegistryKey::parse(key), credential, self.0.as_object()) {
            (Ok(parsed), Some(credential), Some(members)) if !json::has_duplicates(&self.0) => {
                canonical::entry(&parsed, credential.pair.as_ref(), members)
            }
            _ => canonical::opaque(key, &self.0),
        }
    }
}

impl fmt::Debug for RawEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RawEntry(redacted)")
    }
}

/// Fails if there is no document; other problems go to the findings.
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
    // `Auths` beside `auths` is a problem; other misspellings are treated as members of another program.
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
                self.document.entries.insert(name.as_str().to_owned(), RawEntry(Arc::new(value)));
            }
        }
    }
}

fn write_member(name: &str, value: &Value, sink: &mut dyn Sink) {
    write_text(name, sink);
    sink.take(b":");
    write_value(value, sink);
}
