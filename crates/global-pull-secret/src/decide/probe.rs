//! The credentials to probe at their registries, and the entries that a finding holds back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use daemon::backoff::Backoff;
use docker_config::merge::{Decision, Origin};
use docker_config::{Digest, Document, RawEntry, RegistryKey, shown_key};
use jiff::Timestamp;

use super::deployed::Deployed;
use super::time::later;
use super::validated::ValidatedSecret;
use crate::finding::{Finding, Mode, ProbeRequest, ProbeResult, ReportedFinding, Rules, Verdict, is_denied};

/// Back-off before a refused credential is probed again: registries lock accounts after frequent refusals.
const REFUSED: Backoff = Backoff::doubling(Duration::from_mins(10), Duration::from_hours(1)).with_factor(6);
/// Back-off after a probe without an answer.
const UNREACHABLE: Backoff = Backoff::doubling(Duration::from_secs(30), Duration::from_hours(1)).with_factor(4);
/// The name of Docker Hub, and the host of its registry.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

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
                    self.retry(result, key, entry, digest, known);
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
    fn retry(&mut self, result: &ProbeResult, key: &str, entry: &RawEntry, digest: Digest, known: &Known<'_>) {
        let Some(due) = due(result) else { return };
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

/// Time of the next probe after this result.
fn due(result: &ProbeResult) -> Option<Timestamp> {
    let backoff = match result.finding.verdict {
        Verdict::Accepted | Verdict::NotProbed => return None,
        Verdict::Refused => REFUSED,
        Verdict::Unreachable => UNREACHABLE,
    };
    let failures = u32::try_from(result.times.max(1)).unwrap_or(u32::MAX);
    Some(later(result.at, backoff.nominal(failures)))
}
