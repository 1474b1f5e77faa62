//! The parts of the adapter that all reconcile passes share.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Mutex;

use hyperfleet_client::Client;
use kubernetes::{Cluster, JobCache};

use crate::config::Plan as Config;
use crate::limits::Limits;
use crate::metrics::Metrics;

/// Maximum number of Jobs whose ends are remembered as counted; finished Jobs are deleted after a while.
const MAX_COUNTED: usize = 100_000;

/// Clients, configuration and counters that all reconcile passes share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) job_cache: JobCache,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Mutex<Limits>,
    pub(crate) counted: Mutex<Counted>,
}

/// The uids of the Jobs whose ends were counted recently.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    known: BTreeSet<String>,
    order: VecDeque<String>,
}

impl Counted {
    /// Records a Job; returns true if it was not recorded before.
    pub(crate) fn insert(&mut self, uid: &str) -> bool {
        let is_first = self.known.insert(uid.to_owned());
        if is_first {
            self.order.push_back(uid.to_owned());
        }
        if self.order.len() > MAX_COUNTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        is_first
    }
}
