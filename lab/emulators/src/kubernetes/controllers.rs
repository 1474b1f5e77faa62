//! Controllers: Jobs and `DaemonSets` get their Pods, Pods run, finished ones are counted and cleaned up.
//!
//! Each controller is one task: it hears that an object changed, looks at the store as it is now, decides (`job::decide`,
//! `daemon_set::decide`: pure), and performs. What fails is decided anew a second later.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::task::JoinSet;

use super::pods;
use super::store::{Object, Store, Subscription, controller};
use super::value::text;

pub(crate) mod action;
pub(crate) mod daemon_set;
pub(crate) mod job;
pub(crate) mod model;
pub(crate) mod perform;
pub(crate) mod queue;
#[cfg(test)]
mod tests;

use action::Action;
use model::{Pod, view};
use perform::{Performing, release};
use queue::{Key, Queue, Settings, key_of};

/// Delay before a failed pass is repeated.
const RETRY: SignedDuration = SignedDuration::from_secs(1);

/// The controllers' tasks. They end when the store stops; dropping this ends them at once.
#[derive(Debug)]
pub(crate) struct Controllers(JoinSet<()>);

/// Starts all controllers.
pub(crate) fn start(store: &Arc<Store>, settings: Settings) -> Controllers {
    let mut tasks = JoinSet::new();
    let job = job::Settings { back_off: settings.back_off };
    tasks.spawn(run_jobs(Arc::clone(store), job));
    tasks.spawn(run_daemon_sets(Arc::clone(store)));
    tasks.spawn(pods::run(Arc::clone(store), settings));
    Controllers(tasks)
}

impl Controllers {
    /// Waits until the store has stopped and all that ran has ended, processes included.
    pub(crate) async fn stopped(&mut self) {
        while self.0.join_next().await.is_some() {}
    }
}

async fn run_jobs(store: Arc<Store>, settings: job::Settings) {
    let (mut jobs, mut pods) = (store.subscribe("jobs.batch"), store.subscribe("pods"));
    let mut queue = Queue::default();
    loop {
        while let Some(key) = queue.pop() {
            let outcome = look_at_job(&store, &key, settings);
            queue.plan(key, outcome);
        }
        tokio::select! {
            () = store.stopping.cancelled() => return,
            () = queue.due(&store) => {}
            key = changed(&mut jobs) => queue.add(key),
            event = pods.next() => match owner_of(&event.object, "Job") {
                Some(owner) => queue.add(owner),
                None => let_go(&store, &event.object),
            },
        }
    }
}

fn look_at_job(store: &Arc<Store>, key: &Key, settings: job::Settings) -> Option<Timestamp> {
    let (namespace, name) = key;
    let job = store.get("jobs.batch", namespace, name).ok();
    let uid = job.as_ref().map(|job| text(job, "/metadata/uid").to_owned());
    let pods = pods_of(store, key, "Job");
    let is_ours = |pod: &Pod| uid.as_ref().is_some_and(|uid| pod.metadata.is_controlled_by(uid));
    let (ours, orphans): (Vec<_>, Vec<_>) = pods.into_iter().partition(is_ours);
    let tracked = orphans.iter().filter(|pod| job::is_tracked(pod));
    let released = tracked.map(|pod| release(store, namespace, &pod.metadata.name, &pod.metadata.uid));
    let failed = released.filter(Result::is_err).count() > 0;
    let retry = Some(store.now().saturating_add(RETRY).unwrap_or(Timestamp::MAX));
    let Some(job) = job else { return retry.filter(|_| failed) };
    let actions = job::decide(&job, &ours, store.now(), settings);
    let wake = perform(store, "jobs.batch", "job-controller", &job, actions);
    if failed { retry } else { wake }
}

/// A Pod that outlives its Job is not counted by any controller.
fn let_go(store: &Arc<Store>, pod: &Object) {
    let Some(Pod { metadata, .. }) = view::<Pod>(pod).filter(job::is_tracked) else { return };
    // A conflict means that the Pod has changed again, and comes by again.
    drop(release(store, &metadata.namespace, &metadata.name, &metadata.uid));
}

async fn run_daemon_sets(store: Arc<Store>) {
    let (mut sets, mut pods) = (store.subscribe("daemonsets.apps"), store.subscribe("pods"));
    let mut nodes = store.subscribe("nodes");
    let mut queue = Queue::default();
    loop {
        while let Some(key) = queue.pop() {
            let outcome = look_at_daemon_set(&store, &key);
            queue.plan(key, outcome);
        }
        tokio::select! {
            () = store.stopping.cancelled() => return,
            () = queue.due(&store) => {}
            key = changed(&mut sets) => queue.add(key),
            event = pods.next() => queue.extend(owner_of(&event.object, "DaemonSet")),
            _ = nodes.next() => queue.extend(store.list("daemonsets.apps", None).iter().map(|set| key_of(set))),
        }
    }
}

fn look_at_daemon_set(store: &Arc<Store>, key: &Key) -> Option<Timestamp> {
    let set = store.get("daemonsets.apps", &key.0, &key.1).ok()?;
    let uid = text(&set, "/metadata/uid");
    let mut pods = pods_of(store, key, "DaemonSet");
    pods.retain(|pod| pod.metadata.is_controlled_by(uid));
    let nodes: Vec<_> = store.list("nodes", None).iter().filter_map(|node| view(node)).collect();
    let actions = daemon_set::decide(&set, &nodes, &pods, store.now());
    perform(store, "daemonsets.apps", "daemonset-controller", &set, actions)
}

/// Says when to decide again.
fn perform(
    store: &Arc<Store>,
    resource: &'static str,
    component: &'static str,
    object: &Object,
    actions: Vec<Action>,
) -> Option<Timestamp> {
    let performing = Performing { store, resource, component, object };
    let retry = store.now().saturating_add(RETRY).unwrap_or(Timestamp::MAX);
    performing.all(actions).unwrap_or(Some(retry))
}

/// The Pods whose controller has this kind and name, whichever uid.
fn pods_of(store: &Store, key: &Key, kind: &str) -> Vec<Pod> {
    store.pods_of(key, kind).iter().filter_map(|pod| view(pod)).collect()
}

/// The controller of a Pod, if it is of this kind.
fn owner_of(pod: &Value, kind: &str) -> Option<Key> {
    let owner = controller(pod).filter(|owner| text(owner, "/kind") == kind)?;
    Some((text(pod, "/metadata/namespace").to_owned(), text(owner, "/name").to_owned()))
}

async fn changed(subscription: &mut Subscription) -> Key {
    key_of(&subscription.next().await.object)
}
