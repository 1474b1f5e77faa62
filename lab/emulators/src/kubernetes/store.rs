//! The object store: one interface for the HTTP server and for the controllers in the same process.
//!
//! A resource is named as kubectl names it: its plural, with the group behind a dot where there is one (`pods`, `jobs.batch`,
//! `daemonsets.apps`). The namespace of a cluster-wide object is empty. Every write is checked, defaulted and stored as over
//! HTTP, and visible to watches before the call returns; garbage collection of dependents and the end of namespaces have
//! happened by then too. Calls never wait, and never run while another one runs.
//!
//! A Pod that has a node and is not finished is deleted gracefully: `deletionTimestamp` is set, and the process that acts as the kubelet
//! ends it with [`Deletion::now`]. All other deletions wait for finalizers only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::settings::Settings;
use super::status::Status;
use crate::start_error::StartError;

mod change;
mod delete;
mod files;
mod index;
mod open;
mod state;
mod unsettled;
mod write;
mod writing;

pub(crate) use change::{Change, Event, Key, Object};
pub(crate) use delete::{Deletion, Propagation};
pub(crate) use index::{JOB_LABEL, controller};
pub(crate) use state::State;
pub(crate) use writing::{Manager, Part, Writing};

/// All objects, and the clock by which they live.
pub(crate) struct Store {
    state: Mutex<State>,
    /// The newest revision.
    revision: watch::Sender<u64>,
    clock: fn() -> Timestamp,
    ahead: watch::Sender<SignedDuration>,
    logs: Mutex<Option<Arc<dyn Logs>>>,
    /// Cancelled when the server stops; whatever runs in the background ends then.
    pub(crate) stopping: CancellationToken,
}

/// Access to the logs of containers.
pub(crate) trait Logs: Send + Sync {
    /// The output of a container so far; none if there is no such container. No name means the only one.
    fn read(&self, namespace: &str, pod: &str, container: Option<&str>) -> Option<Vec<u8>>;
}

/// A resource's events: first one for each object that is there, then one for each write.
///
/// One that falls behind the history hears of all that is there again, and misses deletions: take events as hints to look at
/// the store, not as the truth.
pub(crate) struct Subscription {
    store: Arc<Store>,
    storage: String,
    waiting: std::collections::VecDeque<Event>,
    seen: u64,
    revision: watch::Receiver<u64>,
}

// === impl Store ===

impl Store {
    pub(crate) fn open(settings: &Settings, clock: fn() -> Timestamp) -> Result<Arc<Self>, StartError> {
        let state = State::open(settings, clock())?;
        let revision = watch::Sender::new(state.revision());
        let store = Self {
            state: Mutex::new(state),
            revision,
            clock,
            ahead: watch::Sender::new(SignedDuration::ZERO),
            logs: Mutex::new(None),
            stopping: CancellationToken::new(),
        };
        Ok(Arc::new(store))
    }

    pub(crate) fn get(&self, resource: &str, namespace: &str, name: &str) -> Result<Object, Status> {
        let state = self.lock();
        let resource = state.resource(resource)?;
        state.get(&resource, namespace, name)
    }

    /// In the order of namespace and name; all namespaces if none is given.
    pub(crate) fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Object> {
        let state = self.lock();
        let Ok(resource) = state.resource(resource) else { return Vec::new() };
        state.list(&resource, namespace).cloned().collect()
    }

    /// The Pods whose controller has this kind and name, whichever uid.
    pub(crate) fn pods_of(&self, controller: &Key, kind: &str) -> Vec<Object> {
        let state = self.lock();
        let Ok(pods) = state.resource("pods") else { return Vec::new() };
        let names = state.index.pods_of(controller, kind);
        names.filter_map(|name| state.find(&pods, &controller.0, name)).cloned().collect()
    }

    /// Creates an object; its kind may be left out, a name may be generated from `metadata.generateName`.
    pub(crate) fn create(&self, resource: &str, namespace: &str, object: Value) -> Result<Object, Status> {
        self.change(|state, now| {
            let resource = state.resource(resource)?;
            state.create(&Writing::internal(&resource, namespace, "", now), object)
        })
    }

    /// Replaces all but the status; conflicts if the object carries a resource version that is not the newest.
    pub(crate) fn update(&self, resource: &str, object: Value) -> Result<Object, Status> {
        self.replace(resource, Part::Main, object)
    }

    /// Replaces the status; conflicts if the object carries a resource version that is not the newest.
    pub(crate) fn update_status(&self, resource: &str, object: Value) -> Result<Object, Status> {
        self.replace(resource, Part::Status, object)
    }

    pub(crate) fn delete(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        deletion: &Deletion,
    ) -> Result<Object, Status> {
        self.change(|state, now| {
            let resource = state.resource(resource)?;
            state.delete(&Writing::internal(&resource, namespace, name, now), deletion)
        })
    }

    pub(crate) fn subscribe(self: &Arc<Self>, resource: &str) -> Subscription {
        let storage =
            self.lock().resource(resource).map_or_else(|_| resource.to_owned(), |found| found.storage.clone());
        let revision = self.revision.subscribe();
        let mut subscription = Subscription {
            store: Arc::clone(self),
            storage,
            waiting: std::collections::VecDeque::new(),
            seen: 0,
            revision,
        };
        subscription.start();
        subscription
    }

    /// The time of this server, which tests move forward.
    pub(crate) fn now(&self) -> Timestamp {
        // The emulator's clock stops at the end of time rather than wrapping around.
        (self.clock)().checked_add(*self.ahead.borrow()).unwrap_or(Timestamp::MAX)
    }

    /// Returns once the server's clock shows `at`, whether by waiting or because the clock was moved.
    pub(crate) async fn sleep_until(&self, at: Timestamp) {
        let mut ahead = self.ahead.subscribe();
        loop {
            let left = at.duration_since(self.now());
            let Ok(left) = Duration::try_from(left) else { return };
            if left.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                // The sender lives as long as this store, so waiting cannot fail.
                _ = ahead.changed() => {}
            }
        }
    }

    pub(crate) fn advance_clock(&self, by: Duration) {
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        self.ahead.send_modify(|ahead| *ahead = ahead.saturating_add(by));
    }

    /// A bearer token for a `ServiceAccount`, good until `until`.
    pub(crate) fn issue_token(
        &self,
        namespace: &str,
        account: &str,
        audiences: &[String],
        until: Timestamp,
    ) -> Result<String, Status> {
        self.lock().issue_token(namespace, account, audiences, until)
    }

    /// Sets the source of `pods/log`.
    pub(crate) fn serve_logs(&self, logs: Arc<dyn Logs>) {
        *self.logs.lock().unwrap_or_else(PoisonError::into_inner) = Some(logs);
    }

    pub(crate) fn read_log(&self, namespace: &str, pod: &str, container: Option<&str>) -> Option<Vec<u8>> {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        logs.and_then(|logs| logs.read(namespace, pod, container))
    }

    /// Forgets what happened so far; watches from before are too old.
    pub(crate) fn forget_history(&self) {
        self.lock().forget_history();
    }

    /// Lets go of the folder; later writes are refused.
    pub(crate) fn close(&self) {
        self.lock().close();
    }

    /// Looks at the state as it is now.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the state, and notifies watches.
    pub(crate) fn change<T>(&self, work: impl FnOnce(&mut State, Timestamp) -> Result<T, Status>) -> Result<T, Status> {
        let now = self.now();
        let mut state = self.lock();
        let result = work(&mut state, now);
        let settled = state.settle(now);
        let revision = state.revision();
        drop(state);
        self.revision.send_if_modified(|seen| std::mem::replace(seen, revision) != revision);
        result.and_then(|result| settled.map(|()| result))
    }

    /// Changes whenever something was written.
    pub(crate) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    fn replace(&self, resource: &str, part: Part, object: Value) -> Result<Object, Status> {
        let namespace = super::value::text(&object, "/metadata/namespace").to_owned();
        let name = super::value::text(&object, "/metadata/name").to_owned();
        self.change(|state, now| {
            let resource = state.resource(resource)?;
            let writing = Writing { part, ..Writing::internal(&resource, &namespace, &name, now) };
            state.update(&writing, |_| Ok(object))
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic between two statements of `State` leaves nothing half done: writes replace whole objects.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Store").field("revision", &*self.revision.borrow()).finish_non_exhaustive()
    }
}

// === impl Subscription ===

impl Subscription {
    /// Waits for the next event; cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return event;
            }
            // The store, and so the sender, lives as long as this does.
            drop(self.revision.changed().await);
            self.catch_up();
        }
    }

    fn start(&mut self) {
        let store = Arc::clone(&self.store);
        let state = store.lock();
        self.seen = state.revision();
        let added = |object: &Object| Event { object: Arc::clone(object) };
        self.waiting.extend(state.stored(&self.storage).map(added));
    }

    fn catch_up(&mut self) {
        let store = Arc::clone(&self.store);
        let state = store.lock();
        let Some(changes) = state.since(self.seen) else {
            drop(state);
            return self.start();
        };
        let ours = changes.filter(|change| change.storage == self.storage);
        self.waiting.extend(ours.map(|change| change.event()));
        self.seen = state.revision();
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Subscription").field("storage", &self.storage).finish_non_exhaustive()
    }
}
