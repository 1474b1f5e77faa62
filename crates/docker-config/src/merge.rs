//! Merging credential documents: one original, and additional ones before or behind it.
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

use crate::kept::{Document, KeptEntry};
use crate::path::shown;
use crate::registry_key::RegistryKey;

/// Who wins where the original and an additional document name the same registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConflictPolicy {
    /// The additional one.
    #[default]
    AdditionalWins,
    /// The original.
    OriginalWins,
}

/// How documents are merged.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Who wins where both name a registry.
    pub conflict: ConflictPolicy,
    /// Parts of registries in which only the original has a say.
    pub protected: Vec<Prefix>,
    /// The most bytes that the result may have.
    pub max_bytes: usize,
}

/// An additional document and what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name in decisions.
    pub name: &'a str,
    /// What it says.
    pub document: &'a Document,
}

/// Where an entry comes from. The original comes before all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The original document.
    Original,
    /// The additional document of that name.
    Additional(String),
}

/// Why an entry is in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nobody else names the registry.
    Alone,
    /// Everybody who names it says the same.
    Same,
    /// An additional document comes before the original.
    AdditionalWins,
    /// The original comes before additional documents.
    OriginalWins,
    /// Of several additional documents it is the first.
    First,
    /// The registry is protected: additional documents have no say in it.
    Protected,
}

/// What became of one registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The registry in normalised form, fit to be shown.
    pub registry: String,
    /// The keys that stand in the result for it, as written; show them by [`shown_key`](crate::shown_key) only. None where
    /// nobody has one that may be used.
    pub keys: Vec<String>,
    /// Whose entry was taken; `None` if it was refused and nobody else has one.
    pub winner: Option<Origin>,
    /// Whose entries were not.
    pub over: Vec<Origin>,
    /// Why.
    pub why: Why,
}

/// What a merge has come to.
#[derive(Debug)]
pub struct Merged {
    /// The result.
    pub document: Document,
    /// One decision a registry, in order.
    pub because: Vec<Decision>,
    /// Members beside `auths` that were not taken over, with whose they are.
    pub left_out: Vec<(Origin, String)>,
}

/// The result would be larger than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// How large.
    pub bytes: usize,
    /// What is allowed.
    pub allowed: usize,
}

/// What documents say about one registry.
#[derive(Default)]
struct Contest<'a> {
    original: Vec<(&'a str, &'a KeptEntry)>,
    /// By source, first the one that comes before the others.
    additional: Vec<(&'a str, Vec<(&'a str, &'a KeptEntry)>)>,
    refused: Vec<&'a str>,
}

/// Merges documents; `additional` is in order of precedence, the first before the second.
///
/// No registry of the original is ever lost: its entry is there, or an additional one in its place.
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
///     merged.because[0].to_string(),
///     "quay.io: from additional-pull-secret, which comes before the original (over the original)"
/// );
/// ```
pub fn merge(original: &Document, additional: &[Source<'_>], policy: &Policy) -> Result<Merged, TooLarge> {
    let mut contests: BTreeMap<String, Contest<'_>> = BTreeMap::new();
    for (key, entry) in original.entries() {
        contests.entry(compared(key)).or_default().original.push((key, entry));
    }
    let original_keys: BTreeSet<String> = contests.keys().cloned().collect();
    for source in additional {
        for (key, entry) in source.document.entries() {
            let contest = contests.entry(compared(key)).or_default();
            if policy.protected.iter().any(|prefix| prefix.is_shadowed_by(key, &original_keys)) {
                contest.refused.push(source.name);
            } else if let Some((_, keys)) = contest.additional.iter_mut().find(|(name, _)| *name == source.name) {
                keys.push((key, entry));
            } else {
                contest.additional.push((source.name, vec![(key, entry)]));
            }
        }
    }
    let mut document = original.without_entries();
    let mut because = Vec::new();
    for (registry, contest) in contests {
        let (decision, taken) = contest.decide(&registry, policy.conflict);
        for (key, entry) in taken {
            document.insert(key, entry.clone());
        }
        because.push(decision);
    }
    let bytes = document.to_bytes().expose_secret().len();
    if bytes > policy.max_bytes {
        return Err(TooLarge { bytes, allowed: policy.max_bytes });
    }
    let others = |source: &Source<'_>| {
        let origin = Origin::Additional(source.name.to_owned());
        source.document.other_members().map(|name| (origin.clone(), shown(name))).collect::<Vec<_>>()
    };
    Ok(Merged { document, because, left_out: additional.iter().flat_map(others).collect() })
}

/// What keys are compared as; what is no key is compared as it is written.
fn compared(key: &str) -> String {
    RegistryKey::parse(key).map_or_else(|_no_key| key.to_owned(), |key| key.normalized().to_owned())
}

// === impl Contest ===

impl<'a> Contest<'a> {
    fn decide(&self, registry: &str, policy: ConflictPolicy) -> (Decision, Vec<(&'a str, &'a KeptEntry)>) {
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
        let why = match &winner {
            _ if !self.refused.is_empty() => Why::Protected,
            _ if first.is_none() || (!has_original && self.additional.len() == 1) => Why::Alone,
            _ if self.is_unanimous() => Why::Same,
            Some(Origin::Original) => Why::OriginalWins,
            _ if has_original => Why::AdditionalWins,
            _ => Why::First,
        };
        let mut everybody: Vec<Origin> = if has_original { vec![Origin::Original] } else { Vec::new() };
        let names = self.additional.iter().map(|(name, _)| *name).chain(self.refused.iter().copied());
        everybody.extend(names.map(|name| Origin::Additional(name.to_owned())));
        let over = everybody.into_iter().filter(|origin| winner.as_ref() != Some(origin)).collect();
        let keys = taken.iter().map(|(key, _)| (*key).to_owned()).collect();
        (Decision { registry: shown(registry), keys, winner, over, why }, taken)
    }

    /// Whether all say the same, so that it does not matter whose is taken.
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
            Some(winner) => write!(formatter, "from {winner}, {}", self.why.words())?,
            None => write!(formatter, "not taken, {}", self.why.words())?,
        }
        if self.over.is_empty() {
            return Ok(());
        }
        let over: Vec<String> = self.over.iter().map(ToString::to_string).collect();
        write!(formatter, " (over {})", over.join(", "))
    }
}

impl Why {
    /// The reason in words, fit to follow a name.
    pub fn words(self) -> &'static str {
        match self {
            Self::Alone => "the only one that names it",
            Self::Same => "as all say the same",
            Self::AdditionalWins => "which comes before the original",
            Self::OriginalWins => "which comes before additional ones",
            Self::First => "the first of several additional ones",
            Self::Protected => "as the registry is protected",
        }
    }

    /// The reason in one word, for programs.
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
