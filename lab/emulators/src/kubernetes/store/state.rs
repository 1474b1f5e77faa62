//! The objects, their revisions, and the last changes; what is stored is durable before it is visible.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::super::meta;
use super::super::resources::{Catalog, Resource};
use super::super::status::Status;
use super::super::tokens::{Claims, Tokens};
use super::super::value::{set, text};
use super::change::{Change, Key, Object};
use super::files::Files;
use super::index::{Index, Location};
use super::unsettled::Unsettled;
use super::writing::Writing;

/// Everything that the server knows.
pub(crate) struct State {
    pub(crate) catalog: Catalog,
    pub(crate) tokens: Tokens,
    pub(super) objects: BTreeMap<String, BTreeMap<Key, Object>>,
    pub(super) index: Index,
    pub(super) revision: u64,
    pub(super) history: VecDeque<Arc<Change>>,
    pub(super) history_limit: usize,
    /// Changes up to this revision are no longer kept.
    pub(super) forgotten: u64,
    pub(super) files: Option<Files>,
    pub(super) closed: bool,
    pub(super) unsettled: Vec<Unsettled>,
}

// === impl State ===

impl State {
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// By plural and group, such as `jobs.batch`.
    pub(crate) fn resource(&self, id: &str) -> Result<Arc<Resource>, Status> {
        self.catalog.by_id(id).cloned().ok_or_else(Status::no_route)
    }

    pub(crate) fn find(&self, resource: &Resource, namespace: &str, name: &str) -> Option<&Object> {
        self.objects.get(&resource.storage)?.get(&(namespace.to_owned(), name.to_owned()))
    }

    pub(crate) fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Object, Status> {
        let found = self.find(resource, namespace, name).cloned();
        found.ok_or_else(|| Status::not_found(resource.about(name)))
    }

    /// In the order of namespace and name.
    pub(crate) fn list<'a>(
        &'a self,
        resource: &Resource,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Object> {
        let first = (namespace.unwrap_or_default().to_owned(), String::new());
        let objects =
            self.objects.get(&resource.storage).into_iter().flat_map(move |objects| objects.range(first.clone()..));
        let wanted = move |(key, _): &(&Key, &Object)| namespace.is_none_or(|namespace| key.0 == namespace);
        objects.take_while(wanted).map(|(_, object)| object)
    }

    /// The Pods that have this Job in [`JOB_LABEL`](super::index::JOB_LABEL), in the order of their names.
    pub(crate) fn pods_of_job(&self, namespace: &str, job: &str) -> impl Iterator<Item = &Object> {
        let names = self.index.pods_of_job(namespace, job);
        names.filter_map(|name| self.objects.get("pods")?.get(&(namespace.to_owned(), name.clone())))
    }

    /// The object at a location.
    pub(super) fn at(&self, (storage, key): &Location) -> Option<&Object> {
        self.objects.get(storage)?.get(key)
    }

    /// All objects of one storage.
    pub(crate) fn stored(&self, storage: &str) -> impl Iterator<Item = &Object> {
        self.objects.get(storage).into_iter().flat_map(BTreeMap::values)
    }

    /// All objects with their storage.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (&String, &Object)> {
        self.objects.iter().flat_map(|(storage, objects)| objects.values().map(move |object| (storage, object)))
    }

    /// The changes after a revision; none if some of them are forgotten.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Change>>> {
        let first = self.history.partition_point(|change| change.revision <= revision);
        (revision >= self.forgotten).then(|| self.history.iter().skip(first))
    }

    /// Up to which revision changes are forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Forgets all changes, as the real server does after a while.
    pub(crate) fn forget_history(&mut self) {
        self.history.clear();
        self.forgotten = self.revision;
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.files = None;
    }

    pub(crate) fn issue_token(
        &self,
        namespace: &str,
        account: &str,
        audiences: &[String],
        until: Timestamp,
    ) -> Result<String, Status> {
        let accounts = self.resource("serviceaccounts")?;
        let object = self.get(&accounts, namespace, account)?;
        let uid = meta::uid(&object).to_owned();
        let claims = Claims { namespace: namespace.to_owned(), account: account.to_owned(), uid };
        Ok(self.tokens.issue(&claims, audiences, until))
    }

    /// Stores an object as it shall be from now on; a dry run only says how it would look.
    pub(super) fn put(&mut self, writing: &Writing<'_>, object: Value) -> Result<Object, Status> {
        self.commit(writing, object, false)
    }

    /// Takes an object away; `object` is how it looked last.
    pub(super) fn take_away(&mut self, writing: &Writing<'_>, object: Value) -> Result<Object, Status> {
        self.commit(writing, object, true)
    }

    fn commit(&mut self, writing: &Writing<'_>, mut object: Value, deleted: bool) -> Result<Object, Status> {
        if writing.dry_run {
            return Ok(Arc::new(object));
        }
        if self.closed {
            return Err(Status::new(503, "the server is stopping"));
        }
        let revision = self.revision + 1;
        set(&mut object, &["metadata", "resourceVersion"], revision.to_string());
        let storage = writing.resource.storage.clone();
        let key = (meta::namespace(&object).to_owned(), meta::name(&object).to_owned());
        if let Some(files) = &self.files {
            let stored = if deleted { files.remove(&storage, &key, revision) } else { files.store(&storage, &object) };
            stored.map_err(Status::internal)?;
        }
        self.revision = revision;
        let object = Arc::new(object);
        let objects = self.objects.entry(storage.clone()).or_default();
        let before = if deleted { objects.remove(&key) } else { objects.insert(key, Arc::clone(&object)) };
        if let Some(before) = &before {
            self.index.remove(&storage, before);
        }
        if !deleted {
            self.index.add(&storage, &object);
        }
        let change = Change { revision, storage, before, object: Arc::clone(&object), deleted };
        self.remember(change);
        Ok(object)
    }

    fn remember(&mut self, change: Change) {
        if change.storage == "customresourcedefinitions.apiextensions.k8s.io" {
            if change.deleted {
                self.catalog.forget(&change.object);
            } else {
                self.catalog.define(&change.object);
            }
        }
        self.unsettled.extend(Unsettled::by(&change));
        self.history.push_back(Arc::new(change));
        while self.history.len() > self.history_limit {
            self.forgotten = self.history.pop_front().map_or(self.forgotten, |change| change.revision);
        }
    }

    /// Refuses what may not come into a namespace.
    pub(super) fn check_namespace(&self, writing: &Writing<'_>, name: &str) -> Result<(), Status> {
        if !writing.resource.is_namespaced() {
            return Ok(());
        }
        let namespaces = self.resource("namespaces")?;
        let namespace = self.get(&namespaces, "", writing.namespace)?;
        if text(&namespace, "/status/phase") != "Terminating" {
            return Ok(());
        }
        let place = writing.namespace;
        let cause = super::super::status::Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {place} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        let why = format!("unable to create new content in namespace {place} because it is being terminated");
        Err(Status::forbidden(writing.resource.about(name), &why).with_causes(&[cause]))
    }
}
