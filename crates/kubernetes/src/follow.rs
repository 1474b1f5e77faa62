//! Following objects: what there is, kept up to date through every outage.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::Cluster;
use crate::error::{Fault, KubernetesError};
use crate::object::{Object, called};
use crate::verb::Verb;

/// Which objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The one of that name. A Role with `resourceNames` is enough to follow it.
    Named(String),
    /// Those that a label selector fits.
    Labelled(String),
}

/// What there is of the followed objects, by name.
#[derive(Clone, Debug)]
pub struct View<T> {
    /// The objects, as far as they are known.
    pub objects: BTreeMap<String, T>,
    /// Whether they have been read at all.
    pub is_complete: bool,
    /// Why news does not arrive at present.
    pub trouble: Option<String>,
}

/// The waits after failures in a row; the last one stays.
const DELAYS: [Duration; 7] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
];
/// A watch that ends sooner counts as a failure: else a server that ends them all would be asked without a pause.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// Servers end watches by themselves after some minutes; one that is silent for longer is dead.
const LONGEST_SILENCE: Duration = Duration::from_mins(6);

/// How a watch ended.
enum End {
    /// Go on from where it was.
    Again(Option<KubernetesError>),
    /// The server does not remember where it was: read everything.
    Forgotten,
}

impl Cluster {
    /// Keeps `view` up to date for ever: lists, watches, begins again where the server has forgotten. What is made of an
    /// object is `keep`'s.
    pub async fn follow<K, T>(
        &self,
        namespace: &str,
        selection: &Selection,
        keep: impl Fn(K) -> T,
        view: &watch::Sender<View<T>>,
    ) where
        K: Object + Send + 'static,
    {
        let follower = Follower { cluster: self, namespace, selection, keep, view };
        let mut failures = 0;
        loop {
            match follower.list().await {
                Ok(version) => {
                    failures = 0;
                    follower.watch(version).await;
                }
                Err(error) => follower.fail(&error, &mut failures).await,
            }
        }
    }
}

struct Follower<'a, T, F> {
    cluster: &'a Cluster,
    namespace: &'a str,
    selection: &'a Selection,
    keep: F,
    view: &'a watch::Sender<View<T>>,
}

impl<T, F> Follower<'_, T, F> {
    async fn list<K>(&self) -> Result<String, KubernetesError>
    where
        K: Object + Send + 'static,
        F: Fn(K) -> T,
    {
        let api: Api<K> = Api::namespaced(self.cluster.client(), self.namespace);
        let parameters = match self.selection {
            Selection::Named(name) => ListParams::default().fields(&format!("metadata.name={name}")),
            Selection::Labelled(labels) => ListParams::default().labels(labels),
        };
        let list = self.cluster.call(Verb::List, &self.called::<K>(), api.list(&parameters)).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        let objects = list.items.into_iter().map(|object| (object.name_any(), (self.keep)(object))).collect();
        self.view.send_replace(View { objects, is_complete: true, trouble: None });
        Ok(version)
    }

    /// Returns when everything must be read again.
    async fn watch<K>(&self, mut version: String)
    where
        K: Object + Send + 'static,
        F: Fn(K) -> T,
    {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            match self.watch_once(&mut version).await {
                End::Forgotten => return,
                End::Again(None) if began.elapsed() >= SHORTEST_WATCH => failures = 0,
                End::Again(None) => pause(&mut failures).await,
                End::Again(Some(error)) => {
                    failures = if began.elapsed() >= SHORTEST_WATCH { 0 } else { failures };
                    self.fail(&error, &mut failures).await;
                }
            }
        }
    }

    async fn watch_once<K>(&self, version: &mut String) -> End
    where
        K: Object + Send + 'static,
        F: Fn(K) -> T,
    {
        let api: Api<K> = Api::namespaced(self.cluster.client(), self.namespace);
        let parameters = match self.selection {
            Selection::Named(name) => WatchParams::default().fields(&format!("metadata.name={name}")),
            Selection::Labelled(labels) => WatchParams::default().labels(labels),
        };
        let object = self.called::<K>();
        let failed = |error: &kube::Error| match error {
            kube::Error::Api(status) if status.code == 410 => End::Forgotten,
            error => End::Again(Some(KubernetesError::classify(Verb::Watch, &object, error))),
        };
        let began = match timeout(self.cluster.call_timeout(), api.watch(&parameters, version)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return failed(&error),
            Err(_elapsed) => return End::Again(Some(KubernetesError::new(Verb::Watch, object, Fault::TimedOut))),
        };
        let mut stream = pin!(began);
        self.view.send_if_modified(|view| view.trouble.take().is_some());
        loop {
            let event = match timeout(LONGEST_SILENCE, stream.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(error))) => return failed(&error),
                Ok(None) | Err(_) => return End::Again(None),
            };
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    *version = object.resource_version().unwrap_or_default();
                    let name = object.name_any();
                    let kept = (self.keep)(object);
                    self.view.send_modify(|view| drop(view.objects.insert(name, kept)));
                }
                WatchEvent::Deleted(object) => {
                    *version = object.resource_version().unwrap_or_default();
                    self.view.send_modify(|view| drop(view.objects.remove(&object.name_any())));
                }
                WatchEvent::Bookmark(bookmark) => version.clone_from(&bookmark.metadata.resource_version),
                WatchEvent::Error(status) => return failed(&kube::Error::Api(status)),
            }
        }
    }

    async fn fail(&self, error: &KubernetesError, failures: &mut usize) {
        self.view.send_modify(|view| view.trouble = Some(error.to_string()));
        pause(failures).await;
    }

    fn called<K: Object>(&self) -> String {
        match self.selection {
            Selection::Named(name) => called::<K>(self.namespace, name),
            Selection::Labelled(labels) => called::<K>(self.namespace, labels),
        }
    }
}

/// Waits as long as so many failures ask for, ±20 %.
async fn pause(failures: &mut usize) {
    let delay = DELAYS.get(*failures).or(DELAYS.last()).copied().unwrap_or_default();
    *failures = failures.saturating_add(1);
    sleep(delay.mul_f64(rand::random::<f64>().mul_add(0.4, 0.8))).await;
}

impl<T> Default for View<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), is_complete: false, trouble: None }
    }
}
