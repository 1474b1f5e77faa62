//! Output of containers, kept in memory up to a limit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::UnboundedSender;

use super::super::settings::PodLine;
use super::super::store::Logs;

/// More than this of one container is forgotten, the oldest first.
const KEPT: usize = 1024 * 1024;

/// A termination message made of the log is no longer than this, in lines and bytes.
const TAIL: (usize, usize) = (80, 2048);

/// The output of one run of a container. It has no `Debug`: a program may print its secrets.
#[derive(Default)]
pub(crate) struct Log {
    kept: Mutex<VecDeque<u8>>,
    listener: Option<Listener>,
}

/// Receiver of every complete line.
struct Listener {
    namespace: String,
    pod: String,
    begun: Mutex<Vec<u8>>,
    hears: UnboundedSender<PodLine>,
}

/// The newest log of every Pod's container.
#[derive(Default)]
pub(crate) struct PodLogs {
    logs: Mutex<ByPod>,
    hears: Option<UnboundedSender<PodLine>>,
}

/// By namespace and Pod: the container's name and its log.
type ByPod = BTreeMap<(String, String), (String, Arc<Log>)>;

impl Log {
    pub(crate) fn append(&self, bytes: &[u8]) {
        if let Some(listener) = &self.listener {
            listener.tell(bytes);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
    }

    pub(crate) fn read(&self) -> Vec<u8> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// The end of it, as a termination message.
    pub(crate) fn tail(&self) -> String {
        let all = self.read();
        let text = String::from_utf8_lossy(&all);
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let last: String = lines.into_iter().rev().take(TAIL.0).collect::<Vec<_>>().into_iter().rev().collect();
        let start = (last.len().saturating_sub(TAIL.1)..=last.len()).find(|at| last.is_char_boundary(*at));
        last.get(start.unwrap_or_default()..).unwrap_or_default().to_owned()
    }
}

impl Listener {
    fn tell(&self, bytes: &[u8]) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.extend(bytes);
        while let Some(end) = begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = begun.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            // The receiver is gone; the lines are kept all the same.
            let _unheard = self.hears.send(PodLine { namespace: self.namespace.clone(), pod: self.pod.clone(), line });
        }
        let excess = begun.len().saturating_sub(KEPT);
        begun.drain(..excess);
    }
}

impl PodLogs {
    /// Logs that also forward every line.
    pub(crate) fn forwarding_to(hears: Option<UnboundedSender<PodLine>>) -> Self {
        Self { logs: Mutex::default(), hears }
    }

    /// A new log for a Pod's container, in the place of an older one.
    pub(crate) fn begin(&self, namespace: &str, pod: &str, container: &str) -> Arc<Log> {
        let listener = self.hears.clone().map(|hears| Listener {
            namespace: namespace.to_owned(),
            pod: pod.to_owned(),
            begun: Mutex::default(),
            hears,
        });
        let log = Arc::new(Log { kept: Mutex::default(), listener });
        let entry = (container.to_owned(), Arc::clone(&log));
        self.lock().insert((namespace.to_owned(), pod.to_owned()), entry);
        log
    }

    pub(crate) fn forget(&self, namespace: &str, pod: &str) {
        self.lock().remove(&(namespace.to_owned(), pod.to_owned()));
    }

    fn lock(&self) -> MutexGuard<'_, ByPod> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Logs for PodLogs {
    fn read(&self, namespace: &str, pod: &str, container: Option<&str>) -> Option<Vec<u8>> {
        let logs = self.lock();
        let (name, log) = logs.get(&(namespace.to_owned(), pod.to_owned()))?;
        container.is_none_or(|container| container == name).then(|| log.read())
    }
}
