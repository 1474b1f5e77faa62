//! How credentials are told that registries were asked about.

use super::Round;
use super::content::{Content, Wanted};
use super::probe::{Mode, Told, Verdict};
use crate::plan::News;
use crate::reason::Reason;
use crate::status::{self, Condition};

/// So many entries are named in the condition.
const NAMED: usize = 10;
/// The condition.
pub(super) const CREDENTIALS_ACCEPTED: &str = "CredentialsAccepted";

impl Round<'_> {
    /// What registries say of all credentials; no condition where nobody is asked.
    pub(super) fn credentials_accepted(&self, content: &Content) -> Option<Condition> {
        if self.policy.probe.mode == Mode::Off || !matches!(content.wanted, Wanted::Merged { .. } | Wanted::Nothing) {
            return None;
        }
        let told = &content.probing.told;
        let of = |verdict: Verdict| told.iter().filter(move |told| told.verdict == verdict);
        let count = |verdict: Verdict| of(verdict).count();
        let (holds, reason, message) = if count(Verdict::Refused) > 0 {
            (Some(false), Reason::CredentialRefused, named(of(Verdict::Refused)))
        } else if content.probing.is_waiting {
            (None, Reason::AskingRegistries, "registries are being asked about new credentials".to_owned())
        } else if count(Verdict::Unreachable) > 0 {
            (None, Reason::RegistryUnreachable, named(of(Verdict::Unreachable)))
        } else {
            let (accepted, not_asked) = (count(Verdict::Accepted), count(Verdict::NotAsked));
            (Some(true), Reason::CredentialAccepted, format!("{accepted} accepted, {not_asked} not asked about"))
        };
        Some(Condition::new(CREDENTIALS_ACCEPTED, holds, reason, message, self.now))
    }

    /// An Event for each finding that was not told before.
    pub(super) fn credential_news(&self, content: &Content) -> Vec<News> {
        let before = self.facts.status.as_deref().map(status::told_of).unwrap_or_default();
        let is_known = |one: &Told| {
            let same = |last: &Told| (&last.registry, &last.from) == (&one.registry, &one.from);
            before.iter().any(|last| same(last) && last.verdict == one.verdict && last.since == one.since)
        };
        let fresh = content.probing.told.iter().filter(|one| !is_known(one));
        let news = fresh.filter_map(|one| {
            let reason = match one.verdict {
                Verdict::Accepted => Reason::CredentialAccepted,
                Verdict::Refused => Reason::CredentialRefused,
                Verdict::Unreachable => Reason::RegistryUnreachable,
                Verdict::NotAsked => return None,
            };
            let secret = content.judged.iter().find(|judged| judged.name == one.from);
            let uid = secret.and_then(|judged| judged.uid.clone());
            Some(News { about: one.from.clone(), uid, reason, note: line(one) })
        });
        news.collect()
    }
}

fn line(told: &Told) -> String {
    let Told { registry, from, message, held_back, .. } = told;
    let held_back = if *held_back { " (held back; what was good before stays)" } else { "" };
    format!("{registry}, from {from}: {message}{held_back}")
}

fn named<'a>(told: impl Iterator<Item = &'a Told>) -> String {
    let lines: Vec<String> = told.map(line).collect();
    let more = lines.len().saturating_sub(NAMED);
    let mut parts: Vec<String> = lines.into_iter().take(NAMED).collect();
    parts.extend((more > 0).then(|| format!("and {more} more")));
    parts.join("; ")
}
