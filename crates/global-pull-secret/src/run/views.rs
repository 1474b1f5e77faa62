//! What is watched, each by its name, and brought together to facts.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleet_model::names;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kubernetes::{Cache, Cluster, Object, Selection};
use tokio::sync::{Notify, watch};

use super::{Progress, Writes};
use crate::facts::{Facts, PodSeen, SecretSeen};

/// One view, and the end at which it is kept up to date.
#[derive(Debug)]
pub(crate) struct Kept<T>(watch::Sender<Cache<T>>);

/// All that is watched.
#[derive(Debug, Default)]
pub struct Views {
    original: Kept<Arc<SecretSeen>>,
    named: Kept<Arc<SecretSeen>>,
    labelled: Option<Kept<Arc<SecretSeen>>>,
    pub(crate) global: Kept<Arc<SecretSeen>>,
    pub(crate) service_account: Kept<Arc<ServiceAccount>>,
    pub(crate) role: Kept<Arc<Role>>,
    pub(crate) role_binding: Kept<Arc<RoleBinding>>,
    pub(crate) daemon_set: Kept<Arc<DaemonSet>>,
    pub(crate) status: Kept<Arc<ConfigMap>>,
    pods: Kept<PodSeen>,
    changed: Arc<Notify>,
}

/// Where all that is watched is.
#[derive(Debug)]
pub struct Follow<'a> {
    /// The hosted cluster.
    pub hosted: &'a Cluster,
    /// The cluster of the hosted control plane.
    pub control_plane: &'a Cluster,
    /// The namespace of the hosted control plane.
    pub namespace: &'a str,
    /// The original pull secret in it.
    pub original: &'a str,
}

// === impl Kept ===

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(watch::Sender::new(Cache::default()))
    }
}

impl<T: Clone> Kept<T> {
    /// Sees at once what was written; the watch tells the same later.
    pub(crate) fn put(&self, name: &str, object: T) {
        self.0.send_modify(|view| drop(view.objects.insert(name.to_owned(), object)));
    }

    pub(crate) fn take(&self, name: &str) {
        self.0.send_modify(|view| drop(view.objects.remove(name)));
    }

    fn one(&self) -> Option<T> {
        self.0.borrow().objects.values().next().cloned()
    }

    fn all(&self) -> Vec<T> {
        self.0.borrow().objects.values().cloned().collect()
    }

    fn state(&self) -> (bool, Option<String>) {
        let view = self.0.borrow();
        (view.has_synced, view.failure.clone())
    }

    async fn notify(&self, changed: &Notify) {
        let mut news = self.0.subscribe();
        while news.changed().await.is_ok() {
            changed.notify_one();
        }
    }

    async fn follow<K>(&self, cluster: &Cluster, namespace: &str, selection: Selection, keep: fn(K) -> T)
    where
        K: Object + Send + 'static,
    {
        cluster.reflect(namespace, &selection, keep, &self.0).await;
    }
}

// === impl Views ===

impl Views {
    /// Views of everything; with `labelled` of further additional Secrets too.
    pub fn new(labelled: bool) -> Self {
        Self { labelled: labelled.then(Kept::default), ..Self::default() }
    }

    /// Wakes when any of them changes.
    pub(crate) fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }

    /// What is seen, as decisions look at it.
    pub fn facts(&self, written: Writes) -> Facts {
        let mut additional = self.named.all();
        let further = self.labelled.as_ref().map(Kept::all).unwrap_or_default();
        additional.extend(further.into_iter().filter(|secret| secret.name() != names::ADDITIONAL_PULL_SECRET));
        // The merged Secret is never its own source, whatever labels it bears.
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
            pods: self.pods.all(),
            written,
            answers: BTreeMap::new(),
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
            self.pods.state(),
        ];
        states.extend(self.labelled.as_ref().map(Kept::state));
        states
    }

    /// What does not arrive at present.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.states().into_iter().find_map(|(_, trouble)| trouble)
    }

    /// Waits until everything was read once.
    pub(crate) async fn wait_until_complete(&self, progress: &watch::Sender<Progress>) {
        while !self.states().iter().all(|(is_complete, _)| *is_complete) {
            let trouble = self.trouble();
            progress.send_if_modified(|progress| {
                let changes = progress.trouble != trouble;
                if changes {
                    if let Some(words) = &trouble {
                        tracing::warn!(operation = "watch", "{words}");
                    }
                    progress.trouble = trouble;
                }
                changes
            });
            self.changed.notified().await;
        }
    }
}

// === impl Follow ===

impl Follow<'_> {
    /// Keeps the views up to date for ever.
    pub(crate) async fn run(&self, views: &Views) {
        let (hosted, namespace) = (self.hosted, names::GLOBAL_NAMESPACE);
        let named = |name: &str| Selection::Named(name.to_owned());
        let secret = |secret: Secret| Arc::new(SecretSeen::from(secret));
        let secrets = async {
            let labelled = async {
                if let Some(labelled) = &views.labelled {
                    let selection = Selection::Labelled(format!("{}=true", names::LABEL_ADDITIONAL));
                    labelled.follow(hosted, namespace, selection, secret).await;
                }
            };
            tokio::join!(
                views.original.follow(self.control_plane, self.namespace, named(self.original), secret),
                views.named.follow(hosted, namespace, named(names::ADDITIONAL_PULL_SECRET), secret),
                views.global.follow(hosted, namespace, named(names::GLOBAL_PULL_SECRET), secret),
                labelled,
            );
        };
        let syncer = || named(names::GLOBAL_SYNCER);
        let objects = async {
            tokio::join!(
                views.service_account.follow(hosted, namespace, syncer(), Arc::<ServiceAccount>::new),
                views.role.follow(hosted, namespace, syncer(), Arc::<Role>::new),
                views.role_binding.follow(hosted, namespace, syncer(), Arc::<RoleBinding>::new),
                views.daemon_set.follow(hosted, namespace, syncer(), Arc::<DaemonSet>::new),
                views.status.follow(hosted, namespace, named(names::GLOBAL_STATUS), Arc::<ConfigMap>::new),
            );
        };
        let selection = Selection::Labelled(format!("name={}", names::GLOBAL_SYNCER));
        let pods = views.pods.follow::<Pod>(hosted, namespace, selection, PodSeen::from);
        tokio::join!(secrets, objects, pods, notify(views));
    }
}

async fn notify(views: &Views) {
    let changed = &views.changed;
    let labelled = async {
        if let Some(labelled) = &views.labelled {
            labelled.notify(changed).await;
        }
    };
    tokio::join!(
        views.original.notify(changed),
        views.named.notify(changed),
        labelled,
        views.global.notify(changed),
        views.service_account.notify(changed),
        views.role.notify(changed),
        views.role_binding.notify(changed),
        views.daemon_set.notify(changed),
        views.status.notify(changed),
        views.pods.notify(changed),
    );
}
