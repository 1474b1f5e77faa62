//! The credentials to probe at their registries, and the entries that a finding holds back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use daemon::backoff::Backoff;
use docker_config::merge::{Decision, Origin};
use docker_config::{Digest, Document, RawEntry, RegistryKey, shown_key};
use jiff::Timestamp;
use secrecy::SecretSlice;
use serde::{Deserialize, Serialize};

use super::content::{Deployed, ValidatedSecret};
use super::later;

/// Back-off before a refused credential is probed again: registries lock accounts after frequent refusals.
const REFUSED: Backoff = Backoff::doubling(Duration::from_mins(10), Duration::from_hours(1)).with_factor(6);
/// Back-off after a probe without an answer.
const UNREACHABLE: Backoff = Backoff::doubling(Duration::from_secs(30), Duration::from_hours(1)).with_factor(4);
/// The name of Docker Hub, and the host of its registry.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// The mode of probing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No registry is probed.
    #[default]
    Off,
    /// Findings are reported.
    Warn,
    /// Findings are reported, and refused entries are not rolled out.
    Block,
}

/// The rules of probing.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The mode.
    pub mode: Mode,
    /// Hosts, with all subdomains, that are never probed.
    pub deny: Vec<String>,
}

/// The verdict on a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The registry accepts it.
    Accepted,
    /// The registry refuses it.
    Refused,
    /// The registry gives no conclusive answer.
    Unreachable,
    /// The registry is not probed.
    NotProbed,
}

/// The result of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// A message for people; it quotes nothing of the registry's answer.
    pub message: String,
}

/// The last result of probing an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// The finding.
    pub finding: Finding,
    /// Time since which the verdict is this one.
    pub since: Timestamp,
    /// Time of the last probe.
    pub at: Timestamp,
    /// Number of probes in a row with this verdict.
    pub times: usize,
}

/// A probe to start. Holds a credential: its `Debug` shows nothing.
pub struct ProbeRequest {
    /// The digest of the entry's meaning.
    pub digest: Digest,
    /// Host and port.
    pub host: String,
    /// `USER:PASSWORD`.
    pub credential: SecretSlice<u8>,
}

/// A finding about one entry as it is reported in the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedFinding {
    /// The entry's key, fit to be shown.
    pub registry: String,
    /// The Secret that the entry is from.
    pub from: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The message.
    pub message: String,
    /// Time since which this holds.
    pub since: Timestamp,
    /// True if the entry is held back because of it.
    pub held_back: bool,
}

/// The inputs of probing in one decision.
pub(super) struct Known<'a> {
    pub(super) rules: &'a Rules,
    pub(super) results: &'a BTreeMap<Digest, ProbeResult>,
    /// The findings of the last status, unless it is about other content.
    pub(super) reported: Vec<ReportedFinding>,
    pub(super) deployed: Option<&'a Deployed>,
    pub(super) original: &'a Document,
    pub(super) now: Timestamp,
}

/// The findings of one decision, and the probes to start.
#[derive(Default)]
pub(super) struct Probing {
    pub(super) reported: Vec<ReportedFinding>,
    pub(super) requests: Vec<ProbeRequest>,
    /// Time of the next probe.
    pub(super) next: Option<Timestamp>,
    /// True if content waits for probes.
    pub(super) is_waiting: bool,
}

/// Returns true if the host is on the list, or a subdomain of one that is.
pub fn is_denied(host: &str, deny: &[String]) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    deny.iter().any(|denied| {
        let above = host.strip_suffix(denied.as_str());
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    })
}

// === impl Finding ===

impl Finding {
    /// A finding with its message.
    pub fn new(verdict: Verdict, message: impl Into<String>) -> Self {
        Self { verdict, message: message.into() }
    }
}

// === impl ProbeResult ===

impl ProbeResult {
    /// The result of a probe that has just ended, after the previous one.
    pub fn of(finding: Finding, before: Option<&Self>, now: Timestamp) -> Self {
        match before.filter(|before| before.finding.verdict == finding.verdict) {
            Some(before) => Self { finding, since: before.since, at: now, times: before.times.saturating_add(1) },
            None => Self { finding, since: now, at: now, times: 1 },
        }
    }

    /// Time of the next probe.
    fn due(&self) -> Option<Timestamp> {
        let backoff = match self.finding.verdict {
            Verdict::Accepted | Verdict::NotProbed => return None,
            Verdict::Refused => REFUSED,
            Verdict::Unreachable => UNREACHABLE,
        };
        let failures = u32::try_from(self.times.max(1)).unwrap_or(u32::MAX);
        Some(later(self.at, backoff.nominal(failures)))
    }
}

// === impl Probing ===

impl Probing {
    /// Evaluates all entries that a merge would take, and withdraws those that must wait or are refused.
    pub(super) fn of(validated: &mut [ValidatedSecret], decisions: &[Decision], known: &Known<'_>) -> Self {
        let mut probing = Self::default();
        for validated in validated {
            let winner = Some(Origin::Additional(validated.name.clone()));
            let its = decisions.iter().filter(|decision| decision.winner == winner);
            let keys: BTreeSet<&String> = its.flat_map(|decision| &decision.keys).collect();
            probing.evaluate(validated, &keys, known);
        }
        probing
    }

    fn evaluate(&mut self, validated: &mut ValidatedSecret, keys: &BTreeSet<&String>, known: &Known<'_>) {
        let Some(used) = &validated.used else { return };
        let deployed = known.deployed.and_then(|deployed| deployed.document.as_ref());
        let (mut refused, mut reported, mut waits) = (Vec::new(), Vec::new(), false);
        for key in keys {
            let (Some(entry), Some(digest)) = (used.entry(key), used.entry_digest(key)) else { continue };
            let is_new = deployed.and_then(|deployed| deployed.entry_digest(key)) != Some(digest);
            let (finding, since) = match known.results.get(&digest) {
                Some(result) => {
                    self.retry(result, (key, entry, digest), known);
                    (result.finding.clone(), Some(result.since))
                }
                // Probed before it was rolled out; a restarted controller need not probe again.
                None if !is_new => {
                    reported.extend(known.last(key, &validated.name).cloned());
                    continue;
                }
                None => match request(key, entry, digest, known.rules) {
                    Ok(request) => {
                        self.requests.push(request);
                        waits = true;
                        continue;
                    }
                    Err(why) => (Finding::new(Verdict::NotProbed, why), None),
                },
            };
            let held_back = known.rules.mode == Mode::Block && finding.verdict == Verdict::Refused && is_new;
            if held_back {
                refused.push((*key).clone());
            }
            let last = known.last(key, &validated.name).filter(|last| last.verdict == finding.verdict);
            let since = since.or(last.map(|last| last.since)).unwrap_or(known.now);
            let (registry, from) = (shown_key(key), validated.name.clone());
            let Finding { verdict, message } = finding;
            reported.push(ReportedFinding { registry, from, verdict, message, since, held_back });
        }
        self.is_waiting |= waits;
        if waits {
            // All entries are rolled out at once: each roll-out restarts kubelets.
            validated.used = known.last_good(&validated.name);
            reported = known.reported.iter().filter(|reported| reported.from == validated.name).cloned().collect();
        } else if !refused.is_empty() {
            hold_back(validated, &refused, known.last_good(&validated.name).as_ref());
        }
        self.reported.extend(reported);
    }

    /// Probes again what was refused or not answered, when it is due.
    fn retry(&mut self, result: &ProbeResult, (key, entry, digest): (&str, &RawEntry, Digest), known: &Known<'_>) {
        let Some(due) = result.due() else { return };
        if due > known.now {
            self.next = Some(self.next.map_or(due, |next| next.min(due)));
        } else {
            self.requests.extend(request(key, entry, digest, known.rules).ok());
        }
    }
}

impl Known<'_> {
    fn last(&self, key: &str, from: &str) -> Option<&ReportedFinding> {
        let registry = shown_key(key);
        self.reported.iter().find(|reported| reported.registry == registry && reported.from == from)
    }

    fn last_good(&self, name: &str) -> Option<Document> {
        self.deployed.and_then(|deployed| deployed.entries_of(name, Some(self.original)))
    }
}

/// The probe of an entry, or the reason for which there is none.
fn request(key: &str, entry: &RawEntry, digest: Digest, rules: &Rules) -> Result<ProbeRequest, &'static str> {
    let parsed = RegistryKey::parse(key).map_err(|_problem| "the key names no registry")?;
    if parsed.has_glob() {
        return Err("the key is for many registries");
    }
    let credential = entry.basic().ok_or("only users with passwords are probed")?;
    let host = parsed.normalized().split('/').next().unwrap_or_default();
    let host = if host == DOCKER_HUB.0 { DOCKER_HUB.1 } else { host };
    let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
    if is_denied(name, &rules.deny) {
        return Err("the registry is on the deny list");
    }
    Ok(ProbeRequest { digest, host: host.to_owned(), credential })
}

/// Removes entries; the last good ones of the same registry replace them.
fn hold_back(validated: &mut ValidatedSecret, keys: &[String], last_good: Option<&Document>) {
    let Some(used) = &mut validated.used else { return };
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
        validated.used = None;
    }
}

impl Verdict {
    /// The verdict in one word, as metric label and log field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::NotProbed => "not-probed",
        }
    }
}

impl fmt::Debug for ProbeRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProbeRequest(redacted)")
    }
}
