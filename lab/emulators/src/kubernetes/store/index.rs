//! Finds objects by their uid, by the uid of an owner, and Pods by their controller or their Job's label, without a walk
//! through all objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::meta;
use super::super::value::text;
use super::change::Key;

/// An object's storage and key.
pub(super) type Location = (String, Key);

/// A controller of Pods: namespace, kind and name, whichever uid.
type Controller = (String, String, String);

/// The label with a Job's name that its Pods have. Selection by it is indexed, as each end of a Job is looked up by it.
pub(crate) const JOB_LABEL: &str = "job-name";

/// The indexes of all stored objects.
#[derive(Default)]
pub(super) struct Index {
    by_uid: BTreeMap<String, Location>,
    by_owner: BTreeMap<String, BTreeSet<Location>>,
    pods: BTreeMap<Controller, BTreeSet<String>>,
    /// By namespace and value of the label.
    pods_of_jobs: BTreeMap<Key, BTreeSet<String>>,
}

// === impl Index ===

impl Index {
    pub(super) fn add(&mut self, storage: &str, object: &Value) {
        let location = location(storage, object);
        self.by_uid.insert(meta::uid(object).to_owned(), location.clone());
        for owner in meta::owners(object) {
            self.by_owner.entry(text(owner, "/uid").to_owned()).or_default().insert(location.clone());
        }
        if let Some(controller) = controller_of_pod(storage, object) {
            self.pods.entry(controller).or_default().insert(meta::name(object).to_owned());
        }
        if let Some(job) = job_of_pod(storage, object) {
            self.pods_of_jobs.entry(job).or_default().insert(meta::name(object).to_owned());
        }
    }

    pub(super) fn remove(&mut self, storage: &str, object: &Value) {
        let location = location(storage, object);
        self.by_uid.remove(meta::uid(object));
        for owner in meta::owners(object) {
            take(&mut self.by_owner, text(owner, "/uid"), &location);
        }
        if let Some(controller) = controller_of_pod(storage, object) {
            take(&mut self.pods, &controller, meta::name(object));
        }
        if let Some(job) = job_of_pod(storage, object) {
            take(&mut self.pods_of_jobs, &job, meta::name(object));
        }
    }

    /// The object with this uid.
    pub(super) fn of_uid(&self, uid: &str) -> Option<&Location> {
        self.by_uid.get(uid)
    }

    /// The objects that have an owner with this uid.
    pub(super) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Location> {
        self.by_owner.get(uid).into_iter().flatten()
    }

    /// The names of the Pods whose controller has this kind and name, whichever uid.
    pub(super) fn pods_of(&self, (namespace, name): &Key, kind: &str) -> impl Iterator<Item = &String> {
        self.pods.get(&(namespace.clone(), kind.to_owned(), name.clone())).into_iter().flatten()
    }

    /// The names of the Pods that have this Job in [`JOB_LABEL`].
    pub(super) fn pods_of_job(&self, namespace: &str, job: &str) -> impl Iterator<Item = &String> {
        self.pods_of_jobs.get(&(namespace.to_owned(), job.to_owned())).into_iter().flatten()
    }
}

/// The controller of an object, if it has one.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    meta::owners(object).iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

fn location(storage: &str, object: &Value) -> Location {
    (storage.to_owned(), (meta::namespace(object).to_owned(), meta::name(object).to_owned()))
}

fn controller_of_pod(storage: &str, object: &Value) -> Option<Controller> {
    let owner = controller(object).filter(|_| storage == "pods")?;
    Some((meta::namespace(object).to_owned(), text(owner, "/kind").to_owned(), text(owner, "/name").to_owned()))
}

fn job_of_pod(storage: &str, object: &Value) -> Option<Key> {
    let job = object.pointer("/metadata/labels")?.get(JOB_LABEL)?.as_str().filter(|_| storage == "pods")?;
    Some((meta::namespace(object).to_owned(), job.to_owned()))
}

fn take<K, Q, V, W>(map: &mut BTreeMap<K, BTreeSet<V>>, key: &Q, value: &W)
where
    K: std::borrow::Borrow<Q> + Ord,
    Q: Ord + ?Sized,
    V: std::borrow::Borrow<W> + Ord,
    W: Ord + ?Sized,
{
    if let Some(values) = map.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            map.remove(key);
        }
    }
}
