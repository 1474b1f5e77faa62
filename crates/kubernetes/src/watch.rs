//! Watches: the events of selected objects, through every outage, and a cache that follows them.
//!
//! All watches run on kube's `watcher`: list, watch from there, list again where the server no longer knows the version. A
//! watch that the server ends in order is resumed; after a failure the objects are listed again, so that a success always
//! shows. A silent connection is given up within five minutes, a response that does not begin within the call timeout.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use daemon::backoff::Backoff;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError, classify};
use crate::object::{Object, called};
use crate::verb::Verb;

/// The objects of a kind that are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The object of that name. A Role with `resourceNames` is enough to watch it.
    Named(String),
    /// The objects that match a label selector.
    Labelled(String),
}

/// The watched objects by name, as far as they are known.
#[derive(Clone, Debug)]
pub struct Cache<T> {
    /// The objects.
    pub objects: BTreeMap<String, T>,
    /// True once the objects have been listed.
    pub has_synced: bool,
    /// The failure that the watch recovers from at present.
    pub failure: Option<String>,
}

/// Delay before the next attempt after failures in a row.
const BACKOFF: Backoff = Backoff::doubling(Duration::from_millis(100), Duration::from_secs(30)).with_jitter(20);
/// Minimum time that a watch lasts so that its end starts the delays anew.
const STABLE: Duration = Duration::from_secs(1);

impl Cluster {
    /// Keeps `cache` up to date forever. `convert` makes the cached value of an object.
    ///
    /// A failure is set in the cache, and cleared by the next list that succeeds; the objects stay as they were last known.
    pub async fn reflect<K, T>(
        &self,
        namespace: &str,
        selection: &Selection,
        convert: impl Fn(K) -> T,
        cache: &watch::Sender<Cache<T>>,
    ) where
        K: Object + Send + 'static,
    {
        let mut events = Events::<K>::new(self, namespace, selection);
        let mut listed = BTreeMap::new();
        loop {
            match events.next().await {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => drop(listed.insert(object.name_any(), convert(object))),
                Ok(Event::InitDone) => {
                    let objects = std::mem::take(&mut listed);
                    cache.send_replace(Cache { objects, has_synced: true, failure: None });
                }
                Ok(Event::Apply(object)) => {
                    let name = object.name_any();
                    let value = convert(object);
                    cache.send_modify(|cache| drop(cache.objects.insert(name, value)));
                }
                Ok(Event::Delete(object)) => {
                    cache.send_modify(|cache| drop(cache.objects.remove(&object.name_any())));
                }
                Err(error) => cache.send_modify(|cache| cache.failure = Some(error.to_string())),
            }
        }
    }

    /// The events of the selected objects, forever. An error is followed by another attempt, after a delay.
    pub(crate) fn events_of<K>(
        &self,
        namespace: &str,
        selection: &Selection,
    ) -> impl Stream<Item = Result<Event<K>, KubernetesError>> + Send + use<K>
    where
        K: Object + Send + 'static,
    {
        let events = Events::<K>::new(self, namespace, selection);
        stream::unfold(events, async |mut events| Some((events.next().await, events)))
    }
}

/// A watch, and its recovery from failures.
struct Events<K> {
    api: Api<K>,
    config: watcher::Config,
    /// Name of the selected objects in messages.
    object: String,
    call_timeout: Duration,
    watcher: Option<BoxStream<'static, watcher::Result<Event<K>>>>,
    /// Time at which the objects were last listed by this watcher; `None` while they are being listed.
    listed_at: Option<Instant>,
    failures: u32,
}

impl<K> Events<K>
where
    K: Object + Send + 'static,
{
    fn new(cluster: &Cluster, namespace: &str, selection: &Selection) -> Self {
        let (config, object) = match selection {
            Selection::Named(name) => {
                let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
                (config, called::<K>(namespace, name))
            }
            Selection::Labelled(labels) => (watcher::Config::default().labels(labels), called::<K>(namespace, labels)),
        };
        Self {
            api: Api::namespaced(cluster.client(), namespace),
            config,
            object,
            call_timeout: cluster.call_timeout(),
            watcher: None,
            listed_at: None,
            failures: 0,
        }
    }

    /// The next event or failure.
    async fn next(&mut self) -> Result<Event<K>, KubernetesError> {
        loop {
            let error = match self.attempt().await {
                Ok(event) => return Ok(event),
                Err(error) => error,
            };
            self.watcher = None;
            let is_stable = self.listed_at.take().is_some_and(|listed| listed.elapsed() >= STABLE);
            self.failures = if is_stable { 1 } else { self.failures.saturating_add(1) };
            // A server that no longer knows the version does not fail: the objects are listed again.
            if let Some(error) = error {
                return Err(error);
            }
        }
    }

    /// The next event of the current watcher, which is started if there is none. Without an error the watch has expired.
    async fn attempt(&mut self) -> Result<Event<K>, Option<KubernetesError>> {
        if self.watcher.is_none() {
            sleep(BACKOFF.delay(self.failures, rand::random())).await;
        }
        let (api, config) = (&self.api, &self.config);
        let watcher = self.watcher.get_or_insert_with(|| watcher(api.clone(), config.clone()).boxed());
        let next = match self.listed_at {
            Some(_) => watcher.next().await,
            None => timeout(self.call_timeout, watcher.next())
                .await
                .map_err(|_elapsed| Some(KubernetesError::new(Verb::List, self.object.clone(), ErrorKind::TimedOut)))?,
        };
        let event = next.transpose().map_err(|error| failure(&self.object, &error))?.ok_or(None)?;
        match &event {
            Event::Init => self.listed_at = None,
            Event::InitDone => self.listed_at = Some(Instant::now()),
            Event::InitApply(_) | Event::Apply(_) | Event::Delete(_) => {}
        }
        Ok(event)
    }
}

/// The library's error as one of this crate; `None` for a version that the server no longer knows.
fn failure(object: &str, error: &watcher::Error) -> Option<KubernetesError> {
    use watcher::Error::{InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed};
    match error {
        WatchError(status) if status.code == 410 => None,
        WatchStartFailed(kube::Error::Api(status)) | WatchFailed(kube::Error::Api(status)) if status.code == 410 => {
            None
        }
        InitialListFailed(error) => Some(classify(Verb::List, object, error)),
        WatchStartFailed(error) | WatchFailed(error) => Some(classify(Verb::Watch, object, error)),
        WatchError(status) => Some(classify(Verb::Watch, object, &kube::Error::Api(status.clone()))),
        NoResourceVersion => Some(KubernetesError::new(Verb::Watch, object, ErrorKind::Internal)),
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), has_synced: false, failure: None }
    }
}

impl<K> fmt::Debug for Events<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Events").field("object", &self.object).finish_non_exhaustive()
    }
}
