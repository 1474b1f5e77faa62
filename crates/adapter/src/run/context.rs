//! The parts of the adapter that all reconcile passes share.

use std::sync::Mutex;

use hyperfleet_client::Client;
use kubernetes::{Cluster, JobCache};

use crate::config::Checked;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::run::failures::Failures;
use crate::store_check::findings::Findings;

/// Clients, configuration and counters that all reconcile passes share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Checked,
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) job_cache: JobCache,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Mutex<Limits>,
    pub(crate) failures: Mutex<Failures>,
    pub(crate) findings: Mutex<Findings>,
}
