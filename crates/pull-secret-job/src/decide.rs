//! From what is seen of a secret to what is done about it, and why.
//!
//! Three rules carry the rest:
//!
//! * **The highest version is live and holds the wanted content**, and no other version seen that is ours does. So
//!   `latest`, which is always the highest number, reads what the record says. When two runs have added the same
//!   content, the one with the higher number sees the other (adding and reading by number are strongly consistent) and
//!   destroys it.
//! * **Announce, add, confirm.** Both writes of the record are under the secret's etag. A run of an older generation fails
//!   to announce, or, if it was overtaken between announcing and adding, fails to confirm; it then looks again, and puts
//!   the newer content back on top.
//! * **Only what we are known to have added is destroyed.**
//!
//! What is seen begins at the recorded version: an older version of the same content, from before a rotation and back,
//! stays until it is pruned.

pub mod kubernetes_secret;
mod plan;

use std::collections::{BTreeMap, BTreeSet};

use docker_config::Digest;
use fleet_model::job::Reason;
use fleet_model::{ClusterId, Generation, Owner};
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
    let view = View { desired, observed, secret, record: Record::read(&secret.annotations) };
    if let Some(newer) = newer_generation(desired.generation, &view.record) {
        return view.give_way(newer);
    }
    let head = observed.versions.last_key_value().map(|(number, seen)| (*number, *seen));
    match head {
        Some((head, seen)) if seen == Seen::Live(desired.content) && !view.must_add() => view.keep(head),
        Some((head, Seen::Live(_))) if view.is_overtaken(head) => view.accept(head),
        Some((head, seen)) => view.add(head.next(), view.why_add(head, seen)),
        None => view.add(VersionNumber::FIRST, Because::NoVersion),
    }
}

/// The plan that refuses a secret that is not ours.
pub fn refuse_foreign(cluster: &ClusterId, secret: &Metadata) -> Option<Plan> {
    let owner = Owner::of(&secret.labels);
    (!owner.is(cluster)).then(|| Plan::new(Reason::NameConflict, Because::Foreign(owner)))
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

/// The first version of a secret that we create has the number 1 and is ours, so its record comes with the secret.
fn create(desired: &Desired) -> Plan {
    let first = VersionNumber::FIRST;
    let record = Record {
        generation: desired.generation,
        version: Some(first),
        announced: None,
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

fn newer_generation(ours: Option<Generation>, record: &Record) -> Option<Generation> {
    record.generation.filter(|recorded| ours.is_some_and(|ours| *recorded > ours))
}

/// A secret that is ours.
struct View<'a> {
    desired: &'a Desired,
    observed: &'a Observed,
    secret: &'a Metadata,
    record: Record,
}

impl View<'_> {
    fn must_add(&self) -> bool {
        self.desired.always_add && self.observed.added.is_empty()
    }

    /// Without generations nobody is older: a run that has stored its content does not fight one that came after it.
    fn is_overtaken(&self, head: VersionNumber) -> bool {
        let added = &self.observed.added;
        self.desired.generation.is_none() && !added.is_empty() && !added.contains(&head)
    }

    fn why_add(&self, head: VersionNumber, seen: Seen) -> Because {
        match seen {
            Seen::Live(content) if content == self.desired.content => Because::AlwaysAdd,
            Seen::Live(_) => Because::OtherContent(head),
            Seen::Disabled => Because::Disabled(head),
            Seen::Destroyed => Because::Destroyed(head),
        }
    }

    fn is_live(&self, number: VersionNumber) -> bool {
        matches!(self.observed.versions.get(&number), Some(Seen::Live(_)))
    }

    /// The versions known to be ours, without those that are seen to be gone.
    fn added(&self) -> BTreeSet<VersionNumber> {
        let is_gone = |number: &VersionNumber| self.observed.versions.get(number) == Some(&Seen::Destroyed);
        self.record.added.union(&self.observed.added).copied().filter(|number| !is_gone(number)).collect()
    }

    /// The head holds the wanted content: mend what is around it.
    fn keep(&self, head: VersionNumber) -> Plan {
        let reason = if self.observed.added.is_empty() { Reason::SecretUnchanged } else { Reason::SecretStored };
        let mut record = self.confirmed(head);
        if self.record.announced == Some(head) {
            record.added.insert(head);
        }
        let surplus = self.surplus(head, &mut record);
        let plan = Plan::new(reason, Because::Holds(head)).holding(head).destroying(surplus);
        plan.recording(self.secret, &record, Some(&self.desired.labels))
    }

    /// Another run has stored other content since this one did: ours is an old version now.
    fn accept(&self, head: VersionNumber) -> Plan {
        let record = Record { added: self.added(), ..self.record.clone() };
        Plan::new(Reason::Superseded, Because::Overtaken(head)).recording(self.secret, &record, None)
    }

    /// Announce, add, confirm, then destroy what is now too much.
    fn add(&self, number: VersionNumber, because: Because) -> Plan {
        let generation = self.desired.generation.max(self.record.generation);
        let claim = Record { generation, announced: Some(number), added: self.added(), ..self.record.clone() };
        let mut record = self.confirmed(number);
        record.added.insert(number);
        let labels = Some(&self.desired.labels);
        let plan = Plan::new(Reason::SecretStored, because)
            .holding(number)
            .recording(self.secret, &claim, labels)
            .then(Action::Add { content: Content::Wanted, number })
            .recording(self.secret, &record, labels);
        let surplus = self.surplus(number, &mut record);
        plan.destroying(surplus).recording(self.secret, &record, labels)
    }

    fn confirmed(&self, version: VersionNumber) -> Record {
        // Without a key for it the digest of other content must go; that of the same content may stay.
        let same_content = self.record.version == Some(version);
        let digest = self.desired.shown_digest.clone().or_else(|| self.record.digest.clone().filter(|_| same_content));
        let generation = self.desired.generation.max(self.record.generation);
        Record { generation, version: Some(version), announced: None, digest, added: self.added() }
    }

    /// The versions to destroy once `current` is in place; takes them off the record.
    fn surplus(&self, current: VersionNumber, record: &mut Record) -> BTreeSet<VersionNumber> {
        let wanted = Seen::Live(self.desired.content);
        let is_ours = |number: &VersionNumber| record.added.contains(number) || self.record.announced == Some(*number);
        let seen = self.observed.versions.range(..current).filter(|(_, seen)| **seen == wanted);
        let duplicates = seen.map(|(number, _)| *number).filter(|number| !self.desired.always_add && is_ours(number));
        let mut surplus: BTreeSet<_> = duplicates.collect();
        let kept: BTreeSet<_> = record.added.difference(&surplus).copied().collect();
        let too_many = if self.desired.retain == 0 { 0 } else { kept.len().saturating_sub(self.desired.retain) };
        surplus.extend(kept.into_iter().filter(|number| *number < current).take(too_many));
        record.added.retain(|number| !surplus.contains(number));
        surplus
    }

    /// A newer generation holds the secret. Where a version of ours lies above its content, the newer content goes back
    /// on top; where its content is not there yet, ours stays: it is better than none.
    fn give_way(&self, newer: Generation) -> Plan {
        let plan = Plan::new(Reason::Superseded, Because::NewerGeneration(newer));
        let mut strays = self.strays();
        let mut record = Record { added: self.added(), ..self.record.clone() };
        record.added.extend(&strays);
        let theirs = self.record.announced.or(self.record.version);
        let theirs = theirs.filter(|number| self.is_live(*number) && !strays.contains(number));
        let (Some(theirs), false) = (theirs, strays.is_empty()) else {
            return plan.recording(self.secret, &record, None);
        };
        let head = self.observed.versions.last_key_value().map(|(number, _)| *number);
        let Some(head) = head.filter(|head| strays.contains(head)) else {
            record.added.retain(|number| !strays.contains(number));
            return plan.destroying(strays).recording(self.secret, &record, None);
        };
        let number = head.next();
        let plan = plan.then(Action::Add { content: Content::CopyOf(theirs), number });
        strays.extend(Some(theirs).filter(|theirs| self.is_ours(*theirs)));
        record.added.retain(|number| !strays.contains(number));
        record.added.insert(number);
        record = Record { version: Some(number), announced: None, ..record };
        plan.destroying(strays).recording(self.secret, &record, None)
    }

    /// The live versions that an older generation should not have added: those of this run, and those of this content
    /// that a killed run of this generation has left above the newer one's.
    fn strays(&self) -> BTreeSet<VersionNumber> {
        let mut strays: BTreeSet<_> =
            self.observed.added.iter().copied().filter(|number| self.is_live(*number)).collect();
        let ours = Seen::Live(self.desired.content);
        let Some(current) = self.record.version else { return strays };
        let holds_other = matches!(self.observed.versions.get(&current), Some(seen @ Seen::Live(_)) if *seen != ours);
        if holds_other {
            let above = self.observed.versions.range(current.next()..).filter(|(_, seen)| **seen == ours);
            strays.extend(above.map(|(number, _)| *number).filter(|number| Some(*number) != self.record.announced));
        }
        strays
    }

    fn is_ours(&self, number: VersionNumber) -> bool {
        self.record.added.contains(&number) || self.record.announced == Some(number)
    }
}

#[cfg(test)]
mod tests;
