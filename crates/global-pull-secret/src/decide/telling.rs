//! How things are, in conditions, and what of it is news.

use std::time::Duration;

use fleet_model::names;

use super::asking::CREDENTIALS_ACCEPTED;
use super::content::{Content, Wanted, conflicts, is_additional};
use super::{Round, later, put, remove};
use crate::facts::is_ours;
use crate::objects;
use crate::plan::{News, Nodes, Plan, Thing};
use crate::reason::Reason;
use crate::record::Record;
use crate::status::{self, Condition};

/// So many nodes are named.
const NAMED: usize = 10;
/// Counts alone are not told more often than this: a large roll-out would be a write for every node.
const GAP: Duration = Duration::from_secs(2);

impl Round<'_> {
    /// Ends the decision: conditions, news, and the status object.
    pub(super) fn tell(mut self, content: Content, record: Option<&Record>, nodes: Option<Nodes>) -> Plan {
        let is_cleaning = matches!(content.wanted, Wanted::Gone { .. });
        if let Some(seen) = self.facts.status.as_deref().filter(|seen| !is_ours(&seen.metadata)) {
            self.foreign.push(format!("configmap {}", seen.metadata.name.as_deref().unwrap_or_default()));
        }
        let before = self.facts.status.as_deref().map(status::conditions_of).unwrap_or_default();
        let mut conditions = vec![
            self.valid(&content),
            self.merged(&content),
            self.rolled_out(is_cleaning, record, nodes.as_ref()),
            self.degraded(&content, record, nodes.as_ref(), &before),
        ];
        conditions.extend(self.credentials_accepted(&content));
        for condition in &mut conditions {
            let last = before.iter().find(|last| last.kind == condition.kind && last.status == condition.status);
            condition.last_transition_time = last.map_or(self.now, |last| last.last_transition_time);
        }
        let is_gone = is_cleaning && self.is_all_gone() && self.actions.is_empty();
        let is_incomplete = conditions.iter().any(|condition| condition.reason == Reason::RevertIncomplete.as_str());
        let mut news = news(&content, &conditions, &before);
        news.extend(self.credential_news(&content));
        if let Some(next) = content.probing.next {
            self.look_again(next);
        }
        if is_gone && !is_incomplete {
            news.clear();
            if let Some(seen) = self.facts.status.as_deref().filter(|seen| is_ours(&seen.metadata)) {
                self.actions.push(remove(Thing::Status(seen.clone())));
                let note = "the nodes are back at the original, and everything was removed".to_owned();
                news.push(News {
                    about: names::ADDITIONAL_PULL_SECRET.to_owned(),
                    uid: None,
                    reason: Reason::CleanedUp,
                    note,
                });
            }
        } else if !self.put_status(&conditions, &before, &content, record) {
            // What is not written now will be news then.
            news.clear();
        }
        let Self { actions, next, .. } = self;
        let Content { because, probing, .. } = content;
        Plan { actions, conditions, news, because, nodes, ask: probing.ask, next }
    }

    fn valid(&self, content: &Content) -> Condition {
        let several = content.judged.len() > 1;
        let named = |name: &str, words: &str| if several { format!("{name}: {words}") } else { words.to_owned() };
        let faults: Vec<_> =
            content.judged.iter().filter_map(|judged| Some((judged, judged.fault.as_ref()?))).collect();
        let notes = content.judged.iter().flat_map(|judged| judged.notes.iter().map(|note| named(&judged.name, note)));
        let notes: Vec<String> = notes.collect();
        let (holds, reason, message) = if content.judged.is_empty() {
            (None, Reason::NoAdditional, "there is no additional pull secret".to_owned())
        } else if let Some((_, (reason, _))) =
            faults.iter().find(|(_, (reason, _))| *reason != Reason::EntriesLeftOut).or(faults.first())
        {
            let words = faults.iter().map(|(judged, (_, words))| {
                let kept = if judged.has_stand_in() { " (its last good entries stay)" } else { "" };
                named(&judged.name, words) + kept
            });
            (Some(false), *reason, words.chain(notes).collect::<Vec<_>>().join("; "))
        } else if notes.is_empty() {
            (Some(true), Reason::Valid, "every entry can be used".to_owned())
        } else {
            (Some(true), Reason::ValidWithWarnings, notes.join("; "))
        };
        Condition::new("Valid", holds, reason, message, self.now)
    }

    fn merged(&self, content: &Content) -> Condition {
        let (holds, reason, message) = match (&content.problem, &content.wanted) {
            (Some((reason, words)), _) => (false, *reason, words.clone()),
            (None, Wanted::Merged { .. }) => (true, Reason::Merged, summary(content)),
            (None, _) => (false, Reason::NoAdditional, "there is nothing to merge".to_owned()),
        };
        Condition::new("Merged", Some(holds), reason, message, self.now)
    }

    fn rolled_out(&self, is_cleaning: bool, record: Option<&Record>, nodes: Option<&Nodes>) -> Condition {
        let (holds, reason, message) = match (record, nodes) {
            (Some(_), Some(nodes)) => {
                let Nodes { in_sync, all, .. } = nodes;
                let (reason, words) = match () {
                    () if is_cleaning => (Reason::Reverting, "nodes are back at the original"),
                    () if in_sync < all => (Reason::RollingOut, "nodes have the content"),
                    () => (Reason::RolledOut, "nodes have the content"),
                };
                (in_sync == all && !is_cleaning, reason, format!("{in_sync}/{all} {words}"))
            }
            (Some(_), None) if is_cleaning => {
                (false, Reason::Reverting, "waits for the original, to bring the nodes back to it".to_owned())
            }
            _ => (false, Reason::NotDeployed, "nothing is deployed".to_owned()),
        };
        Condition::new("RolledOut", Some(holds), reason, message, self.now)
    }

    fn degraded(
        &self,
        content: &Content,
        record: Option<&Record>,
        nodes: Option<&Nodes>,
        before: &[Condition],
    ) -> Condition {
        let last = before.iter().find(|last| last.reason == Reason::RevertIncomplete.as_str());
        let is_cleaning = matches!(content.wanted, Wanted::Gone { .. });
        let late = nodes.filter(|nodes| nodes.in_sync < nodes.all && record.is_some_and(|record| self.is_late(record)));
        let problem = content.problem.as_ref().filter(|(reason, _)| *reason != Reason::AskingRegistries);
        let (holds, reason, message) = if !self.foreign.is_empty() {
            let objects = self.foreign.join(", ");
            (true, Reason::ForeignObject, format!("not ours, left alone: {objects}"))
        } else if let Some(words) = &self.facts.refused {
            (true, Reason::ServerRefuses, words.clone())
        } else if let Some(lost) = &self.lost {
            (true, Reason::RevertIncomplete, named_nodes(lost, "not back at the original"))
        } else if let (true, Some(last), None) = (is_cleaning, last, nodes) {
            (true, Reason::RevertIncomplete, last.message.clone())
        } else if let (Some((reason, words)), true) = (problem, record.is_some() || !is_cleaning) {
            (true, *reason, words.clone())
        } else if let Some(late) = late {
            (true, Reason::NodesNotInSync, named_nodes(late, "not in sync"))
        } else {
            (false, Reason::AsExpected, "all is well".to_owned())
        };
        Condition::new("Degraded", Some(holds), reason, message, self.now)
    }

    fn is_all_gone(&self) -> bool {
        let facts = self.facts;
        let metadata = [
            facts.global.as_deref().map(|seen| &seen.metadata),
            facts.service_account.as_deref().map(|seen| &seen.metadata),
            facts.role.as_deref().map(|seen| &seen.metadata),
            facts.role_binding.as_deref().map(|seen| &seen.metadata),
            facts.daemon_set.as_deref().map(|seen| &seen.metadata),
        ];
        !metadata.into_iter().flatten().any(is_ours)
    }

    /// Writes the status if it says something new; returns whether it is up to date then.
    fn put_status(
        &mut self,
        conditions: &[Condition],
        before: &[Condition],
        content: &Content,
        record: Option<&Record>,
    ) -> bool {
        let seen = self.facts.status.as_deref();
        if seen.is_some_and(|seen| !is_ours(&seen.metadata)) {
            return false;
        }
        let has_nothing_to_say = seen.is_none() && content.judged.is_empty() && self.is_all_gone();
        if has_nothing_to_say {
            return false;
        }
        let revision = record.map(|record| (record.revision.as_str(), later(record.changed_at, self.policy.settle)));
        let told = &content.probing.told;
        let data = status::data(conditions, &content.because, told, revision);
        if seen.is_some_and(|seen| seen.data.as_ref() == Some(&data)) {
            return true;
        }
        let differs = |condition: &&Condition| !before.iter().any(|last| last.says_the_same(condition));
        let is_only_count = conditions.iter().filter(differs).all(|condition| {
            condition.kind == "RolledOut"
                && before.iter().any(|last| last.kind == condition.kind && last.reason == condition.reason)
        });
        let is_only_count = is_only_count && seen.is_some_and(|seen| status::told_of(seen) == *told);
        let last = seen.and_then(status::written_at).map(|last| later(last, GAP));
        if let Some(last) = last.filter(|last| is_only_count && self.now < *last) {
            self.look_again(last);
            return false;
        }
        let annotations = [(names::ANNOTATION_WRITTEN_AT.to_owned(), self.now.to_string())].into();
        let metadata = objects::metadata(names::GLOBAL_STATUS, annotations, seen.map(|seen| &seen.metadata));
        self.actions.push(put(Thing::Status(objects::status(metadata, data))));
        true
    }
}

/// What has changed since it was told last.
fn news(content: &Content, conditions: &[Condition], before: &[Condition]) -> Vec<News> {
    let faulty = content.judged.iter().find(|judged| judged.fault.is_some());
    let about = faulty.or(content.judged.first());
    let name = about.map_or(names::ADDITIONAL_PULL_SECRET, |judged| &judged.name);
    // Of credentials each finding is news, and not their sum.
    let changed = conditions.iter().filter(|condition| condition.kind != CREDENTIALS_ACCEPTED).filter(|condition| {
        let last = before.iter().find(|last| last.kind == condition.kind);
        let is_count = condition.kind == "RolledOut";
        last.map_or(condition.reason != Reason::AsExpected.as_str(), |last| {
            last.reason != condition.reason || (!is_count && last.message != condition.message)
        })
    });
    let told = changed.filter_map(|condition| {
        let reason = Reason::ALL.into_iter().find(|reason| reason.as_str() == condition.reason)?;
        let uid = about.and_then(|judged| judged.uid.clone());
        Some(News { about: name.to_owned(), uid, reason, note: condition.message.clone() })
    });
    let mut news: Vec<News> = Vec::new();
    for one in told {
        // The same reason of two conditions is one piece of news.
        if !news.iter().any(|other| other.reason == one.reason) && one.reason != Reason::NotDeployed {
            news.push(one);
        }
    }
    news
}

fn summary(content: &Content) -> String {
    let (over, protected) = conflicts(&content.because);
    let additional = content.because.iter().filter(|decision| is_additional(decision)).count();
    let mut parts = vec![format!("{} registries, {additional} from additional Secrets", content.because.len())];
    let listed = |registries: std::collections::BTreeSet<&str>| {
        registries.into_iter().take(NAMED).collect::<Vec<_>>().join(", ")
    };
    if !over.is_empty() {
        parts.push(format!("in conflict: {}", listed(over)));
    }
    if !protected.is_empty() {
        parts.push(format!("protected, left to the original: {}", listed(protected)));
    }
    parts.extend(content.notes.iter().cloned());
    parts.join("; ")
}

fn named_nodes(nodes: &Nodes, what: &str) -> String {
    let named = nodes.behind.iter().take(NAMED).map(|(node, why)| format!("{node} ({why})"));
    let mut named: Vec<String> = named.collect();
    let missing = nodes.all.saturating_sub(nodes.in_sync);
    let more = missing.saturating_sub(named.len());
    if more > 0 {
        // Who made no Pod knows why, such as a priority class that is not there.
        let set = format!("`kubectl describe daemonset {} -n {}`", names::GLOBAL_SYNCER, names::GLOBAL_NAMESPACE);
        named.push(if named.is_empty() { format!("no Pod there; {set} says why") } else { format!("and {more} more") });
    }
    format!("{missing} of {} nodes {what}: {}", nodes.all, named.join(", "))
}
