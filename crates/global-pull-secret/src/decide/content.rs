//! The desired content of the merged Secret.

use std::collections::{BTreeMap, BTreeSet};

use docker_config::merge::{Decision, Merged, Origin, Source, merge};
use docker_config::{Document, Limits};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use super::deployed::{Deployed, MAX_PROBLEMS, document_of};
use super::probe::{Known, Probing};
use super::validated::ValidatedSecret;
use crate::facts::{Facts, ObservedSecret};
use crate::finding::Mode;
use crate::keys::Keys;
use crate::policy::Policy;
use crate::reason::Reason;
use crate::record::{ORIGINAL, source_name};

/// The desired content, and the reasons for it.
pub(super) struct Content {
    pub(super) validated: Vec<ValidatedSecret>,
    pub(super) desired: Desired,
    pub(super) decisions: Vec<Decision>,
    /// The reason and message of the condition `Merged`, if there is a problem.
    pub(super) problem: Option<(Reason, String)>,
    /// The findings of probes, and the probes to start.
    pub(super) probing: Probing,
    /// Notes on the merge for the condition's message.
    pub(super) notes: Vec<String>,
}

/// The desired state of the merged Secret.
pub(super) enum Desired {
    /// Absent.
    Nothing,
    /// Unchanged, because no better content can be made at present.
    AsItIs,
    /// The merged document.
    Merged { document: Document, sources: BTreeMap<String, String> },
    /// Removed, once the nodes are back at the original.
    Gone { original: Option<Document> },
}

// === impl Content ===

impl Content {
    pub(super) fn of(facts: &Facts, policy: &Policy, deployed: Option<&Deployed>, now: Timestamp) -> Self {
        let original = original(facts);
        let there = facts.additional.iter().filter(|secret| !secret.is_terminating());
        let known = original.as_ref().ok();
        let mut validated: Vec<ValidatedSecret> =
            there.map(|secret| ValidatedSecret::of(secret, policy, deployed, known)).collect();
        validated.sort_by(|one, other| (other.priority, &one.name).cmp(&(one.priority, &other.name)));
        let mut content = Self {
            validated,
            desired: Desired::Nothing,
            decisions: Vec::new(),
            problem: None,
            probing: Probing::default(),
            notes: Vec::new(),
        };
        let original = match original {
            Ok(original) => original,
            Err((reason, message)) => {
                let has_additional = !content.validated.is_empty();
                content.desired = match deployed {
                    _ if !has_additional => Desired::Gone { original: None },
                    Some(_) => Desired::AsItIs,
                    None => Desired::Nothing,
                };
                content.problem = Some((reason, message));
                return content;
            }
        };
        if content.validated.is_empty() {
            content.desired = Desired::Gone { original: Some(original) };
        } else {
            content.notes.extend(facts.original.as_deref().and_then(suspicion));
            content.probe(&original, facts, policy, deployed, now);
            content.merge(&original, policy, deployed);
        }
        content
    }

    /// Evaluates the probes of the entries that a merge would take; a merge that is too large is not probed.
    fn probe(
        &mut self,
        original: &Document,
        facts: &Facts,
        policy: &Policy,
        deployed: Option<&Deployed>,
        now: Timestamp,
    ) {
        if policy.probe.mode == Mode::Off {
            return;
        }
        let Ok(merged) = merge(original, &sources(&self.validated), &policy.merge) else { return };
        let (rules, results) = (&policy.probe, &facts.results);
        let known = Known { rules, results, reported: Deployed::findings(facts, deployed), deployed, original, now };
        self.probing = Probing::of(&mut self.validated, &merged.decisions, &known);
    }

    fn merge(&mut self, original: &Document, policy: &Policy, deployed: Option<&Deployed>) {
        if self.validated.iter().all(|validated| validated.used.is_none()) && deployed.is_none() {
            self.problem = Some(if self.probing.is_waiting {
                (Reason::ProbingRegistries, "waits for registries to be probed about the credentials".to_owned())
            } else {
                (Reason::NothingToMerge, "no additional Secret has a usable entry".to_owned())
            });
            return;
        }
        let merged = match merge(original, &sources(&self.validated), &policy.merge) {
            Ok(merged) => merged,
            Err(too_large) => {
                // As if all were rejected: the previous entries did fit.
                for validated in &mut self.validated {
                    validated.used = deployed.and_then(|deployed| deployed.entries_of(&validated.name, Some(original)));
                    validated.fault = Some((Reason::TooLarge, too_large.to_string()));
                }
                let nothing_left = self.validated.iter().all(|validated| validated.used.is_none());
                match merge(original, &sources(&self.validated), &policy.merge) {
                    Ok(merged) if !(nothing_left && deployed.is_none()) => merged,
                    _ => {
                        self.desired = if deployed.is_some() { Desired::AsItIs } else { Desired::Nothing };
                        self.problem = Some((Reason::TooLarge, too_large.to_string()));
                        return;
                    }
                }
            }
        };
        let Merged { document, decisions, left_out } = merged;
        let left_out = left_out
            .iter()
            .map(|(origin, name)| format!("{name} of {origin} is not merged: only entries of auths are"));
        self.notes.extend(left_out);
        let sources = decisions.iter().flat_map(|decision| {
            let winner = decision.winner.as_ref().map(source_name).unwrap_or_default();
            decision.keys.iter().map(move |key| (key.clone(), winner.to_owned()))
        });
        self.desired = Desired::Merged { document, sources: sources.collect() };
        self.decisions = decisions;
    }
}

fn sources(validated: &[ValidatedSecret]) -> Vec<Source<'_>> {
    let used = validated.iter().filter_map(|validated| Some((&validated.name, validated.used.as_ref()?)));
    used.map(|(name, document)| Source { name, document }).collect()
}

/// The sources of a record that has only the original's entries.
pub(super) fn sources_of_original(original: &Document) -> BTreeMap<String, String> {
    original.keys().map(|key| (key.to_owned(), ORIGINAL.to_owned())).collect()
}

/// The keys of the original.
pub(super) fn keys_of_original(facts: &Facts) -> Option<Keys> {
    let original = original(facts).ok()?;
    Some(Keys::of(&original, &sources_of_original(&original)))
}

fn original(facts: &Facts) -> Result<Document, (Reason, String)> {
    let Some(secret) = facts.original.as_deref() else {
        let message = "the original pull secret does not exist".to_owned();
        return Err((Reason::OriginalMissing, message));
    };
    if secret.content.is_none() {
        return Err((Reason::OriginalMissing, "the original pull secret has no .dockerconfigjson".to_owned()));
    }
    document_of(secret).map_err(|message| (Reason::OriginalInvalid, format!("the original pull secret: {message}")))
}

/// The problems of entries of the original, which are kept all the same.
fn suspicion(original: &ObservedSecret) -> Option<String> {
    let content = original.content.as_ref()?;
    let problems = docker_config::parse(content.expose_secret(), &Limits::SECRET).err()?;
    Some(format!("the original has entries that nodes cannot use: {}", problems.summary(MAX_PROBLEMS)))
}

/// The registries in conflict, and those with a protected prefix.
pub(super) fn conflicts(decisions: &[Decision]) -> (BTreeSet<&str>, BTreeSet<&str>) {
    use docker_config::merge::MergeReason;
    let of = |rules: &[MergeReason]| {
        let fitting = decisions.iter().filter(|decision| rules.contains(&decision.reason));
        fitting.map(|decision| decision.registry.as_str()).collect()
    };
    (of(&[MergeReason::AdditionalWins, MergeReason::OriginalWins, MergeReason::First]), of(&[MergeReason::Protected]))
}

/// The original's registries whose entry an additional Secret replaces.
pub(super) fn replaced(decisions: &[Decision]) -> impl Iterator<Item = &str> {
    let is_replaced = |decision: &&Decision| is_additional(decision) && decision.overridden.contains(&Origin::Original);
    decisions.iter().filter(is_replaced).map(|decision| decision.registry.as_str())
}

/// Returns true if the winner is an additional Secret.
pub(super) fn is_additional(decision: &Decision) -> bool {
    matches!(decision.winner, Some(Origin::Additional(_)))
}
