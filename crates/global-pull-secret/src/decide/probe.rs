//! Which credentials their registries are to be asked about, and what the answers hold back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use daemon::backoff::Backoff;
use docker_config::merge::{Decision, Origin};
use docker_config::{Digest, Document, KeptEntry, RegistryKey, shown_key};
use jiff::Timestamp;
use secrecy::SecretSlice;
use serde::{Deserialize, Serialize};

use super::content::{Deployed, Judged};
use super::later;

/// Back-off before a refused credential is probed again: registries lock accounts after frequent refusals.
const REFUSED: Backoff = Backoff::doubling(Duration::from_mins(10), Duration::from_hours(1)).with_factor(6);
/// Back-off after a probe without an answer.
const UNREACHABLE: Backoff = Backoff::doubling(Duration::from_secs(30), Duration::from_hours(1)).with_factor(4);
/// Where the registry of Docker Hub is.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// What answers are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nobody is asked.
    #[default]
    Off,
    /// They are told.
    Warn,
    /// They are told, and what was refused is not rolled out.
    Block,
}

/// The rules of asking.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// What answers are good for.
    pub mode: Mode,
    /// Hosts, with all below them, that are never asked.
    pub deny: Vec<String>,
}

/// What is known of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The registry takes it.
    Accepted,
    /// The registry does not.
    Refused,
    /// The registry gives no answer that tells.
    Unreachable,
    /// The registry is not asked.
    NotAsked,
}

/// What asking has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In one word.
    pub verdict: Verdict,
    /// For people; nothing that the registry has said.
    pub words: String,
}

/// The last finding about an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The finding.
    pub finding: Finding,
    /// Since when the verdict is this one.
    pub since: Timestamp,
    /// When it was last asked.
    pub at: Timestamp,
    /// How often in a row the verdict was this one.
    pub times: usize,
}

/// A question to a registry. Holds a credential: nothing of it is shown.
pub struct Question {
    /// What the entry means.
    pub digest: Digest,
    /// Host and port.
    pub host: String,
    /// `USER:PASSWORD`.
    pub credential: SecretSlice<u8>,
}

/// A finding about one entry, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// The entry's key, fit to be shown.
    pub registry: String,
    /// The Secret that the entry is from.
    pub from: String,
    /// What was found.
    pub verdict: Verdict,
    /// In words.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
    /// Whether the entry is not rolled out for it.
    pub held_back: bool,
}

/// What was seen for one decision.
pub(super) struct Known<'a> {
    pub(super) rules: &'a Rules,
    pub(super) answers: &'a BTreeMap<Digest, Answer>,
    /// What was told last, unless it is about other content.
    pub(super) told: Vec<Told>,
    pub(super) deployed: Option<&'a Deployed>,
    pub(super) original: &'a Document,
    pub(super) now: Timestamp,
}

/// What a decision says about asking.
#[derive(Default)]
pub(super) struct Probing {
    pub(super) told: Vec<Told>,
    pub(super) ask: Vec<Question>,
    /// When to ask again.
    pub(super) next: Option<Timestamp>,
    /// Whether content waits for answers.
    pub(super) is_waiting: bool,
}

/// Whether the host is on the list, or below one that is.
pub fn is_denied(host: &str, deny: &[String]) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    deny.iter().any(|denied| {
        let above = host.strip_suffix(denied.as_str());
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    })
}

// === impl Finding ===

impl Finding {
    /// A finding.
    pub fn new(verdict: Verdict, words: impl Into<String>) -> Self {
        Self { verdict, words: words.into() }
    }
}

// === impl Answer ===

impl Answer {
    /// The answer that was found now, after what was known before.
    pub fn of(finding: Finding, before: Option<&Self>, now: Timestamp) -> Self {
        match before.filter(|before| before.finding.verdict == finding.verdict) {
            Some(before) => Self { finding, since: before.since, at: now, times: before.times.saturating_add(1) },
            None => Self { finding, since: now, at: now, times: 1 },
        }
    }

    /// When to ask again.
    fn due(&self) -> Option<Timestamp> {
        let backoff = match self.finding.verdict {
            Verdict::Accepted | Verdict::NotAsked => return None,
            Verdict::Refused => REFUSED,
            Verdict::Unreachable => UNREACHABLE,
        };
        let failures = u32::try_from(self.times.max(1)).unwrap_or(u32::MAX);
        Some(later(self.at, backoff.nominal(failures)))
    }
}

// === impl Probing ===

impl Probing {
    /// Looks at all entries that a merge would take, and takes back from the Secrets what must wait or is refused.
    pub(super) fn of(judged: &mut [Judged], because: &[Decision], known: &Known<'_>) -> Self {
        let mut probing = Self::default();
        for judged in judged {
            let winner = Some(Origin::Additional(judged.name.clone()));
            let its = because.iter().filter(|decision| decision.winner == winner);
            let keys: BTreeSet<&String> = its.flat_map(|decision| &decision.keys).collect();
            probing.look(judged, &keys, known);
        }
        probing
    }

    fn look(&mut self, judged: &mut Judged, keys: &BTreeSet<&String>, known: &Known<'_>) {
        let Some(used) = &judged.used else { return };
        let deployed = known.deployed.and_then(|deployed| deployed.document.as_ref());
        let (mut refused, mut told, mut waits) = (Vec::new(), Vec::new(), false);
        for key in keys {
            let (Some(entry), Some(digest)) = (used.entry(key), used.entry_digest(key)) else { continue };
            let is_new = deployed.and_then(|deployed| deployed.entry_digest(key)) != Some(digest);
            let (finding, since) = match known.answers.get(&digest) {
                Some(answer) => {
                    self.again(answer, (key, entry, digest), known);
                    (answer.finding.clone(), Some(answer.since))
                }
                // Known already when it was rolled out; another controller need not ask again.
                None if !is_new => {
                    told.extend(known.last(key, &judged.name).cloned());
                    continue;
                }
                None => match question(key, entry, digest, known.rules) {
                    Ok(question) => {
                        self.ask.push(question);
                        waits = true;
                        continue;
                    }
                    Err(why) => (Finding::new(Verdict::NotAsked, why), None),
                },
            };
            let held_back = known.rules.mode == Mode::Block && finding.verdict == Verdict::Refused && is_new;
            if held_back {
                refused.push((*key).clone());
            }
            let last = known.last(key, &judged.name).filter(|last| last.verdict == finding.verdict);
            let since = since.or(last.map(|last| last.since)).unwrap_or(known.now);
            let (registry, from) = (shown_key(key), judged.name.clone());
            let Finding { verdict, words } = finding;
            told.push(Told { registry, from, verdict, message: words, since, held_back });
        }
        self.is_waiting |= waits;
        if waits {
            // All of it comes at once: each roll-out restarts kubelets.
            judged.used = known.last_good(&judged.name);
            told = known.told.iter().filter(|told| told.from == judged.name).cloned().collect();
        } else if !refused.is_empty() {
            hold_back(judged, &refused, known.last_good(&judged.name).as_ref());
        }
        self.told.extend(told);
    }

    /// Asks again what was refused or not answered, when its time has come.
    fn again(&mut self, answer: &Answer, (key, entry, digest): (&str, &KeptEntry, Digest), known: &Known<'_>) {
        let Some(due) = answer.due() else { return };
        if due > known.now {
            self.next = Some(self.next.map_or(due, |next| next.min(due)));
        } else {
            self.ask.extend(question(key, entry, digest, known.rules).ok());
        }
    }
}

impl Known<'_> {
    fn last(&self, key: &str, from: &str) -> Option<&Told> {
        let registry = shown_key(key);
        self.told.iter().find(|told| told.registry == registry && told.from == from)
    }

    fn last_good(&self, name: &str) -> Option<Document> {
        self.deployed.and_then(|deployed| deployed.entries_of(name, Some(self.original)))
    }
}

/// What to ask; or why nobody is asked.
fn question(key: &str, entry: &KeptEntry, digest: Digest, rules: &Rules) -> Result<Question, &'static str> {
    let parsed = RegistryKey::parse(key).map_err(|_problem| "the key names no registry")?;
    if parsed.has_glob() {
        return Err("the key is for many registries");
    }
    let credential = entry.basic().ok_or("only users with passwords are asked about")?;
    let host = parsed.normalized().split('/').next().unwrap_or_default();
    let host = if host == DOCKER_HUB.0 { DOCKER_HUB.1 } else { host };
    let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
    if is_denied(name, &rules.deny) {
        return Err("the registry is on the deny list");
    }
    Ok(Question { digest, host: host.to_owned(), credential })
}

/// Takes entries out; for each, the last good ones of its registry come in its place.
fn hold_back(judged: &mut Judged, keys: &[String], last_good: Option<&Document>) {
    let Some(used) = &mut judged.used else { return };
    let registry = |key: &str| RegistryKey::parse(key).ok().map(|key| key.normalized().to_owned());
    for key in keys {
        used.remove(key);
        let Some(last) = last_good else { continue };
        for earlier in last.keys().filter(|earlier| registry(earlier) == registry(key)) {
            if let (None, Some(entry)) = (used.entry(earlier), last.entry(earlier)) {
                let entry = entry.clone();
                used.insert(earlier, entry);
            }
        }
    }
    if used.is_empty() {
        judged.used = None;
    }
}

impl Verdict {
    /// In one word, as metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::NotAsked => "not-asked",
        }
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Question(redacted)")
    }
}
