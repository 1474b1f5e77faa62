//! Decides, from the observed secret, which actions to take and why.
//!
//! Four rules carry the rest:
//!
//! * **The highest version is live and holds the desired content**, and no other observed version of this project does. So
//!   `latest`, which is always the highest number, reads what the record says. When two runs have added the same
//!   content, the one with the higher number sees the other (adding and reading by number are strongly consistent) and
//!   destroys it.
//! * **Announce, add, confirm.** Both writes of the record are under the secret's etag. A run of an older generation fails
//!   to announce, or, if it was overtaken between announcing and adding, fails to confirm; it then observes again, and puts
//!   the newer content back on top.
//! * **Only versions that this project is known to have added are destroyed.** An announcement carries a digest of the content,
//!   so that a version which a killed run has added is distinguished from one that was added by hand.
//!   A store that keeps the record [with the version](Records::WithVersion) needs one write: it accepts a version only on top
//!   of the one that this run has observed, and with it the record that the run has decided on.
//! * **A secret of another incarnation of the cluster is not changed**, unless it is taken over explicitly: generations of
//!   two incarnations cannot be compared, and the content may be another owner's.
//!
//! The observation starts at the recorded version: an older version of the same content, from before a rotation and back,
//! stays until it is pruned.

mod facts;
pub mod kubernetes_secret;
mod plan;

use std::collections::{BTreeMap, BTreeSet};

use docker_config::Digest;
use fleet_model::job::Reason;
use fleet_model::{Generation, Incarnation, Owner, names};
use secret_store::{Metadata, Records, VersionNumber};

pub use facts::{Desired, Identity, Observed, VersionState};
pub use plan::{Action, Cause, Content, Plan};

use crate::record::Record;

/// Plans the actions after which the secret exists, is managed, and its highest version holds the desired content.
pub fn store(desired: &Desired, observed: &Observed) -> Plan {
    let Some(secret) = &observed.secret else { return create(desired, observed.place) };
    let mut record = observed.record();
    if let Some(other) = observed.other_owner(&desired.identity.cluster) {
        return Plan::new(Reason::NameConflict, Cause::Unmanaged(other));
    }
    if let Some(refusal) = refuse(desired, secret, &record) {
        return refusal;
    }
    if desired.identity.differs_from(record.incarnation.as_ref()) {
        // It is taken over: generations of another incarnation are not comparable.
        record.generation = None;
    }
    let view = View { desired, observed, secret, record };
    if let Some(newer) = desired.identity.newer_generation(view.record.generation) {
        return view.yield_to(newer);
    }
    let head = observed.versions.last_key_value().map(|(number, state)| (*number, *state));
    match head {
        Some((head, state))
            if state == VersionState::Live(desired.content) && !view.must_add() && view.is_recorded(head) =>
        {
            view.keep(head)
        }
        Some((head, VersionState::Live(_))) if view.is_overtaken(head) => view.accept(head),
        Some((head, state)) => view.add(head.next(), view.cause_of_adding(head, state)),
        None => view.add(VersionNumber::FIRST, Cause::NoVersion),
    }
}

/// Refuses a secret that is unmanaged or belongs to another incarnation of the cluster.
pub fn refuse(desired: &Desired, secret: &Metadata, record: &Record) -> Option<Plan> {
    let owner = Owner::of(&secret.labels);
    if !owner.is(&desired.identity.cluster) {
        return Some(Plan::new(Reason::NameConflict, Cause::Unmanaged(owner)));
    }
    let recorded = record.incarnation.as_ref();
    let other = recorded.filter(|recorded| desired.identity.differs_from(Some(recorded)) && !desired.adopt);
    other.map(|other| Plan::new(Reason::DifferentIncarnation, Cause::OtherIncarnation(other.clone())))
}

/// Plans the actions after which nothing of this cluster is left. A secret that is not this cluster's is left alone: a
/// deletion never waits for an unmanaged secret.
pub fn delete(identity: &Identity, observed: &Observed) -> Plan {
    let Some(secret) = &observed.secret else { return Plan::new(Reason::SecretAbsent, Cause::Missing) };
    let owner = Owner::of(&secret.labels);
    if !owner.is(&identity.cluster) {
        return Plan::new(Reason::UnmanagedSecretKept, Cause::Unmanaged(owner));
    }
    if let Some(other) = observed.other_owner(&identity.cluster) {
        return Plan::new(Reason::UnmanagedSecretKept, Cause::Unmanaged(other));
    }
    let record = observed.record();
    if let Some(other) = record.incarnation.filter(|recorded| identity.differs_from(Some(recorded))) {
        return Plan::new(Reason::UnmanagedSecretKept, Cause::OtherIncarnation(other));
    }
    match identity.newer_generation(record.generation) {
        Some(newer) => Plan::new(Reason::Superseded, Cause::NewerGeneration(newer)),
        None => Plan::new(Reason::SecretDeleted, Cause::DeletionRequested)
            .then(Action::Delete { etag: secret.etag.clone() }),
    }
}

/// The first version of a secret that a run creates has the number 1 and is its own, so the record comes with the secret.
fn create(desired: &Desired, place: Records) -> Plan {
    let first = VersionNumber::FIRST;
    let record = Record {
        generation: desired.identity.generation,
        incarnation: desired.identity.incarnation.clone(),
        version: Some(first),
        digest: desired.published_digest.clone(),
        added: BTreeSet::from([first]),
        ..Record::default()
    };
    let mut annotations = BTreeMap::new();
    record.write(&mut annotations);
    Plan::new(Reason::SecretStored, Cause::Missing)
        .holding(first)
        .then(Action::Create { labels: desired.labels.clone(), annotations })
        .then(add(desired, Content::Desired, &record, place))
}

/// Adds the version that the record names as the current one, with the record and the owner if versions have them in this
/// store.
fn add(desired: &Desired, content: Content, record: &Record, place: Records) -> Action {
    let mut written = BTreeMap::new();
    if place == Records::WithVersion {
        let of_owner = [names::LABEL_MANAGED_BY, names::LABEL_CLUSTER_ID];
        let labels = desired.labels.iter().filter(|(name, _)| of_owner.contains(&name.as_str()));
        written.extend(labels.map(|(name, value)| (name.clone(), value.clone())));
        record.write(&mut written);
    }
    Action::Add { content, number: record.version.unwrap_or(VersionNumber::FIRST), record: written }
}

/// A managed secret.
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

    /// True if the head's own record is what this run would write, where versions have one. A generation is recorded even if
    /// the content stays: without it an older run could write after this one.
    fn is_recorded(&self, head: VersionNumber) -> bool {
        let is_current = |record: &Record| {
            record.generation >= self.desired.identity.generation && record.incarnation == self.incarnation()
        };
        self.observed.place == Records::UnderEtag || self.observed.records.get(&head).is_some_and(is_current)
    }

    /// Without generations no run is older: a run that has stored its content does not undo a later one.
    fn is_overtaken(&self, head: VersionNumber) -> bool {
        let added = &self.observed.added;
        self.desired.identity.generation.is_none() && !added.is_empty() && !added.contains(&head)
    }

    fn cause_of_adding(&self, head: VersionNumber, state: VersionState) -> Cause {
        match state {
            VersionState::Live(content) if content == self.desired.content && self.must_add() => Cause::AlwaysAdd,
            VersionState::Live(content) if content == self.desired.content => Cause::RecordedForAnother(head),
            VersionState::Live(_) => Cause::OtherContent(head),
            VersionState::Disabled => Cause::Disabled(head),
            VersionState::Destroyed => Cause::Destroyed(head),
        }
    }

    /// Digest of a version that can be read.
    fn content(&self, number: VersionNumber) -> Option<Digest> {
        match self.observed.versions.get(&number)? {
            VersionState::Live(content) => Some(*content),
            VersionState::Disabled | VersionState::Destroyed => None,
        }
    }

    fn is_live(&self, number: VersionNumber) -> bool {
        self.content(number).is_some()
    }

    /// The versions of this project, without those that are destroyed.
    fn added(&self) -> BTreeSet<VersionNumber> {
        let is_destroyed =
            |number: &VersionNumber| self.observed.versions.get(number) == Some(&VersionState::Destroyed);
        let added = self.record.added.iter().chain(&self.observed.added).copied().chain(self.unconfirmed());
        added.filter(|number| !is_destroyed(number)).collect()
    }

    /// The announced version, if it holds what was announced: a run has added it, but was killed before it confirmed.
    fn unconfirmed(&self) -> Option<VersionNumber> {
        let announced = self.record.announced?;
        let found = self.announced_digest(self.content(announced)?);
        found.filter(|found| self.record.announced_digest.as_ref() == Some(found)).map(|_| announced)
    }

    /// The digest by which an announced version of this content is recognised, if the current version can be read.
    fn announced_digest(&self, content: Digest) -> Option<String> {
        let current = self.record.version.and_then(|current| self.content(current))?;
        Some(content.keyed_by(&current).to_string())
    }

    /// The head holds the desired content: repair labels and record, destroy the surplus.
    fn keep(&self, head: VersionNumber) -> Plan {
        let reason = if self.observed.added.is_empty() { Reason::SecretUnchanged } else { Reason::SecretStored };
        let mut record = self.confirmed(head);
        if self.record.announced == Some(head) {
            record.added.insert(head);
        }
        self.confirm(Plan::new(reason, Cause::Holds(head)).holding(head), head, record)
    }

    /// Another run has stored other content since this one did; this run's version is an old one now.
    fn accept(&self, head: VersionNumber) -> Plan {
        let record = Record { added: self.added(), ..self.record.clone() };
        Plan::new(Reason::Superseded, Cause::Overtaken(head)).recording(self.secret, &record, None)
    }

    /// Announces, adds, destroys the surplus, confirms: four writes where an old version is pruned.
    fn add(&self, number: VersionNumber, cause: Cause) -> Plan {
        let generation = self.desired.identity.generation.max(self.record.generation);
        let incarnation = self.incarnation();
        let claim = Record {
            generation,
            incarnation,
            announced: Some(number),
            announced_digest: self.announced_digest(self.desired.content),
            added: self.added(),
            ..self.record.clone()
        };
        let mut record = self.confirmed(number);
        record.added.insert(number);
        let plan = Plan::new(Reason::SecretStored, cause).holding(number);
        let place = self.observed.place;
        let plan = match place {
            Records::UnderEtag => plan.recording(self.secret, &claim, Some(&self.desired.labels)),
            Records::WithVersion => plan,
        };
        self.confirm(plan.then(add(self.desired, Content::Desired, &record, place)), number, record)
    }

    /// Destroys the surplus and records `current`. The recorded version, and those above it, are destroyed after the record
    /// has changed only: a newer generation may need them, and the announcement is verified by the recorded one.
    fn confirm(&self, plan: Plan, current: VersionNumber, mut record: Record) -> Plan {
        let labels = Some(&self.desired.labels);
        let mut older = self.surplus(current, &mut record);
        let recent = older.split_off(&self.record.version.unwrap_or(VersionNumber::FIRST));
        let confirmed = Record { added: record.added.union(&recent).copied().collect(), ..record.clone() };
        plan.destroying(older).recording(self.secret, &confirmed, labels).destroying(recent).recording(
            self.secret,
            &record,
            labels,
        )
    }

    fn confirmed(&self, version: VersionNumber) -> Record {
        // Without a key for it the digest of other content must go; that of the same content may stay.
        let same_content = self.record.version == Some(version);
        let digest =
            self.desired.published_digest.clone().or_else(|| self.record.digest.clone().filter(|_| same_content));
        let generation = self.desired.identity.generation.max(self.record.generation);
        let incarnation = self.incarnation();
        let version = Some(version);
        Record { generation, incarnation, version, digest, added: self.added(), ..Record::default() }
    }

    /// The incarnation to record: this run's, or the recorded one if this run knows none.
    fn incarnation(&self) -> Option<Incarnation> {
        self.desired.identity.incarnation.clone().or_else(|| self.record.incarnation.clone())
    }

    /// Versions to destroy once `current` is in place; removes them from the record.
    fn surplus(&self, current: VersionNumber, record: &mut Record) -> BTreeSet<VersionNumber> {
        let desired = VersionState::Live(self.desired.content);
        let is_managed =
            |number: &VersionNumber| record.added.contains(number) || self.record.announced == Some(*number);
        let below = self.observed.versions.range(..current).filter(|(_, state)| **state == desired);
        let duplicates =
            below.map(|(number, _)| *number).filter(|number| !self.desired.always_add && is_managed(number));
        let mut surplus: BTreeSet<_> = duplicates.collect();
        let kept: BTreeSet<_> = record.added.difference(&surplus).copied().collect();
        let too_many = if self.desired.retain == 0 { 0 } else { kept.len().saturating_sub(self.desired.retain) };
        surplus.extend(kept.into_iter().filter(|number| *number < current).take(too_many));
        record.added.retain(|number| !surplus.contains(number));
        surplus
    }

    /// A newer generation holds the secret. If an older version lies above its content, the newer content is added again on
    /// top; if its content is not stored yet, the older version stays: it is better than none.
    fn yield_to(&self, newer: Generation) -> Plan {
        let plan = Plan::new(Reason::Superseded, Cause::NewerGeneration(newer));
        let mut strays = self.strays();
        let mut record = Record { added: self.added(), ..self.record.clone() };
        record.added.extend(&strays);
        let newest = self.record.announced.or(self.record.version);
        let newest = newest.filter(|number| self.is_live(*number) && !strays.contains(number));
        let (Some(newest), false) = (newest, strays.is_empty()) else {
            return plan.recording(self.secret, &record, None);
        };
        let head = self.observed.versions.last_key_value().map(|(number, _)| *number);
        let Some(head) = head.filter(|head| strays.contains(head)) else {
            record.added.retain(|number| !strays.contains(number));
            return plan.destroying(strays).recording(self.secret, &record, None);
        };
        let number = head.next();
        strays.extend(Some(newest).filter(|newest| self.is_managed(*newest)));
        record.added.retain(|number| !strays.contains(number));
        record.added.insert(number);
        record = Record { version: Some(number), announced: None, announced_digest: None, ..record };
        let plan = plan.then(add(self.desired, Content::CopyOf(newest), &record, self.observed.place));
        plan.destroying(strays).recording(self.secret, &record, None)
    }

    /// The live versions that an older generation should not have added: those of this run, and those of this content
    /// that a killed run of this generation has left above the newer one's.
    fn strays(&self) -> BTreeSet<VersionNumber> {
        let mut strays: BTreeSet<_> =
            self.observed.added.iter().copied().filter(|number| self.is_live(*number)).collect();
        if self.observed.place == Records::WithVersion {
            // No older generation gets on top of a newer one there.
            return strays;
        }
        let own = VersionState::Live(self.desired.content);
        let Some(current) = self.record.version else { return strays };
        let holds_other =
            matches!(self.observed.versions.get(&current), Some(state @ VersionState::Live(_)) if *state != own);
        if holds_other {
            let above = self.observed.versions.range(current.next()..).filter(|(_, state)| **state == own);
            strays.extend(above.map(|(number, _)| *number).filter(|number| Some(*number) != self.record.announced));
        }
        strays
    }

    fn is_managed(&self, number: VersionNumber) -> bool {
        self.record.added.contains(&number) || self.record.announced == Some(number)
    }
}

#[cfg(test)]
mod tests;
