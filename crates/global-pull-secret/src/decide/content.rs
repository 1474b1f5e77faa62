//! What the merged Secret is to hold.

use std::collections::{BTreeMap, BTreeSet};

use docker_config::merge::{Admitted, Decision, Merged, Origin, Source, admit, merge};
use docker_config::{Document, Limits};
use fleet_model::names;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use super::probe::{Known, Mode, Probing};
use super::{Policy, last_told};
use crate::facts::{Facts, SecretSeen, is_ours};
use crate::reason::Reason;
use crate::record::{ORIGINAL, Record, source_name};

/// So many problems are told of one Secret.
const TOLD: usize = 3;

/// What is deployed.
pub(super) struct Deployed {
    pub(super) record: Record,
    /// `None` where it is no document any more.
    pub(super) document: Option<Document>,
}

/// What is known about content.
pub(super) struct Content {
    pub(super) judged: Vec<Judged>,
    pub(super) wanted: Wanted,
    pub(super) because: Vec<Decision>,
    /// What the condition `Merged` says, unless all is well.
    pub(super) problem: Option<(Reason, String)>,
    /// What registries have said of the credentials, and what they are to be asked.
    pub(super) probing: Probing,
    /// What else is worth saying of the merge.
    pub(super) notes: Vec<String>,
}

/// What the merged Secret is to be.
pub(super) enum Wanted {
    /// Not there.
    Nothing,
    /// What it is: nothing better can be made at present.
    AsItIs,
    /// This.
    Merged { document: Document, sources: BTreeMap<String, String> },
    /// Gone, once the nodes are back at the original.
    Gone { original: Option<Document> },
}

/// An additional Secret, judged.
pub(super) struct Judged {
    pub(super) name: String,
    pub(super) uid: Option<String>,
    priority: i64,
    /// What of it is used.
    pub(super) used: Option<Document>,
    /// What is wrong with it, and whether it was refused as a whole.
    pub(super) fault: Option<(Reason, String)>,
    pub(super) notes: Vec<String>,
}

// === impl Deployed ===

impl Deployed {
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let global = facts.global.as_deref().filter(|global| is_ours(&global.metadata))?;
        Some(Self { record: Record::of(global), document: document_of(global).ok() })
    }

    /// The entries that a Secret has contributed. Where the record is lost: all that are not the original's.
    pub(super) fn entries_of(&self, name: &str, original: Option<&Document>) -> Option<Document> {
        let deployed = self.document.as_ref()?;
        let mut document = deployed.clone();
        let others: Vec<String> = document.other_members().map(str::to_owned).collect();
        for other in others {
            document.remove_other_member(&other);
        }
        let is_its = |key: &str| match &self.record.sources {
            Some(sources) => sources.get(key).map(String::as_str) == Some(name),
            None => original.is_none_or(|original| original.entry_digest(key) != deployed.entry_digest(key)),
        };
        let foreign: Vec<String> = document.keys().filter(|key| !is_its(key)).map(str::to_owned).collect();
        for key in foreign {
            document.remove(&key);
        }
        Some(document).filter(|document| !document.is_empty())
    }
}

fn document_of(secret: &SecretSeen) -> Result<Document, String> {
    let content = secret.content.as_ref().ok_or("has no .dockerconfigjson")?;
    Document::parse(content.expose_secret(), &Limits::SECRET).map_err(|problems| problems.summary(TOLD))
}

// === impl Content ===

impl Content {
    pub(super) fn of(facts: &Facts, policy: &Policy, deployed: Option<&Deployed>, now: Timestamp) -> Self {
        let original = original(facts);
        let there = facts.additional.iter().filter(|secret| !secret.is_terminating());
        let known = original.as_ref().ok();
        let mut judged: Vec<Judged> = there.map(|secret| Judged::of(secret, policy, deployed, known)).collect();
        judged.sort_by(|one, other| (other.priority, &one.name).cmp(&(one.priority, &other.name)));
        let mut content = Self {
            judged,
            wanted: Wanted::Nothing,
            because: Vec::new(),
            problem: None,
            probing: Probing::default(),
            notes: Vec::new(),
        };
        let original = match original {
            Ok(original) => original,
            Err((reason, words)) => {
                let is_wanted = !content.judged.is_empty();
                content.wanted = match deployed {
                    _ if !is_wanted => Wanted::Gone { original: None },
                    Some(_) => Wanted::AsItIs,
                    None => Wanted::Nothing,
                };
                content.problem = Some((reason, words));
                return content;
            }
        };
        if content.judged.is_empty() {
            content.wanted = Wanted::Gone { original: Some(original) };
        } else {
            content.notes.extend(facts.original.as_deref().and_then(suspicion));
            content.probe(&original, facts, policy, (deployed, now));
            content.merge(&original, policy, deployed);
        }
        content
    }

    /// Sees what registries say of what would be taken; what is too large is not asked about.
    fn probe(
        &mut self,
        original: &Document,
        facts: &Facts,
        policy: &Policy,
        (deployed, now): (Option<&Deployed>, Timestamp),
    ) {
        if policy.probe.mode == Mode::Off {
            return;
        }
        let Ok(merged) = merge(original, &sources(&self.judged), &policy.merge) else { return };
        let (rules, answers) = (&policy.probe, &facts.answers);
        let known = Known { rules, answers, told: last_told(facts, deployed), deployed, original, now };
        self.probing = Probing::of(&mut self.judged, &merged.decisions, &known);
    }

    fn merge(&mut self, original: &Document, policy: &Policy, deployed: Option<&Deployed>) {
        if self.judged.iter().all(|judged| judged.used.is_none()) && deployed.is_none() {
            self.problem = Some(if self.probing.is_waiting {
                (Reason::AskingRegistries, "waits for what the registries say of the credentials".to_owned())
            } else {
                (Reason::NothingToMerge, "no additional Secret has a usable entry".to_owned())
            });
            return;
        }
        let merged = match merge(original, &sources(&self.judged), &policy.merge) {
            Ok(merged) => merged,
            Err(too_large) => {
                // As if they had all been refused: what was there before has fitted.
                for judged in &mut self.judged {
                    judged.used = deployed.and_then(|deployed| deployed.entries_of(&judged.name, Some(original)));
                    judged.fault = Some((Reason::TooLarge, too_large.to_string()));
                }
                let nothing_left = self.judged.iter().all(|judged| judged.used.is_none());
                match merge(original, &sources(&self.judged), &policy.merge) {
                    Ok(merged) if !(nothing_left && deployed.is_none()) => merged,
                    _ => {
                        self.wanted = if deployed.is_some() { Wanted::AsItIs } else { Wanted::Nothing };
                        self.problem = Some((Reason::TooLarge, too_large.to_string()));
                        return;
                    }
                }
            }
        };
        let Merged { document, because, left_out } = merged;
        let left_out = left_out
            .iter()
            .map(|(origin, name)| format!("{name} of {origin} is not taken over: only entries of auths are"));
        self.notes.extend(left_out);
        let sources = because.iter().flat_map(|decision| {
            let winner = decision.winner.as_ref().map(source_name).unwrap_or_default();
            decision.keys.iter().map(move |key| (key.clone(), winner.to_owned()))
        });
        self.wanted = Wanted::Merged { document, sources: sources.collect() };
        self.because = because;
    }
}

fn sources(judged: &[Judged]) -> Vec<Source<'_>> {
    let used = judged.iter().filter_map(|judged| Some((&judged.name, judged.used.as_ref()?)));
    used.map(|(name, document)| Source { name, document }).collect()
}

/// What a record says when everything is the original's.
pub(super) fn sources_of_original(original: &Document) -> BTreeMap<String, String> {
    original.keys().map(|key| (key.to_owned(), ORIGINAL.to_owned())).collect()
}

fn original(facts: &Facts) -> Result<Document, (Reason, String)> {
    let Some(secret) = facts.original.as_deref() else {
        let words = "the original pull secret is not there".to_owned();
        return Err((Reason::OriginalMissing, words));
    };
    if secret.content.is_none() {
        return Err((Reason::OriginalMissing, "the original pull secret has no .dockerconfigjson".to_owned()));
    }
    document_of(secret).map_err(|words| (Reason::OriginalInvalid, format!("the original pull secret: {words}")))
}

/// What is wrong with entries of the original, which are kept all the same.
fn suspicion(original: &SecretSeen) -> Option<String> {
    let content = original.content.as_ref()?;
    let problems = docker_config::parse(content.expose_secret(), &Limits::SECRET).err()?;
    Some(format!("the original has entries that nodes cannot use: {}", problems.summary(TOLD)))
}

// === impl Judged ===

impl Judged {
    fn of(secret: &SecretSeen, policy: &Policy, deployed: Option<&Deployed>, original: Option<&Document>) -> Self {
        let mut notes = Vec::new();
        let annotation = secret.annotation(names::ANNOTATION_PRIORITY);
        let priority = annotation.map_or(Ok(0), str::parse).unwrap_or_else(|_no_number| {
            notes.push(format!("annotation {} must be a whole number; 0 is taken", names::ANNOTATION_PRIORITY));
            0
        });
        let judged = Self {
            name: secret.name().to_owned(),
            uid: secret.metadata.uid.clone(),
            priority,
            used: None,
            fault: None,
            notes,
        };
        let refused = |judged: Self, words: String| Self {
            used: deployed.and_then(|deployed| deployed.entries_of(&judged.name, original)),
            fault: Some((Reason::InvalidSecret, words)),
            ..judged
        };
        let Some(content) = &secret.content else {
            return refused(judged, "has no key .dockerconfigjson".to_owned());
        };
        match admit(content.expose_secret(), &Limits::SECRET, policy.invalid) {
            Err(problems) => refused(judged, problems.summary(TOLD)),
            Ok(admitted) => judged.admitted(admitted),
        }
    }

    fn admitted(mut self, admitted: Admitted) -> Self {
        let Admitted { document, left_out, warnings } = admitted;
        let told = |problems: &[docker_config::Problem]| {
            let more = problems.len().saturating_sub(TOLD);
            let mut parts: Vec<String> = problems.iter().take(TOLD).map(ToString::to_string).collect();
            parts.extend((more > 0).then(|| format!("and {more} more")));
            parts.join("; ")
        };
        if !left_out.is_empty() {
            self.fault = Some((Reason::EntriesLeftOut, told(&left_out)));
        }
        if !warnings.is_empty() {
            self.notes.push(told(&warnings));
        }
        self.used = Some(document);
        self
    }

    /// Whether it was refused as a whole and earlier entries stand in for it.
    pub(super) fn has_stand_in(&self) -> bool {
        self.used.is_some() && self.fault.as_ref().is_some_and(|(reason, _)| *reason != Reason::EntriesLeftOut)
    }
}

/// The additional Secrets that somebody won against, for counting conflicts.
pub(super) fn conflicts(because: &[Decision]) -> (BTreeSet<&str>, BTreeSet<&str>) {
    use docker_config::merge::MergeReason;
    let of = |wanted: &[MergeReason]| {
        let fitting = because.iter().filter(|decision| wanted.contains(&decision.reason));
        fitting.map(|decision| decision.registry.as_str()).collect()
    };
    (of(&[MergeReason::AdditionalWins, MergeReason::OriginalWins, MergeReason::First]), of(&[MergeReason::Protected]))
}

/// Whether a decision is about an entry of an additional Secret.
pub(super) fn is_additional(decision: &Decision) -> bool {
    matches!(decision.winner, Some(Origin::Additional(_)))
}
