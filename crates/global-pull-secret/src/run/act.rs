//! Carries out the actions of a plan, and publishes its Events.

use std::sync::Arc;

use fleet_model::names;
use k8s_openapi::api::core::v1::ObjectReference;
use kubernetes::event::Severity;
use kubernetes::{Cluster, ErrorKind, KubernetesError, Object};

use super::caches::Caches;
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::objects::{DATA, POD};
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

/// Carries out one action after the other, up to the first that fails; the caches get the server's answers at once. The status
/// is written all the same: it reports the failure.
pub(crate) async fn act(actions: Vec<Action>, cluster: &Cluster, caches: &Caches, metrics: &Metrics) -> Applied {
    let mut applied = Applied { changed: !actions.is_empty(), is_status_current: true, ..Applied::default() };
    for action in actions {
        let is_status = matches!(&action, Action::Apply(managed) if matches!(**managed, ManagedObject::Status(_)));
        if applied.is_stale || (applied.refused.is_some() && !is_status) {
            applied.is_status_current &= !is_status;
            continue;
        }
        let (verb, kind) = action.label();
        let message = if matches!(action, Action::Delete(_)) { "object deleted" } else { "object applied" };
        let done = match action {
            Action::Apply(managed) => apply(*managed, cluster, caches).await,
            Action::Delete(managed) => delete(*managed, cluster, caches).await,
        };
        metrics.applied(verb, kind, done.is_ok());
        match done {
            Ok(()) => tracing::info!(operation = verb, kind, "{message}"),
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

async fn apply(managed: ManagedObject, cluster: &Cluster, caches: &Caches) -> Result<(), KubernetesError> {
    match managed {
        ManagedObject::Secret(desired) => {
            if let Some(live) = changed(cluster, &desired, DATA).await? {
                caches.global.put(
                    names::GLOBAL_PULL_SECRET,
                    desired.metadata.resource_version.as_deref(),
                    Arc::new(live.into()),
                );
            }
        }
        ManagedObject::ServiceAccount(desired) => {
            if let Some(live) = changed(cluster, &desired, &[]).await? {
                caches.service_account.put(
                    names::GLOBAL_SYNCER,
                    desired.metadata.resource_version.as_deref(),
                    Arc::new(live),
                );
            }
        }
        ManagedObject::Role(desired) => {
            if let Some(live) = changed(cluster, &desired, &[]).await? {
                caches.role.put(names::GLOBAL_SYNCER, desired.metadata.resource_version.as_deref(), Arc::new(live));
            }
        }
        ManagedObject::RoleBinding(desired) => {
            if let Some(live) = changed(cluster, &desired, &[]).await? {
                caches.role_binding.put(
                    names::GLOBAL_SYNCER,
                    desired.metadata.resource_version.as_deref(),
                    Arc::new(live),
                );
            }
        }
        ManagedObject::DaemonSet(desired) => {
            if let Some(live) = changed(cluster, &*desired, POD).await? {
                caches.daemon_set.put(
                    names::GLOBAL_SYNCER,
                    desired.metadata.resource_version.as_deref(),
                    Arc::new(live),
                );
            }
        }
        ManagedObject::Confirmations(desired) => {
            if let Some(live) = changed(cluster, &desired, DATA).await? {
                let observed = desired.metadata.resource_version.as_deref();
                caches.confirmations.put(names::GLOBAL_NODES, observed, Arc::new(live));
            }
        }
        ManagedObject::Status(desired) => {
            if let Some(live) = changed(cluster, &desired, DATA).await? {
                caches.status.put(names::GLOBAL_STATUS, desired.metadata.resource_version.as_deref(), Arc::new(live));
            }
        }
    }
    Ok(())
}

/// Applies the object; `None` if that changes nothing on the server. Then the next attempt waits for another change, as it would
/// change nothing either.
async fn changed<K: Object>(cluster: &Cluster, desired: &K, exclusive: &[&str]) -> Result<Option<K>, KubernetesError> {
    let live = cluster.apply(desired, exclusive).await?;
    let is_same = live.meta().resource_version == desired.meta().resource_version;
    if is_same {
        let (kind, name) = (K::kind(&()).into_owned(), desired.meta().name.as_deref());
        tracing::warn!(
            operation = "apply",
            kind,
            name,
            "the server does not store what is applied: check its webhooks"
        );
    }
    Ok(Some(live).filter(|_| !is_same))
}

async fn delete(managed: ManagedObject, cluster: &Cluster, caches: &Caches) -> Result<(), KubernetesError> {
    // An object that waits for a finalizer stays as terminating: the watch updates the cache.
    match managed {
        ManagedObject::Secret(object) => {
            cluster.delete(&object).await?;
            caches.global.take(names::GLOBAL_PULL_SECRET);
        }
        ManagedObject::ServiceAccount(object) => cluster.delete(&object).await?,
        ManagedObject::Role(object) => cluster.delete(&object).await?,
        ManagedObject::RoleBinding(object) => {
            cluster.delete(&object).await?;
            caches.role_binding.take(names::GLOBAL_SYNCER);
        }
        ManagedObject::DaemonSet(object) => cluster.delete(&*object).await?,
        ManagedObject::Confirmations(object) | ManagedObject::Status(object) => cluster.delete(&object).await?,
    }
    Ok(())
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
    let events = cluster.events(names::GLOBAL_MANAGER);
    events.publish(&about, severity, "Reconcile", event.reason.as_str(), &event.note).await
}
