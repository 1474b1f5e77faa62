//! From what is seen of a secret to what is done about it, and why.
//!
//! Three rules carry the rest:
//!
//! * **The highest version is live and holds the wanted content**, and no other version seen does. So `latest`, which is
//!   always the highest number, reads what the record says. When two runs have added the same content, the one with
//!   the higher number sees the other (adding and reading by number are strongly consistent) and destroys it.
//! * **Claim, then add.** The record announces the version before it is added, under the secret's etag. A run of an older
//!   generation fails to claim, or, if it was overtaken between its claim and its addition, finds that its version
//!   did not get the number that it announced, looks again, and puts the newer content back on top.
//! * **Only what we added is destroyed** to keep few versions; a duplicate of the wanted content is, whoever added it.

mod plan;

use std::collections::{BTreeMap, BTreeSet};

use docker_config::Digest;
use fleet_model::job::Reason;
use fleet_model::{ClusterId, Generation, names};
use secret_store::{Metadata, VersionNumber};

pub use plan::{Action, Because, Content, Plan};

use crate::record::Record;

/// What should be.
#[derive(Clone, Debug)]
pub struct Desired {
    /// Whose secret it is.
    pub cluster: ClusterId,
    /// Labels that must be on the secret; others may be too.
    pub labels: BTreeMap<String, String>,
    /// The edition of the cluster's specification that the content is from, where known.
    pub generation: Option<Generation>,
    /// The meaning of the content.
    pub content: Digest,
    /// The digest as it may be shown, where a key for it is given.
    pub shown_digest: Option<String>,
    /// How many of the versions that we added are kept, the current one included; 0 keeps all.
    pub retain: usize,
    /// Add a version even where the newest one holds the content.
    pub always_add: bool,
}

/// What is.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The secret's metadata; `None` when it does not exist.
    pub secret: Option<Metadata>,
    /// The versions from the recorded one up to the highest.
    pub versions: BTreeMap<VersionNumber, Seen>,
    /// The versions that this run has added.
    pub added: BTreeSet<VersionNumber>,
}

/// A version as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It can be read and means this.
    Live(Digest),
    /// It is disabled.
    Disabled,
    /// It is destroyed.
    Destroyed,
}

/// What to do so that the secret exists, is ours, and its highest version holds the wanted content.
pub fn store(desired: &Desired, observed: &Observed) -> Plan {
    let Some(secret) = &observed.secret else { return create(desired) };
    if let Some(refusal) = refuse_foreign(&desired.cluster, secret) {
        return refusal;
    }
    let record = Record::read(&secret.annotations);
    if let Some(newer) = newer_generation(desired.generation, &record) {
        return give_way(newer, secret, record, observed);
    }
    let view = View { desired, observed, secret, record };
    match view.head() {
        Some((head, seen)) if seen == Seen::Live(desired.content) && !view.must_add(head) => view.keep(head),
        Some((head, seen)) => view.add(head.next(), view.why_add(head, seen)),
        None => view.add(VersionNumber::FIRST, Because::NoVersion),
    }
}

/// What to do so that the secret does not exist.
pub fn delete(cluster: &ClusterId, generation: Option<Generation>, secret: Option<&Metadata>) -> Plan {
    let Some(secret) = secret else { return Plan::new(Reason::SecretAbsent, Because::Missing) };
    if let Some(refusal) = refuse_foreign(cluster, secret) {
        return refusal;
    }
    match newer_generation(generation, &Record::read(&secret.annotations)) {
        Some(newer) => Plan::new(Reason::Superseded, Because::NewerGeneration(newer)),
        None => Plan::new(Reason::SecretDeleted, Because::Unwanted).then(Action::Delete { etag: secret.etag.clone() }),
    }
}

/// The first version of a secret has the number 1, so its record can be written with the secret itself.
fn create(desired: &Desired) -> Plan {
    let first = VersionNumber::FIRST;
    let record = Record {
        generation: desired.generation,
        version: Some(first),
        digest: desired.shown_digest.clone(),
        added: BTreeSet::from([first]),
    };
    let mut annotations = BTreeMap::new();
    record.write(&mut annotations);
    Plan::new(Reason::SecretStored, Because::Missing)
        .holding(first)
        .then(Action::Create { labels: desired.labels.clone(), annotations })
        .then(Action::Add { content: Content::Wanted, number: first })
}

fn refuse_foreign(cluster: &ClusterId, secret: &Metadata) -> Option<Plan> {
    let label = |name: &str| secret.labels.get(name).map(String::as_str);
    let managed_by = label(names::LABEL_MANAGED_BY);
    let owner = label(names::LABEL_CLUSTER_ID);
    let ours = managed_by == Some(names::MANAGED_BY) && owner == Some(cluster.as_str());
    let foreign = || Because::Foreign { managed_by: managed_by.map(str::to_owned), cluster: owner.map(str::to_owned) };
    (!ours).then(|| Plan::new(Reason::NameConflict, foreign()))
}

fn newer_generation(ours: Option<Generation>, record: &Record) -> Option<Generation> {
    record.generation.filter(|recorded| ours.is_some_and(|ours| *recorded > ours))
}

/// A newer generation holds the secret. If this run has put a version above the newer content meanwhile, the newer
/// content goes back on top; any version that this run has added goes away.
fn give_way(newer: Generation, secret: &Metadata, mut record: Record, observed: &Observed) -> Plan {
    let mut plan = Plan::new(Reason::Superseded, Because::NewerGeneration(newer));
    let is_live = |number: &VersionNumber| matches!(observed.versions.get(number), Some(Seen::Live(_)));
    let mut strays: BTreeSet<_> = observed.added.iter().copied().filter(is_live).collect();
    let head = observed.versions.last_key_value().map(|(number, _)| *number);
    let covered = record.version.filter(is_live).filter(|current| Some(*current) < head);
    if let (Some(current), Some(head)) = (covered, head.filter(|head| strays.contains(head))) {
        let number = head.next();
        record.version = Some(number);
        record.added.insert(number);
        strays.insert(current);
        plan = plan.then(Action::Add { content: Content::CopyOf(current), number });
    }
    if strays.is_empty() {
        return plan;
    }
    record.added.retain(|number| !strays.contains(number));
    strays.into_iter().fold(plan, |plan, stray| plan.then(Action::Destroy(stray))).and_record(secret, &record, None)
}

/// The secret is ours and no newer generation holds it.
struct View<'a> {
    desired: &'a Desired,
    observed: &'a Observed,
    secret: &'a Metadata,
    record: Record,
}

impl View<'_> {
    fn head(&self) -> Option<(VersionNumber, Seen)> {
        self.observed.versions.last_key_value().map(|(number, seen)| (*number, *seen))
    }

    fn must_add(&self, head: VersionNumber) -> bool {
        self.desired.always_add && !self.observed.added.contains(&head)
    }

    fn why_add(&self, head: VersionNumber, seen: Seen) -> Because {
        match seen {
            Seen::Live(content) if content == self.desired.content => Because::AlwaysAdd,
            Seen::Live(_) => Because::OtherContent(head),
            Seen::Disabled => Because::Disabled(head),
            Seen::Destroyed => Because::Destroyed(head),
        }
    }

    /// The head holds the wanted content: mend what is around it.
    fn keep(&self, head: VersionNumber) -> Plan {
        let stored = self.observed.added.contains(&head);
        let reason = if stored { Reason::SecretStored } else { Reason::SecretUnchanged };
        let mut record = self.new_record(head);
        let surplus = self.surplus(head, &mut record);
        let plan = Plan::new(reason, Because::Holds(head)).holding(head);
        destroy(plan, surplus).and_record(self.secret, &record, Some(&self.desired.labels))
    }

    /// The claim, the addition, then what is now too much.
    fn add(&self, number: VersionNumber, because: Because) -> Plan {
        let mut record = self.new_record(number);
        let plan = Plan::new(Reason::SecretStored, because)
            .holding(number)
            .and_record(self.secret, &record, Some(&self.desired.labels))
            .then(Action::Add { content: Content::Wanted, number });
        let surplus = self.surplus(number, &mut record);
        if surplus.is_empty() {
            return plan;
        }
        destroy(plan, surplus).and_record(self.secret, &record, Some(&self.desired.labels))
    }

    fn new_record(&self, version: VersionNumber) -> Record {
        let is_gone = |number: &VersionNumber| self.observed.versions.get(number) == Some(&Seen::Destroyed);
        let mut added: BTreeSet<_> = self.record.added.union(&self.observed.added).copied().collect();
        added.retain(|number| !is_gone(number));
        added.insert(version);
        // Without a key for it the digest of other content must go; that of the same content may stay.
        let same_content = self.record.version == Some(version);
        let digest = self.desired.shown_digest.clone().or_else(|| self.record.digest.clone().filter(|_| same_content));
        let generation = self.desired.generation.max(self.record.generation);
        Record { generation, version: Some(version), digest, added }
    }

    /// The versions to destroy once `current` is in place; takes them off the record.
    fn surplus(&self, current: VersionNumber, record: &mut Record) -> BTreeSet<VersionNumber> {
        let wanted = Seen::Live(self.desired.content);
        let seen = &self.observed.versions;
        let duplicates = seen.iter().filter(|(number, seen)| **number < current && **seen == wanted);
        let mut surplus: BTreeSet<_> =
            duplicates.map(|(number, _)| *number).filter(|_| !self.desired.always_add).collect();
        let kept: BTreeSet<_> = record.added.difference(&surplus).copied().collect();
        let too_many = if self.desired.retain == 0 { 0 } else { kept.len().saturating_sub(self.desired.retain) };
        surplus.extend(kept.into_iter().filter(|number| *number < current).take(too_many));
        record.added.retain(|number| !surplus.contains(number));
        surplus
    }
}

fn destroy(plan: Plan, surplus: BTreeSet<VersionNumber>) -> Plan {
    surplus.into_iter().fold(plan, |plan, number| plan.then(Action::Destroy(number)))
}

#[cfg(test)]
mod tests;
