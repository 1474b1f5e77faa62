//! Merges credential documents: one original, and additional ones before or after it.
//!
//! Keys are compared in their normalised form ([`RegistryKey::normalized`]), so `https://quay.io/` and `quay.io` are one
//! registry. An entry is taken whole, under its key as written, or not at all. The members beside `auths` are the
//! original's: kubelet and containers/image agree on `auths` only, and a credential helper that an additional document
//! names would be a program run on every node.

mod admit;
mod protect;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use secrecy::ExposeSecret as _;

pub use admit::{Admitted, InvalidEntries, admit};
pub use protect::Prefix;

use crate::credentials::{Document, RawEntry};
use crate::path::shown;
use crate::registry_key::RegistryKey;

/// Precedence if the original and an additional document name the same registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// The additional document takes precedence.
    #[default]
    AdditionalWins,
    /// The original takes precedence.
    OriginalWins,
}

/// The rules of a merge.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Precedence if both name a registry.
    pub conflict: ConflictPolicy,
    /// Parts of registries that additional documents cannot change.
    pub protected: Vec<Prefix>,
    /// Maximum bytes of the result.
    pub max_bytes: usize,
}

/// An additional document and its name.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name in decisions.
    pub name: &'a str,
    /// The document.
    pub document: &'a Document,
}

/// The origin of an entry. The original sorts before all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The original document.
    Original,
    /// The additional document of that name.
    Additional(String),
}

/// The reason why an entry is in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeReason {
    /// No other document names the registry.
    Alone,
    /// All documents that name it have the same entry.
    Same,
    /// An additional document takes precedence over the original.
    AdditionalWins,
    /// The original takes precedence over additional documents.
    OriginalWins,
    /// Of several additional documents it is the first.
    First,
    /// The registry is protected: additional documents cannot change it.
    Protected,
}

/// The decision about one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The registry in normalised form, safe to print.
    pub registry: String,
    /// Its keys in the result, as written; print them by [`shown_key`](crate::shown_key) only. Empty if no document has one
    /// that may be used.
    pub keys: Vec<String>,
    /// The origin of the entry in the result; `None` if it was refused and no other document has one.
    pub winner: Option<Origin>,
    /// The origins whose entries are not in the result.
    pub overridden: Vec<Origin>,
    /// The reason.
    pub reason: MergeReason,
}

/// The result of a merge.
#[derive(Debug)]
pub struct Merged {
    /// The merged document.
    pub document: Document,
    /// One decision per registry, in order.
    pub decisions: Vec<Decision>,
    /// Members besides `auths` that were left out, with their origin.
    pub left_out: Vec<(Origin, String)>,
}

/// The error of a result that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The size of the result.
    pub bytes: usize,
    /// The limit.
    pub allowed: usize,
}

/// The entries of all documents for one registry.
#[derive(Default)]
struct Candidates<'a> {
    original: Vec<(&'a str, &'a RawEntry)>,
    /// By source, in order of precedence.
    additional: Vec<(&'a str, Vec<(&'a str, &'a RawEntry)>)>,
    refused: Vec<&'a str>,
}

/// Merges documents; `additional` is in order of precedence, the first before the second.
///
/// No registry of the original is ever lost: the result has its entry, or an additional one instead.
///
/// ```
/// use docker_config::merge::{ConflictPolicy, Policy, Source, merge};
/// use docker_config::{Document, Limits};
///
/// let read = |text: &str| Document::parse(text.as_bytes(), &Limits::default()).unwrap();
/// let original = read(r#"{"auths": {"https://quay.io/": {"auth": "YTpi"}}}"#);
/// let additional = read(r#"{"auths": {"quay.io": {"auth": "Yzpk"}}}"#);
/// let policy = Policy { conflict: ConflictPolicy::AdditionalWins, protected: Vec::new(), max_bytes: 1_048_576 };
/// let merged = merge(&original, &[Source { name: "additional-pull-secret", document: &additional }], &policy).unwrap();
/// assert_eq!(merged.document.keys().collect::<Vec<_>>(), ["quay.io"]);
/// assert_eq!(
///     merged.decisions[0].to_string(),
///     "quay.io: from additional-pull-secret, which takes precedence over the original (over the original)"
/// );
/// ```
pub fn merge(original: &Document, additional: &[Source<'_>], policy: &Policy) -> Result<Merged, TooLarge> {
    let mut registries: BTreeMap<String, Candidates<'_>> = BTreeMap::new();
    for (key, entry) in original.entries() {
        registries.entry(compared(key)).or_default().original.push((key, entry));
    }
    let original_keys: BTreeSet<String> = registries.keys().cloned().collect();
    for source in additional {
        for (key, entry) in source.document.entries() {
            let candidates = registries.entry(compared(key)).or_default();
            if policy.protected.iter().any(|prefix| prefix.is_shadowed_by(key, &original_keys)) {
                candidates.refused.push(source.name);
            } else if let Some((_, keys)) = candidates.additional.iter_mut().find(|(name, _)| *name == source.name) {
                keys.push((key, entry));
            } else {
                candidates.additional.push((source.name, vec![(key, entry)]));
            }
        }
    }
    let mut document = original.without_entries();
    let mut decisions = Vec::new();
    for (registry, candidates) in registries {
        let (decision, taken) = candidates.decide(&registry, policy.conflict);
        for (key, entry) in taken {
            document.insert(key, entry.clone());
        }
        decisions.push(decision);
    }
    let bytes = document.to_bytes().expose_secret().len();
    if bytes > policy.max_bytes {
        return Err(TooLarge { bytes, allowed: policy.max_bytes });
    }
    let others = |source: &Source<'_>| {
        let origin = Origin::Additional(source.name.to_owned());
        source.document.other_members().map(|name| (origin.clone(), shown(name))).collect::<Vec<_>>()
    };
    Ok(Merged { document, decisions, left_out: additional.iter().flat_map(others).collect() })
}

/// Returns the form in which keys are compared; an invalid key is compared as written.
fn compared(key: &str) -> String {
    RegistryKey::parse(key).map_or_else(|_no_key| key.to_owned(), |key| key.normalized().to_owned())
}

// === impl Candidates ===

impl<'a> Candidates<'a> {
    fn decide(&self, registry: &str, policy: ConflictPolicy) -> (Decision, Vec<(&'a str, &'a RawEntry)>) {
        let has_original = !self.original.is_empty();
        let first = self.additional.first();
        let additional_wins = match policy {
            _ if !has_original => true,
            ConflictPolicy::AdditionalWins => !self.is_unanimous(),
            ConflictPolicy::OriginalWins => false,
        };
        let (winner, taken) = match first {
            Some((name, keys)) if additional_wins => (Some(Origin::Additional((*name).to_owned())), keys.clone()),
            _ if has_original => (Some(Origin::Original), self.original.clone()),
            _ => (None, Vec::new()),
        };
        let reason = match &winner {
            _ if !self.refused.is_empty() => MergeReason::Protected,
            _ if first.is_none() || (!has_original && self.additional.len() == 1) => MergeReason::Alone,
            _ if self.is_unanimous() => MergeReason::Same,
            Some(Origin::Original) => MergeReason::OriginalWins,
            _ if has_original => MergeReason::AdditionalWins,
            _ => MergeReason::First,
        };
        let mut all: Vec<Origin> = if has_original { vec![Origin::Original] } else { Vec::new() };
        let names = self.additional.iter().map(|(name, _)| *name).chain(self.refused.iter().copied());
        all.extend(names.map(|name| Origin::Additional(name.to_owned())));
        let overridden = all.into_iter().filter(|origin| winner.as_ref() != Some(origin)).collect();
        let keys = taken.iter().map(|(key, _)| (*key).to_owned()).collect();
        (Decision { registry: shown(registry), keys, winner, overridden, reason }, taken)
    }

    /// Returns true if all entries mean the same.
    fn is_unanimous(&self) -> bool {
        let additional = self.additional.iter().flat_map(|(_, keys)| keys);
        let mut digests = self.original.iter().chain(additional).map(|(key, entry)| entry.digest(key));
        let first = digests.next();
        digests.all(|digest| Some(digest) == first)
    }
}

// === impl Decision ===

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.registry)?;
        match &self.winner {
            Some(winner) => write!(formatter, "from {winner}, {}", self.reason.message())?,
            None => write!(formatter, "not taken, {}", self.reason.message())?,
        }
        if self.overridden.is_empty() {
            return Ok(());
        }
        let overridden: Vec<String> = self.overridden.iter().map(ToString::to_string).collect();
        write!(formatter, " (over {})", overridden.join(", "))
    }
}

impl MergeReason {
    /// The reason as a phrase that follows a name.
    pub fn message(self) -> &'static str {
        match self {
            Self::Alone => "the only one that names it",
            Self::Same => "as all have the same entry",
            Self::AdditionalWins => "which takes precedence over the original",
            Self::OriginalWins => "which takes precedence over additional ones",
            Self::First => "the first of several additional ones",
            Self::Protected => "as the registry is protected",
        }
    }

    /// A stable id for programs.
    pub fn id(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Same => "same",
            Self::AdditionalWins => "additional-wins",
            Self::OriginalWins => "original-wins",
            Self::First => "first",
            Self::Protected => "protected",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Original => "the original",
            Self::Additional(name) => name,
        })
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the merged document has {} bytes, {} are allowed", self.bytes, self.allowed)
    }
}

impl std::error::Error for TooLarge {}
