//! Deleting: preconditions, finalizers, grace, and what has to follow (dependents, contents of namespaces, custom kinds).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::meta::{self, stamp};
use super::super::resources::Resource;
use super::super::status::Status;
use super::super::value::{number, object_at, set, set_default, take, text};
use super::change::{FIRST_NAMESPACES, Object};
use super::state::State;
use super::unsettled::{FOREGROUND, ORPHAN, Unsettled};
use super::writing::Writing;

/// Grace period of a Pod without one of its own.
const POD_GRACE_SECONDS: i64 = 30;

/// Options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// Only the object with this uid.
    pub(crate) uid: Option<String>,
    /// Only in this state.
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Propagation,
    /// Grace period of a Pod; its own if none.
    pub(crate) grace_seconds: Option<i64>,
}

/// The propagation policy for dependent objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Deleted afterwards.
    #[default]
    Background,
    /// Deleted before.
    Foreground,
    /// Kept.
    Orphan,
}

impl Deletion {
    /// At once, and the dependents afterwards.
    pub(crate) fn now() -> Self {
        Self { grace_seconds: Some(0), ..Self::default() }
    }

    fn check(&self, resource: &Resource, live: &Value) -> Result<(), Status> {
        let revision = text(live, "/metadata/resourceVersion");
        let wanted = [
            ("UID", &self.uid, meta::uid(live), "deleted and then recreated"),
            ("ResourceVersion", &self.resource_version, revision, "modified"),
        ];
        for (what, wanted, actual, fate) in wanted {
            if let Some(wanted) = wanted.as_ref().filter(|wanted| **wanted != actual) {
                let why = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({actual}). The object might \
                     have been {fate}"
                );
                return Err(Status::conflict(resource.about_kind(meta::name(live)), &why));
            }
        }
        Ok(())
    }

    /// The seconds that an object gets to end by itself.
    fn grace(&self, live: &Value) -> i64 {
        let is_pod = text(live, "/kind") == "Pod" && text(live, "/apiVersion") == "v1";
        let finished = matches!(text(live, "/status/phase"), "Succeeded" | "Failed");
        if !is_pod || finished || text(live, "/spec/nodeName").is_empty() {
            return 0;
        }
        let own = number(live, "/spec/terminationGracePeriodSeconds").unwrap_or(POD_GRACE_SECONDS);
        self.grace_seconds.unwrap_or(own).max(0)
    }
}

// === impl State ===

impl State {
    /// Deletes an object, or begins to; answers with it as it is then.
    pub(crate) fn delete(&mut self, writing: &Writing<'_>, deletion: &Deletion) -> Result<Object, Status> {
        let resource = writing.resource;
        let live = self.get(resource, writing.namespace, writing.name)?;
        deletion.check(resource, &live)?;
        let mut object = (*live).clone();
        let grace = deletion.grace(&live);
        if resource.storage == "namespaces" {
            terminate(resource, &mut object)?;
        }
        let finalizer = match deletion.propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Orphan => Some(ORPHAN),
        };
        if let Some(finalizer) = finalizer.filter(|finalizer| !meta::has_finalizer(&object, finalizer))
            && let Value::Array(finalizers) =
                object_at(&mut object, &["metadata"]).entry("finalizers").or_insert_with(|| json!([]))
        {
            finalizers.push(finalizer.into());
        }
        let waits = grace > 0 || !meta::finalizers(&object).is_empty() || resource.storage == "namespaces";
        if !waits {
            if resource.storage == "pods" {
                set_default(&mut object, &["metadata", "deletionTimestamp"], stamp(writing.now));
                set(&mut object, &["metadata", "deletionGracePeriodSeconds"], 0);
            }
            return self.take_away(writing, object);
        }
        let left = number(&object, "/metadata/deletionGracePeriodSeconds");
        if !meta::is_deleting(&object) || left.is_some_and(|left| grace < left) {
            let at = writing.now.saturating_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
            set(&mut object, &["metadata", "deletionTimestamp"], stamp(at));
            if resource.storage != "namespaces" {
                set(&mut object, &["metadata", "deletionGracePeriodSeconds"], grace);
            }
            if let Some(generation) = number(&object, "/metadata/generation") {
                set(&mut object, &["metadata", "generation"], generation + 1);
            }
        }
        if object == *live { Ok(live) } else { self.put(writing, object) }
    }

    /// Does what changes have left to be done, until nothing is left.
    pub(crate) fn settle(&mut self, now: Timestamp) -> Result<(), Status> {
        while let Some(unsettled) = self.unsettled.pop() {
            match unsettled {
                Unsettled::Everything => self.look_everywhere(),
                Unsettled::Dependent(object, storage) => self.collect(&object, &storage, now)?,
                Unsettled::Owner(object, storage) => self.release(&object, &storage, now)?,
                Unsettled::Gone(object) => self.collect_orphans(meta::uid(&object), now)?,
                Unsettled::Released(object) => self.look_at_owners(&object),
                Unsettled::Namespace(name) => self.furnish(&name, now)?,
                Unsettled::Kind(storage) => self.clear(&storage, now)?,
            }
        }
        Ok(())
    }

    fn look_everywhere(&mut self) {
        let found: Vec<Unsettled> =
            self.everything().flat_map(|(storage, object)| Unsettled::at_rest(storage, object)).collect();
        self.unsettled.extend(found);
    }

    /// True if an owner of an object is there, with the name that the reference says: in the object's namespace or in none.
    /// Objects outside namespaces cannot have owners in them; such ones are never collected.
    fn has_owner(&self, object: &Value, owner: &Value) -> bool {
        let place = meta::namespace(object);
        let is_owner = |other: &Object| match meta::namespace(other) {
            _ if place.is_empty() => true,
            theirs => meta::name(other) == text(owner, "/name") && (theirs.is_empty() || theirs == place),
        };
        self.index.of_uid(text(owner, "/uid")).and_then(|location| self.at(location)).is_some_and(is_owner)
    }

    /// Deletes an object all of whose owners are gone.
    fn collect(&mut self, object: &Object, storage: &str, now: Timestamp) -> Result<(), Status> {
        let current = self.current(object, storage).filter(|current| !meta::is_deleting(current));
        let Some(current) = current else { return Ok(()) };
        if meta::owners(&current).iter().any(|owner| self.has_owner(&current, owner)) {
            return Ok(());
        }
        self.discard(&current, storage, &Deletion::default(), now)
    }

    /// Looks after the dependents of an object that has gone.
    fn collect_orphans(&mut self, uid: &str, now: Timestamp) -> Result<(), Status> {
        for (storage, object) in self.dependents(uid) {
            let others = meta::owners(&object).iter().any(|owner| self.has_owner(&object, owner));
            if others {
                self.disown(&object, &storage, uid, now)?;
            } else {
                self.collect(&object, &storage, now)?;
            }
        }
        Ok(())
    }

    /// Looks after the owners that an object had, which may have waited for it.
    fn look_at_owners(&mut self, object: &Object) {
        let owners = meta::owners(object).iter().filter_map(|owner| self.index.of_uid(text(owner, "/uid")));
        let waiting = owners.filter_map(|location| Some((location, self.at(location)?)));
        let waiting = waiting.filter(|(_, object)| meta::has_finalizer(object, FOREGROUND));
        let waiting = waiting.map(|((storage, _), object)| Unsettled::Owner(Arc::clone(object), storage.clone()));
        self.unsettled.extend(waiting.collect::<Vec<_>>());
    }

    /// Takes an owner's finalizer off once its dependents are as they should be.
    fn release(&mut self, object: &Object, storage: &str, now: Timestamp) -> Result<(), Status> {
        let current = self.current(object, storage).filter(|current| meta::is_deleting(current));
        let Some(current) = current else { return Ok(()) };
        let uid = meta::uid(&current);
        if meta::has_finalizer(&current, ORPHAN) {
            for (storage, dependent) in self.dependents(uid) {
                self.disown(&dependent, &storage, uid, now)?;
            }
            return self.finish(&current, storage, ORPHAN, now);
        }
        let mut blocked = false;
        for (storage, dependent) in self.dependents(uid) {
            if !meta::is_deleting(&dependent) {
                let deletion = Deletion { propagation: Propagation::Foreground, ..Deletion::default() };
                self.discard(&dependent, &storage, &deletion, now)?;
            }
            let blocks = |owner: &Value| {
                text(owner, "/uid") == uid && owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true)
            };
            blocked |= meta::owners(&dependent).iter().any(blocks) && self.current(&dependent, &storage).is_some();
        }
        if blocked { Ok(()) } else { self.finish(&current, storage, FOREGROUND, now) }
    }

    /// Sees to it that a namespace has its `ServiceAccount` as long as it lives, and goes when it shall.
    fn furnish(&mut self, name: &str, now: Timestamp) -> Result<(), Status> {
        let namespaces = self.resource("namespaces")?;
        let Some(namespace) = self.find(&namespaces, "", name).cloned() else { return Ok(()) };
        if meta::is_deleting(&namespace) {
            return self.empty(&namespaces, &namespace, now);
        }
        let accounts = self.resource("serviceaccounts")?;
        if self.find(&accounts, name, "default").is_none() {
            let writing = Writing::internal(&accounts, name, "default", now);
            self.create(&writing, json!({"metadata": {"name": "default"}}))?;
        }
        Ok(())
    }

    /// Deletes what a terminating namespace holds, and itself once it is empty.
    fn empty(&mut self, namespaces: &Resource, namespace: &Object, now: Timestamp) -> Result<(), Status> {
        let name = meta::name(namespace);
        let contents = |state: &Self| -> Vec<(String, Object)> {
            let inside = state.everything().filter(|(_, object)| meta::namespace(object) == name);
            inside.map(|(storage, object)| (storage.clone(), Arc::clone(object))).collect()
        };
        for (storage, object) in contents(self) {
            if !meta::is_deleting(&object) {
                self.discard(&object, &storage, &Deletion::default(), now)?;
            }
        }
        if contents(self).is_empty() && meta::finalizers(namespace).is_empty() {
            let writing = Writing::internal(namespaces, "", name, now);
            self.take_away(&writing, (**namespace).clone())?;
        }
        Ok(())
    }

    /// Deletes all objects of a kind that is no more.
    fn clear(&mut self, storage: &str, now: Timestamp) -> Result<(), Status> {
        let objects: Vec<Object> = self.stored(storage).cloned().collect();
        let Some(resource) = self.kind_of_rest(storage) else { return Ok(()) };
        for object in objects {
            let (namespace, name) = (meta::namespace(&object).to_owned(), meta::name(&object).to_owned());
            let writing = Writing::internal(&resource, &namespace, &name, now);
            self.take_away(&writing, (*object).clone())?;
        }
        Ok(())
    }

    /// A stand-in for the kind of objects whose definition is gone.
    fn kind_of_rest(&self, storage: &str) -> Option<Resource> {
        self.catalog.by_id("configmaps").map(|template| template.stored_as(storage))
    }

    fn finish(&mut self, object: &Object, storage: &str, finalizer: &str, now: Timestamp) -> Result<(), Status> {
        self.edit(object, storage, now, |object| {
            if let Some(Value::Array(finalizers)) = object.pointer_mut("/metadata/finalizers") {
                finalizers.retain(|other| other != finalizer);
            }
            if meta::finalizers(object).is_empty() {
                take(object, &["metadata", "finalizers"]);
            }
        })
    }

    fn disown(&mut self, object: &Object, storage: &str, uid: &str, now: Timestamp) -> Result<(), Status> {
        self.edit(object, storage, now, |object| {
            if let Some(Value::Array(owners)) = object.pointer_mut("/metadata/ownerReferences") {
                owners.retain(|owner| text(owner, "/uid") != uid);
            }
            if meta::owners(object).is_empty() {
                take(object, &["metadata", "ownerReferences"]);
            }
        })
    }

    fn edit(
        &mut self,
        object: &Object,
        storage: &str,
        now: Timestamp,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), Status> {
        let Some(current) = self.current(object, storage) else { return Ok(()) };
        let Some(resource) = self.kind(storage) else { return Ok(()) };
        let mut changed = (*current).clone();
        change(&mut changed);
        let (namespace, name) = (meta::namespace(&current).to_owned(), meta::name(&current).to_owned());
        let writing = Writing::internal(&resource, &namespace, &name, now);
        if meta::may_go(&changed) && storage != "namespaces" {
            self.take_away(&writing, changed)?;
        } else {
            self.put(&writing, changed)?;
        }
        Ok(())
    }

    fn discard(&mut self, object: &Object, storage: &str, how: &Deletion, now: Timestamp) -> Result<(), Status> {
        let Some(resource) = self.kind(storage) else { return Ok(()) };
        let (namespace, name) = (meta::namespace(object).to_owned(), meta::name(object).to_owned());
        self.delete(&Writing::internal(&resource, &namespace, &name, now), how).map(drop)
    }

    /// The newest form of an object, if it is still the same one.
    fn current(&self, object: &Object, storage: &str) -> Option<Object> {
        let resource = self.kind(storage)?;
        let current = self.find(&resource, meta::namespace(object), meta::name(object))?;
        (meta::uid(current) == meta::uid(object)).then(|| Arc::clone(current))
    }

    fn kind(&self, storage: &str) -> Option<Arc<Resource>> {
        self.catalog.all().iter().find(|resource| resource.storage == storage).cloned()
    }

    fn dependents(&self, uid: &str) -> Vec<(String, Object)> {
        let found = self.index.owned_by(uid).filter_map(|location| Some((location.0.clone(), self.at(location)?)));
        found.map(|(storage, object)| (storage, Arc::clone(object))).collect()
    }
}

fn terminate(resource: &Resource, namespace: &mut Value) -> Result<(), Status> {
    let name = meta::name(namespace).to_owned();
    if FIRST_NAMESPACES.contains(&name.as_str()) {
        return Err(Status::forbidden(resource.about(&name), "this namespace may not be deleted"));
    }
    set(namespace, &["status", "phase"], "Terminating");
    Ok(())
}
