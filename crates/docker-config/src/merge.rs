//! Merges credential documents: one original, and additional ones before or after it.
//!
//! Keys are compared, and written, in their normalised form ([`RegistryKey::normalized`](crate::RegistryKey::normalized)), so
//! `https://quay.io/` and `quay.io` are one registry, and no spelling of an additional document takes the original's entry
//! away from an image: only a conflict about that very registry does, by the policy. An entry is taken whole or not at all.
//! The members beside `auths` are the original's: kubelet and containers/image agree on `auths` only, and a credential helper
//! that an additional document names would be a program run on every node.
//!
//! A key for a part of a registry, such as `quay.io/team`, is no conflict with `quay.io`: it is an admin's statement about
//! that part. kubelet tries the original's entry after it.

mod admit;
mod original;
mod protect;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use original::Claims;
use secrecy::ExposeSecret as _;

pub use admit::{Admitted, InvalidEntries, admit};
pub use protect::Prefix;

use crate::credentials::{Document, RawEntry};
use crate::lookup::covers;
use crate::normal::sorted;
use crate::path::shown;

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
    /// Its keys in the result; print them by [`shown_key`](crate::shown_key) only. Empty if no document has one that may be
    /// used. More than one only if the original has several entries for the registry, which kubelet tries in turn.
    pub keys: Vec<String>,
    /// The origin of the entry in the result; `None` if it was refused and no other document has one.
    pub winner: Option<Origin>,
    /// The origins whose entries are not in the result.
    pub overridden: Vec<Origin>,
    /// The reason.
    pub reason: MergeReason,
    /// The original's registry, safe to print, of which an additional document names a part: the entry is used before it.
    pub before: Option<String>,
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
    original: Claims<'a>,
    /// By source, in order of precedence.
    additional: Vec<(&'a str, &'a RawEntry)>,
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
    let normal: Vec<(&str, Document)> =
        additional.iter().map(|source| (source.name, source.document.normalized())).collect();
    let mut registries: BTreeMap<String, Candidates<'_>> = original::claims(original)
        .into_iter()
        .map(|(registry, original)| (registry, Candidates { original, ..Candidates::default() }))
        .collect();
    let of_original: BTreeSet<String> = registries.keys().cloned().collect();
    for (name, document) in &normal {
        for (key, entry) in document.entries() {
            let candidates = registries.entry(key.to_owned()).or_default();
            if policy.protected.iter().any(|prefix| prefix.is_shadowed_by(key, &of_original)) {
                candidates.refused.push(name);
            } else {
                candidates.additional.push((name, entry));
            }
        }
    }
    let mut document = original.without_entries().map_other_members(sorted);
    let mut decisions = Vec::new();
    for (registry, candidates) in registries {
        let (mut decision, taken) = candidates.decide(&registry, policy.conflict);
        if matches!(decision.winner, Some(Origin::Additional(_))) && !of_original.contains(&registry) {
            // kubelet tries keys in reverse order.
            decision.before = of_original.iter().rev().find(|above| covers(above, &registry)).map(|above| shown(above));
        }
        for (key, entry) in taken {
            document.insert(key, entry);
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

// === impl Candidates ===

impl Candidates<'_> {
    fn decide(&self, registry: &str, policy: ConflictPolicy) -> (Decision, Vec<(String, RawEntry)>) {
        let has_original = !self.original.is_empty();
        let first = self.additional.first();
        let additional_wins = match policy {
            _ if !has_original => true,
            ConflictPolicy::AdditionalWins => !self.is_unanimous(registry),
            ConflictPolicy::OriginalWins => false,
        };
        let (winner, taken) = match first {
            Some((name, entry)) if additional_wins => {
                (Some(Origin::Additional((*name).to_owned())), vec![(registry.to_owned(), (*entry).clone())])
            }
            _ if has_original => (Some(Origin::Original), self.original.entries(registry)),
            _ => (None, Vec::new()),
        };
        let reason = match &winner {
            _ if !self.refused.is_empty() => MergeReason::Protected,
            _ if first.is_none() || (!has_original && self.additional.len() == 1) => MergeReason::Alone,
            _ if self.is_unanimous(registry) => MergeReason::Same,
            Some(Origin::Original) => MergeReason::OriginalWins,
            _ if has_original => MergeReason::AdditionalWins,
            _ => MergeReason::First,
        };
        let mut all: Vec<Origin> = if has_original { vec![Origin::Original] } else { Vec::new() };
        let names = self.additional.iter().map(|(name, _)| *name).chain(self.refused.iter().copied());
        all.extend(names.map(|name| Origin::Additional(name.to_owned())));
        let overridden = all.into_iter().filter(|origin| winner.as_ref() != Some(origin)).collect();
        let keys = taken.iter().map(|(key, _)| key.clone()).collect();
        (Decision { registry: shown(registry), keys, winner, overridden, reason, before: None }, taken)
    }

    /// Returns true if all entries mean the same.
    fn is_unanimous(&self, registry: &str) -> bool {
        let additional = self.additional.iter().map(|(_, entry)| entry.digest(registry));
        let mut digests = self.original.digests(registry).chain(additional);
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
        if !self.overridden.is_empty() {
            let overridden: Vec<String> = self.overridden.iter().map(ToString::to_string).collect();
            write!(formatter, " (over {})", overridden.join(", "))?;
        }
        self.before.iter().try_for_each(|registry| write!(formatter, " (used before {registry} of the original)"))
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
