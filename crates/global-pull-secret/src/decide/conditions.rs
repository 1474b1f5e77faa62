//! The conditions of a decision, and the Events about their changes.

use std::time::Duration;

use fleet_model::{ReportedCondition, names};

use super::content::{Content, Desired, conflicts, is_additional, replaced};
use super::reconcile::Reconcile;
use super::time::later;
use crate::facts::is_managed;
use crate::objects;
use crate::plan::{Event, ManagedObject, Nodes, Plan};
use crate::policy::ReportedPolicy;
use crate::reason::Reason;
use crate::record::Record;
use crate::status;

/// Maximum number of nodes named in a message.
const MAX_NAMED: usize = 10;
/// Minimum interval between status writes that change only counts: a large roll-out would be a write for every node.
const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(2);

impl Reconcile<'_> {
    /// Finishes the decision: conditions, Events, and the status object.
    pub(super) fn finish(mut self, content: Content, record: Option<&Record>, nodes: Option<Nodes>) -> Plan {
        let is_cleaning = matches!(content.desired, Desired::Gone { .. });
        if let Some(observed) = self.facts.status.as_deref().filter(|observed| !is_managed(&observed.metadata)) {
            self.unmanaged.push(format!("configmap {}", observed.metadata.name.as_deref().unwrap_or_default()));
        }
        let before = self.facts.status.as_deref().map(status::conditions_of).unwrap_or_default();
        let mut conditions = vec![
            self.valid(&content),
            self.merged(&content),
            self.rolled_out(is_cleaning, record, nodes.as_ref()),
            self.degraded(&content, record, nodes.as_ref(), &before),
        ];
        conditions.extend(self.credentials_accepted(&content));
        conditions.extend(self.keys_kept(&content, record, &before));
        for condition in &mut conditions {
            let last = before.iter().find(|last| last.kind == condition.kind && last.status == condition.status);
            condition.last_transition_time = last.map_or(self.now, |last| last.last_transition_time);
        }
        let is_gone = is_cleaning && self.is_all_gone() && self.actions.is_empty();
        let is_incomplete = conditions.iter().any(|condition| status::has_reason(condition, Reason::RevertIncomplete));
        let mut events = events(&content, &conditions, &before);
        events.extend(self.credential_events(&content));
        if let Some(next) = content.probing.next {
            self.requeue_at(next);
        }
        if is_gone && !is_incomplete {
            events.clear();
            if let Some(observed) = self.facts.status.as_deref().filter(|observed| is_managed(&observed.metadata)) {
                self.delete(ManagedObject::Status(observed.clone()));
                let note = "the nodes are back at the original, and everything was removed".to_owned();
                events.push(Event {
                    about: names::ADDITIONAL_PULL_SECRET.to_owned(),
                    uid: None,
                    reason: Reason::CleanedUp,
                    note,
                });
            }
        } else if !self.apply_status(&conditions, &before, &content, record) {
            // Changes that are not written now are published with the status that contains them.
            events.clear();
        }
        let revision = record.map(|record| record.revision.clone());
        let Self { actions, images_for, next, .. } = self;
        let Content { decisions, probing, .. } = content;
        Plan { actions, conditions, events, decisions, revision, nodes, requests: probing.requests, images_for, next }
    }

    fn valid(&self, content: &Content) -> ReportedCondition {
        let several = content.validated.len() > 1;
        let named = |name: &str, message: &str| if several { format!("{name}: {message}") } else { message.to_owned() };
        let notes = content
            .validated
            .iter()
            .flat_map(|validated| validated.notes.iter().map(|note| named(&validated.name, note)));
        let notes: Vec<String> = notes.collect();
        let (holds, reason, message) = if content.validated.is_empty() {
            (None, Reason::NoAdditional, "there is no additional pull secret".to_owned())
        } else if let Some((reason, message)) = fault(content) {
            (Some(false), reason, std::iter::once(message).chain(notes).collect::<Vec<_>>().join("; "))
        } else if notes.is_empty() {
            (Some(true), Reason::Valid, "every entry can be used".to_owned())
        } else {
            (Some(true), Reason::ValidWithWarnings, notes.join("; "))
        };
        status::condition(names::condition::VALID, holds, reason, message, self.now)
    }

    fn merged(&self, content: &Content) -> ReportedCondition {
        let (holds, reason, message) = match (&content.problem, &content.desired) {
            (Some((reason, message)), _) => (false, *reason, message.clone()),
            (None, Desired::Merged { .. }) => (true, Reason::Merged, summary(content)),
            (None, _) => (false, Reason::NoAdditional, "there is nothing to merge".to_owned()),
        };
        status::condition(names::condition::MERGED, Some(holds), reason, message, self.now)
    }

    fn rolled_out(&self, is_cleaning: bool, record: Option<&Record>, nodes: Option<&Nodes>) -> ReportedCondition {
        let (holds, reason, message) = match (record, nodes) {
            (Some(_), Some(nodes)) => {
                let Nodes { in_sync, all, .. } = nodes;
                let (reason, message) = match () {
                    () if is_cleaning => (Reason::Reverting, "nodes are back at the original"),
                    () if in_sync < all => (Reason::RollingOut, "nodes have the content"),
                    () => (Reason::RolledOut, "nodes have the content"),
                };
                (in_sync == all && !is_cleaning, reason, format!("{in_sync}/{all} {message}"))
            }
            (Some(_), None) if is_cleaning => {
                (false, Reason::Reverting, "waits for the original, to revert the nodes to it".to_owned())
            }
            _ => (false, Reason::NotDeployed, "nothing is deployed".to_owned()),
        };
        status::condition(names::condition::ROLLED_OUT, Some(holds), reason, message, self.now)
    }

    fn degraded(
        &self,
        content: &Content,
        record: Option<&Record>,
        nodes: Option<&Nodes>,
        before: &[ReportedCondition],
    ) -> ReportedCondition {
        let last = before.iter().find(|last| status::has_reason(last, Reason::RevertIncomplete));
        let is_cleaning = matches!(content.desired, Desired::Gone { .. });
        let late = nodes.filter(|nodes| nodes.is_late && record.is_some());
        let problem = content.problem.as_ref().filter(|(reason, _)| *reason != Reason::ProbingRegistries);
        let (holds, reason, message) = if !self.unmanaged.is_empty() {
            let objects = self.unmanaged.join(", ");
            (true, Reason::UnmanagedObject, format!("unmanaged, left alone: {objects}"))
        } else if let Some(message) = &self.facts.refused {
            (true, Reason::ApiServerError, message.clone())
        } else if let Some(lost) = &self.lost {
            (true, Reason::RevertIncomplete, named_nodes(lost, "may still hold the credentials"))
        } else if let (true, Some(last), None) = (is_cleaning, last, nodes) {
            (true, Reason::RevertIncomplete, last.message.clone().unwrap_or_default())
        } else if let (Some((reason, message)), true) = (problem, record.is_some() || !is_cleaning) {
            (true, *reason, message.clone())
        } else if let Some(late) = late {
            (true, Reason::NodesNotInSync, named_nodes(late, "have not confirmed the content"))
        } else if let Some((reason, message)) = fault(content) {
            (true, reason, message)
        } else {
            (false, Reason::AsExpected, as_expected(content))
        };
        status::condition(names::condition::DEGRADED, Some(holds), reason, message, self.now)
    }

    fn is_all_gone(&self) -> bool {
        let facts = self.facts;
        let metadata = [
            facts.global.as_deref().map(|observed| &observed.metadata),
            facts.service_account.as_deref().map(|observed| &observed.metadata),
            facts.role.as_deref().map(|observed| &observed.metadata),
            facts.role_binding.as_deref().map(|observed| &observed.metadata),
            facts.daemon_set.as_deref().map(|observed| &observed.metadata),
            facts.confirmations.as_deref().map(|observed| &observed.metadata),
        ];
        !metadata.into_iter().flatten().any(is_managed)
    }

    /// Applies the status if it has changed; returns true if it is up to date then.
    fn apply_status(
        &mut self,
        conditions: &[ReportedCondition],
        before: &[ReportedCondition],
        content: &Content,
        record: Option<&Record>,
    ) -> bool {
        let observed = self.facts.status.as_deref();
        if observed.is_some_and(|observed| !is_managed(&observed.metadata)) {
            return false;
        }
        let has_no_status = observed.is_none() && content.validated.is_empty() && self.is_all_gone();
        if has_no_status {
            return false;
        }
        let revision = record.map(|record| record.revision.as_str());
        let reported = &content.probing.reported;
        let policy = ReportedPolicy::from(self.policy);
        let data = status::data(conditions, &content.decisions, reported, revision, &policy);
        if observed.is_some_and(|observed| observed.data.as_ref() == Some(&data)) {
            return true;
        }
        let differs = |condition: &&ReportedCondition| !before.iter().any(|last| status::is_same(last, condition));
        let is_only_count = conditions.iter().filter(differs).all(|condition| {
            condition.kind == names::condition::ROLLED_OUT
                && before.iter().any(|last| last.kind == condition.kind && last.reason == condition.reason)
        });
        let is_only_count =
            is_only_count && observed.is_some_and(|observed| status::findings_of(observed) == *reported);
        let last = observed.and_then(status::written_at).map(|last| later(last, MIN_WRITE_INTERVAL));
        if let Some(last) = last.filter(|last| is_only_count && self.now < *last) {
            self.requeue_at(last);
            return false;
        }
        let annotations = [(names::ANNOTATION_WRITTEN_AT.to_owned(), self.now.to_string())].into();
        let metadata =
            objects::metadata(names::GLOBAL_STATUS, annotations, observed.map(|observed| &observed.metadata));
        self.apply(ManagedObject::Status(objects::status(metadata, data)));
        true
    }
}

/// The Events about conditions that have changed since the last status.
fn events(content: &Content, conditions: &[ReportedCondition], before: &[ReportedCondition]) -> Vec<Event> {
    let faulty = content.validated.iter().find(|validated| validated.fault.is_some());
    let about = faulty.or(content.validated.first());
    let name = about.map_or(names::ADDITIONAL_PULL_SECRET, |validated| &validated.name);
    // Each finding on a credential has an Event of its own.
    let changed = conditions
        .iter()
        .filter(|condition| condition.kind != names::condition::CREDENTIALS_ACCEPTED)
        .filter(|condition| {
            condition.kind != names::condition::KEYS_KEPT || status::has_reason(condition, Reason::KeysLost)
        })
        .filter(|condition| {
            let last = before.iter().find(|last| last.kind == condition.kind);
            let is_count = condition.kind == names::condition::ROLLED_OUT;
            last.map_or(!status::has_reason(condition, Reason::AsExpected), |last| {
                last.reason != condition.reason || (!is_count && last.message != condition.message)
            })
        });
    let changes = changed.filter_map(|condition| {
        let reason = Reason::parse(condition.reason.as_deref()?)?;
        let uid = about.and_then(|validated| validated.uid.clone());
        Some(Event { about: name.to_owned(), uid, reason, note: condition.message.clone().unwrap_or_default() })
    });
    let mut events: Vec<Event> = Vec::new();
    for one in changes {
        // Two conditions with the same reason are one Event.
        if !events.iter().any(|other| other.reason == one.reason) && one.reason != Reason::NotDeployed {
            events.push(one);
        }
    }
    events
}

/// The faults of additional Secrets; a rejected one comes before one of which entries are left out.
fn fault(content: &Content) -> Option<(Reason, String)> {
    let several = content.validated.len() > 1;
    let faults = || content.validated.iter().filter_map(|one| Some((one, one.fault.as_ref()?)));
    let rejected = faults().find(|(_, (reason, _))| *reason != Reason::EntriesLeftOut);
    let (_, (reason, _)) = rejected.or_else(|| faults().next())?;
    let messages = faults().map(|(validated, (_, message))| {
        let kept = if validated.has_stand_in() { " (its last good entries stay)" } else { "" };
        if several { format!("{}: {message}{kept}", validated.name) } else { format!("{message}{kept}") }
    });
    Some((*reason, messages.collect::<Vec<_>>().join("; ")))
}

/// The message of a cluster that is not degraded; says which of the original's entries are replaced.
fn as_expected(content: &Content) -> String {
    let registries = named_registries(replaced(&content.decisions).collect());
    let as_desired = "the hosted cluster is as desired";
    if registries.is_empty() {
        as_desired.to_owned()
    } else {
        format!("{as_desired}; additional Secrets replace the original's entries for: {registries}")
    }
}

fn named_registries(registries: std::collections::BTreeSet<&str>) -> String {
    registries.into_iter().take(MAX_NAMED).collect::<Vec<_>>().join(", ")
}

fn summary(content: &Content) -> String {
    let (over, protected) = conflicts(&content.decisions);
    let additional = content.decisions.iter().filter(|decision| is_additional(decision)).count();
    let mut parts = vec![format!("{} registries, {additional} from additional Secrets", content.decisions.len())];
    if !over.is_empty() {
        parts.push(format!("in conflict: {}", named_registries(over)));
    }
    if !protected.is_empty() {
        parts.push(format!("protected, left to the original: {}", named_registries(protected)));
    }
    let parts_of =
        |decision: &docker_config::merge::Decision| Some((decision.registry.clone(), decision.before.clone()?));
    let before: Vec<String> = content
        .decisions
        .iter()
        .filter_map(parts_of)
        .take(MAX_NAMED)
        .map(|(registry, above)| format!("{registry} before {above}"))
        .collect();
    if !before.is_empty() {
        parts.push(format!("used before the original's entry: {}", before.join(", ")));
    }
    parts.extend(content.notes.iter().cloned());
    parts.join("; ")
}

fn named_nodes(nodes: &Nodes, what: &str) -> String {
    let named = nodes.behind.iter().take(MAX_NAMED).map(|(node, why)| format!("{node} ({why})"));
    let mut named: Vec<String> = named.collect();
    let missing = nodes.all.saturating_sub(nodes.in_sync);
    let more = missing.saturating_sub(named.len());
    if more > 0 {
        // The DaemonSet's own Events have the cause, such as a missing priority class.
        let set = format!("`kubectl describe daemonset {} -n {}`", names::GLOBAL_SYNCER, names::GLOBAL_NAMESPACE);
        named.push(if named.is_empty() {
            format!("no Pod there; {set} shows the cause")
        } else {
            format!("and {more} more")
        });
    }
    format!("{missing} of {} nodes {what}: {}", nodes.all, named.join(", "))
}
