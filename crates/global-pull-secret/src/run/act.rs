//! Carries out the actions of a plan, and publishes its Events.

use std::sync::Arc;

use fleet_model::names;
use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::event::Severity;
use kubernetes::{Cluster, ErrorKind, KubernetesError, Object};
use serde_json::Value;

use super::{Caches, Writes};
use crate::decide::desired_value;
use crate::facts::{Facts, Written};
use crate::metrics::Metrics;
use crate::objects;
use crate::plan::{Action, Event, ManagedObject};

/// The result of a plan's actions.
#[derive(Default)]
pub(crate) struct Applied {
    /// True if there were actions.
    pub(crate) changed: bool,
    /// True if an object has changed since it was observed: decide anew.
    pub(crate) is_stale: bool,
    /// The first error of a write.
    pub(crate) refused: Option<String>,
    /// True if the stored status is up to date.
    pub(crate) is_status_current: bool,
}

/// Carries out actions, and remembers its writes.
pub(crate) struct Applier<'a> {
    cluster: &'a Cluster,
    writes: Writes,
}

impl<'a> Applier<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, writes: Writes::new() }
    }

    pub(crate) fn written(&self) -> Writes {
        self.writes.clone()
    }

    /// Carries out one action after the other, up to the first that fails; the caches get the server's answers at once. The status
    /// is written all the same: it reports the failure.
    pub(crate) async fn act(&mut self, actions: Vec<Action>, caches: &Caches, metrics: &Metrics) -> Applied {
        let mut applied = Applied { changed: !actions.is_empty(), is_status_current: true, ..Applied::default() };
        for action in actions {
            let is_status = matches!(&action, Action::Put(managed) if matches!(**managed, ManagedObject::Status(_)));
            if applied.is_stale || (applied.refused.is_some() && !is_status) {
                applied.is_status_current &= !is_status;
                continue;
            }
            let (verb, kind) = action.label();
            let done = match action {
                Action::Put(managed) => self.put(*managed, caches).await,
                Action::Remove(managed) => self.remove(*managed, caches).await,
            };
            metrics.applied(verb, kind, done.is_ok());
            match done {
                Ok(()) => tracing::info!(operation = verb, kind, "done"),
                Err(error) => {
                    tracing::debug!(operation = verb, kind, "{error}");
                    applied.is_status_current &= !is_status;
                    if matches!(error.kind, ErrorKind::Changed | ErrorKind::AlreadyExists) {
                        applied.is_stale = true;
                    } else {
                        applied.refused.get_or_insert(error.to_string());
                    }
                }
            }
        }
        applied
    }

    async fn put(&mut self, managed: ManagedObject, caches: &Caches) -> Result<(), KubernetesError> {
        let kind = managed.kind();
        match managed {
            ManagedObject::Secret(desired) => {
                let made = self.write(&desired).await?;
                caches.global.put(names::GLOBAL_PULL_SECRET, Arc::new(made.into()));
            }
            ManagedObject::ServiceAccount(desired) => {
                let made = self.remember(kind, &desired).await?;
                caches.service_account.put(names::GLOBAL_SYNCER, Arc::new(made));
            }
            ManagedObject::Role(desired) => {
                let made = self.remember(kind, &desired).await?;
                caches.role.put(names::GLOBAL_SYNCER, Arc::new(made));
            }
            ManagedObject::RoleBinding(desired) => {
                let made = self.remember(kind, &desired).await?;
                caches.role_binding.put(names::GLOBAL_SYNCER, Arc::new(made));
            }
            ManagedObject::DaemonSet(desired) => {
                let made = self.remember(kind, &*desired).await?;
                caches.daemon_set.put(names::GLOBAL_SYNCER, Arc::new(made));
            }
            ManagedObject::Status(desired) => {
                let made = self.write(&desired).await?;
                caches.status.put(names::GLOBAL_STATUS, Arc::new(made));
            }
        }
        Ok(())
    }

    async fn remove(&mut self, managed: ManagedObject, caches: &Caches) -> Result<(), KubernetesError> {
        self.writes.remove(managed.kind());
        // An object that waits for a finalizer stays as terminating: the watch updates the cache.
        match managed {
            ManagedObject::Secret(object) => {
                self.cluster.delete(&object).await?;
                caches.global.take(names::GLOBAL_PULL_SECRET);
            }
            ManagedObject::ServiceAccount(object) => self.cluster.delete(&object).await?,
            ManagedObject::Role(object) => self.cluster.delete(&object).await?,
            ManagedObject::RoleBinding(object) => {
                self.cluster.delete(&object).await?;
                caches.role_binding.take(names::GLOBAL_SYNCER);
            }
            ManagedObject::DaemonSet(object) => self.cluster.delete(&*object).await?,
            ManagedObject::Status(object) => self.cluster.delete(&object).await?,
        }
        Ok(())
    }

    /// Writes, and remembers the version: the next reconcile needs no second write for the server's defaults.
    async fn remember<K>(&mut self, kind: &'static str, desired: &K) -> Result<K, KubernetesError>
    where
        K: Object + Metadata<Ty = ObjectMeta>,
    {
        let value: Value = desired_value(desired);
        let made = self.write(desired).await?;
        let version = objects::version(Metadata::metadata(&made));
        self.writes.insert(kind, Written { desired: value, version });
        Ok(made)
    }

    async fn write<K>(&self, desired: &K) -> Result<K, KubernetesError>
    where
        K: Object + Metadata<Ty = ObjectMeta>,
    {
        if Metadata::metadata(desired).uid.is_some() {
            self.cluster.replace(desired).await
        } else {
            self.cluster.create(desired).await
        }
    }
}

/// Publishes an Event about its Secret.
pub(crate) async fn publish(cluster: &Cluster, event: &Event, facts: &Facts) -> Result<(), KubernetesError> {
    let known = facts.additional.iter().find(|secret| secret.name() == event.about);
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        namespace: Some(names::GLOBAL_NAMESPACE.to_owned()),
        name: Some(event.about.clone()),
        uid: event.uid.clone().or_else(|| known.and_then(|secret| secret.metadata.uid.clone())),
        ..ObjectReference::default()
    };
    let severity = if event.reason.is_warning() { Severity::Warning } else { Severity::Normal };
    let mut note = event.note.clone();
    // An Event's message may have 1024 bytes.
    if let Some((end, _)) = note.char_indices().nth(900) {
        note.truncate(end);
        note.push('…');
    }
    let events = cluster.events(names::GLOBAL_MANAGER);
    events.publish(&about, severity, ("Reconcile", event.reason.as_str()), &note).await
}
