//! The condition and the Events about credentials that registries were probed for.

use super::content::{Content, Desired};
use super::reconcile::Reconcile;
use crate::finding::{Mode, ReportedFinding, Verdict};
use crate::plan::Event;
use crate::reason::Reason;
use crate::status;
use fleet_model::{ReportedCondition, names};

/// Maximum number of entries named in the condition.
const MAX_NAMED: usize = 10;

impl Reconcile<'_> {
    /// The condition about all credentials; `None` if no registry is probed.
    pub(super) fn credentials_accepted(&self, content: &Content) -> Option<ReportedCondition> {
        if self.policy.probe.mode == Mode::Off || !matches!(content.desired, Desired::Merged { .. } | Desired::Nothing)
        {
            return None;
        }
        let reported = &content.probing.reported;
        let of = |verdict: Verdict| reported.iter().filter(move |reported| reported.verdict == verdict);
        let count = |verdict: Verdict| of(verdict).count();
        let (holds, reason, message) = if count(Verdict::Refused) > 0 {
            (Some(false), Reason::CredentialRefused, named(of(Verdict::Refused)))
        } else if content.probing.is_waiting {
            (None, Reason::ProbingRegistries, "registries are being probed about new credentials".to_owned())
        } else if count(Verdict::Unreachable) > 0 {
            (None, Reason::RegistryUnreachable, named(of(Verdict::Unreachable)))
        } else {
            let (accepted, not_probed) = (count(Verdict::Accepted), count(Verdict::NotProbed));
            (Some(true), Reason::CredentialAccepted, format!("{accepted} accepted, {not_probed} not probed"))
        };
        Some(status::condition(names::condition::CREDENTIALS_ACCEPTED, holds, reason, message, self.now))
    }

    /// An Event for each finding that was not reported before.
    pub(super) fn credential_events(&self, content: &Content) -> Vec<Event> {
        let before = self.facts.status.as_deref().map(status::findings_of).unwrap_or_default();
        let is_known = |one: &ReportedFinding| {
            let same = |last: &ReportedFinding| (&last.registry, &last.from) == (&one.registry, &one.from);
            before.iter().any(|last| same(last) && last.verdict == one.verdict && last.since == one.since)
        };
        let fresh = content.probing.reported.iter().filter(|one| !is_known(one));
        let events = fresh.filter_map(|one| {
            let reason = match one.verdict {
                Verdict::Accepted => Reason::CredentialAccepted,
                Verdict::Refused => Reason::CredentialRefused,
                Verdict::Unreachable => Reason::RegistryUnreachable,
                Verdict::NotProbed => return None,
            };
            let secret = content.validated.iter().find(|validated| validated.name == one.from);
            let uid = secret.and_then(|validated| validated.uid.clone());
            Some(Event { about: one.from.clone(), uid, reason, note: line(one) })
        });
        events.collect()
    }
}

fn line(reported: &ReportedFinding) -> String {
    let ReportedFinding { registry, from, message, held_back, .. } = reported;
    let held_back = if *held_back { " (held back; its last good entry stays)" } else { "" };
    format!("{registry}, from {from}: {message}{held_back}")
}

fn named<'a>(reported: impl Iterator<Item = &'a ReportedFinding>) -> String {
    let lines: Vec<String> = reported.map(line).collect();
    let more = lines.len().saturating_sub(MAX_NAMED);
    let mut parts: Vec<String> = lines.into_iter().take(MAX_NAMED).collect();
    parts.extend((more > 0).then(|| format!("and {more} more")));
    parts.join("; ")
}
