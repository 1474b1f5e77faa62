//! The work queue of a controller, and the settings that controllers share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::super::settings::PodLine;
use super::super::store::Store;
use super::super::value::text;

/// Behaviour of the controllers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The first delay before a failed Pod is replaced or a crashed container is started again; ten seconds on a real cluster.
    pub(crate) back_off: Duration,
    /// The programs that stand for images; with none, every Pod stays Pending as on a cluster without nodes.
    pub(crate) run_pods: BTreeMap<String, PathBuf>,
    /// The folder of the Pods' files, which is made anew; a temporary one if none.
    pub(crate) pods_dir: Option<PathBuf>,
    /// Receiver of every line that Pods write.
    pub(crate) pod_lines: Option<UnboundedSender<PodLine>>,
}

/// An object by its namespace and name.
pub(crate) type Key = (String, String);

/// Objects to reconcile, now or later.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    now: BTreeSet<Key>,
    later: BTreeMap<Key, Timestamp>,
    /// The same in the order of time: thousands of finished Jobs wait for the end of their time to live.
    by_time: BTreeSet<(Timestamp, Key)>,
}

impl Queue {
    pub(crate) fn add(&mut self, key: Key) {
        self.now.insert(key);
    }

    pub(crate) fn extend(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.now.extend(keys);
    }

    pub(crate) fn pop(&mut self) -> Option<Key> {
        self.now.pop_first()
    }

    /// Looks at an object at an instant, or earlier if something happens; none forgets what was planned.
    pub(crate) fn plan(&mut self, key: Key, at: Option<Timestamp>) {
        let planned = match at {
            Some(at) => self.later.insert(key.clone(), at),
            None => self.later.remove(&key),
        };
        if let Some(before) = planned {
            self.by_time.remove(&(before, key.clone()));
        }
        self.by_time.extend(at.map(|at| (at, key)));
    }

    /// Returns when something planned is due; never if nothing is planned.
    pub(crate) async fn due(&mut self, store: &Store) {
        let Some((next, _)) = self.by_time.first() else { return std::future::pending().await };
        let next = *next;
        store.sleep_until(next).await;
        while self.by_time.first().is_some_and(|(at, _)| *at <= next) {
            let Some((_, key)) = self.by_time.pop_first() else { return };
            self.later.remove(&key);
            self.now.insert(key);
        }
    }
}

/// The key of an object.
pub(crate) fn key_of(object: &Value) -> Key {
    (text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned())
}
