//! The caches of all watched objects, from which the facts are made.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_model::names;
use k8s_openapi::Metadata;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubernetes::{Cache, Cluster, Object, Selection};
use tokio::sync::{Notify, watch};

use super::progress::Progress;
use crate::facts::{Facts, ObservedPod, ObservedSecret};

/// A cached object with a resourceVersion.
pub(crate) trait Versioned {
    /// Its resourceVersion.
    fn version(&self) -> Option<&str>;
}

/// One cache with its writing end.
#[derive(Debug)]
pub(crate) struct CachedObjects<T>(watch::Sender<Cache<T>>);

/// The caches of all watched objects.
#[derive(Debug, Default)]
pub struct Caches {
    original: CachedObjects<Arc<ObservedSecret>>,
    named: CachedObjects<Arc<ObservedSecret>>,
    labelled: Option<CachedObjects<Arc<ObservedSecret>>>,
    pub(crate) global: CachedObjects<Arc<ObservedSecret>>,
    pub(crate) service_account: CachedObjects<Arc<ServiceAccount>>,
    pub(crate) role: CachedObjects<Arc<Role>>,
    pub(crate) role_binding: CachedObjects<Arc<RoleBinding>>,
    pub(crate) daemon_set: CachedObjects<Arc<DaemonSet>>,
    pub(crate) status: CachedObjects<Arc<ConfigMap>>,
    pub(crate) confirmations: CachedObjects<Arc<ConfigMap>>,
    pods: CachedObjects<ObservedPod>,
    changed: Arc<Notify>,
}

/// The clusters and names of all watched objects.
#[derive(Debug)]
pub struct WatchTargets<'a> {
    /// The hosted cluster.
    pub hosted: &'a Cluster,
    /// The cluster of the hosted control plane.
    pub control_plane: &'a Cluster,
    /// The namespace of the hosted control plane.
    pub namespace: &'a str,
    /// The original pull secret in it.
    pub original: &'a str,
}

// === impl Versioned ===

impl Versioned for Arc<ObservedSecret> {
    fn version(&self) -> Option<&str> {
        self.metadata.resource_version.as_deref()
    }
}

impl<K: Metadata<Ty = ObjectMeta>> Versioned for Arc<K> {
    fn version(&self) -> Option<&str> {
        self.metadata().resource_version.as_deref()
    }
}

// === impl CachedObjects ===

impl<T> Default for CachedObjects<T> {
    fn default() -> Self {
        Self(watch::Sender::new(Cache::default()))
    }
}

impl<T: Clone> CachedObjects<T> {
    /// Caches an object that was just written over the `observed` version; its watch event follows later. If the watch has
    /// already replaced that version, it is ahead of the write's answer, or about to deliver it.
    pub(crate) fn put(&self, name: &str, observed: Option<&str>, object: T)
    where
        T: Versioned,
    {
        self.0.send_if_modified(|cache| {
            let is_observed = cache.objects.get(name).and_then(Versioned::version) == observed;
            if is_observed {
                cache.objects.insert(name.to_owned(), object);
            }
            is_observed
        });
    }

    pub(crate) fn take(&self, name: &str) {
        self.0.send_modify(|cache| drop(cache.objects.remove(name)));
    }

    fn one(&self) -> Option<T> {
        self.0.borrow().objects.values().next().cloned()
    }

    fn all(&self) -> Vec<T> {
        self.0.borrow().objects.values().cloned().collect()
    }

    fn state(&self) -> (bool, Option<String>) {
        let cache = self.0.borrow();
        (cache.has_synced, cache.failure.clone())
    }

    async fn notify(&self, changed: &Notify) {
        let mut changes = self.0.subscribe();
        while changes.changed().await.is_ok() {
            changed.notify_one();
        }
    }

    async fn reflect<K>(&self, cluster: &Cluster, namespace: &str, selection: Selection, keep: fn(K) -> T)
    where
        K: Object + Send + 'static,
    {
        cluster.reflect(namespace, &selection, keep, &self.0).await;
    }
}

// === impl Caches ===

impl Caches {
    /// Empty caches; with `labelled` also one for further additional Secrets.
    pub fn new(labelled: bool) -> Self {
        Self { labelled: labelled.then(CachedObjects::default), ..Self::default() }
    }

    /// Notifies about a change of any of them.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// The facts for a decision.
    pub fn facts(&self) -> Facts {
        let mut additional = self.named.all();
        let further = self.labelled.as_ref().map(CachedObjects::all).unwrap_or_default();
        additional.extend(further.into_iter().filter(|secret| secret.name() != names::ADDITIONAL_PULL_SECRET));
        // The merged Secret is never its own source, with any labels.
        additional.retain(|secret| secret.name() != names::GLOBAL_PULL_SECRET);
        Facts {
            original: self.original.one(),
            additional,
            global: self.global.one(),
            service_account: self.service_account.one(),
            role: self.role.one(),
            role_binding: self.role_binding.one(),
            daemon_set: self.daemon_set.one(),
            status: self.status.one(),
            confirmations: self.confirmations.one(),
            pods: self.pods.all(),
            results: BTreeMap::new(),
            images: None,
            refused: None,
        }
    }

    fn states(&self) -> Vec<(bool, Option<String>)> {
        let mut states = vec![
            self.original.state(),
            self.named.state(),
            self.global.state(),
            self.service_account.state(),
            self.role.state(),
            self.role_binding.state(),
            self.daemon_set.state(),
            self.status.state(),
            self.confirmations.state(),
            self.pods.state(),
        ];
        states.extend(self.labelled.as_ref().map(CachedObjects::state));
        states
    }

    /// The present failure of a watch.
    pub(crate) fn failure(&self) -> Option<String> {
        self.states().into_iter().find_map(|(_, failure)| failure)
    }

    /// Waits until all caches have synced.
    pub(crate) async fn wait_until_synced(&self, progress: &watch::Sender<Progress>) {
        while !self.states().iter().all(|(has_synced, _)| *has_synced) {
            let failure = self.failure();
            progress.send_if_modified(|progress| {
                let changes = progress.failure != failure;
                if changes {
                    if let Some(message) = &failure {
                        tracing::warn!(operation = "watch", "{message}");
                    }
                    progress.failure = failure;
                }
                changes
            });
            self.changed.notified().await;
        }
    }
}

// === impl WatchTargets ===

impl WatchTargets<'_> {
    /// Keeps the caches up to date forever.
    pub(crate) async fn run(&self, caches: &Caches) {
        let (hosted, namespace) = (self.hosted, names::GLOBAL_NAMESPACE);
        let named = |name: &str| Selection::Named(name.to_owned());
        let secret = |secret: Secret| Arc::new(ObservedSecret::from(secret));
        let secrets = async {
            let labelled = async {
                if let Some(labelled) = &caches.labelled {
                    let selection = Selection::Labelled(format!("{}=true", names::LABEL_ADDITIONAL));
                    labelled.reflect(hosted, namespace, selection, secret).await;
                }
            };
            tokio::join!(
                caches.original.reflect(self.control_plane, self.namespace, named(self.original), secret),
                caches.named.reflect(hosted, namespace, named(names::ADDITIONAL_PULL_SECRET), secret),
                caches.global.reflect(hosted, namespace, named(names::GLOBAL_PULL_SECRET), secret),
                labelled,
            );
        };
        let syncer = || named(names::GLOBAL_SYNCER);
        let objects = async {
            tokio::join!(
                caches.service_account.reflect(hosted, namespace, syncer(), Arc::<ServiceAccount>::new),
                caches.role.reflect(hosted, namespace, syncer(), Arc::<Role>::new),
                caches.role_binding.reflect(hosted, namespace, syncer(), Arc::<RoleBinding>::new),
                caches.daemon_set.reflect(hosted, namespace, syncer(), Arc::<DaemonSet>::new),
                caches.status.reflect(hosted, namespace, named(names::GLOBAL_STATUS), Arc::<ConfigMap>::new),
                caches.confirmations.reflect(hosted, namespace, named(names::GLOBAL_NODES), Arc::<ConfigMap>::new),
            );
        };
        let selection = Selection::Labelled(format!("name={}", names::GLOBAL_SYNCER));
        let pods = caches.pods.reflect::<Pod>(hosted, namespace, selection, ObservedPod::from);
        tokio::join!(secrets, objects, pods, notify(caches));
    }
}

async fn notify(caches: &Caches) {
    let changed = &caches.changed;
    let labelled = async {
        if let Some(labelled) = &caches.labelled {
            labelled.notify(changed).await;
        }
    };
    tokio::join!(
        caches.original.notify(changed),
        caches.named.notify(changed),
        labelled,
        caches.global.notify(changed),
        caches.service_account.notify(changed),
        caches.role.notify(changed),
        caches.role_binding.notify(changed),
        caches.daemon_set.notify(changed),
        caches.status.notify(changed),
        caches.confirmations.notify(changed),
        caches.pods.notify(changed),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(version: &str) -> Arc<ConfigMap> {
        let metadata = ObjectMeta { resource_version: Some(version.to_owned()), ..ObjectMeta::default() };
        Arc::new(ConfigMap { metadata, ..ConfigMap::default() })
    }

    #[test]
    fn the_answer_of_a_write_does_not_replace_a_newer_event() {
        let cache = CachedObjects::default();
        cache.put("a", None, map("1"));
        cache.put("a", Some("1"), map("2"));
        assert_eq!(cache.one(), Some(map("2")));
        // The write over version 2 was answered after the watch had delivered the next version.
        cache.0.send_modify(|cache| drop(cache.objects.insert("a".to_owned(), map("4"))));
        cache.put("a", Some("2"), map("3"));
        cache.put("a", None, map("3"));
        assert_eq!(cache.one(), Some(map("4")));
    }
}
