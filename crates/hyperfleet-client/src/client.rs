//! The client: what lasts from call to call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use daemon::retry::Budget;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::error::SetupError;
use crate::observed::ObservedTimes;
use crate::settings::{ReportMethod, Settings};
use crate::transport::Transport;
use crate::watch::{self, Watch, WatchQuery};

/// A client of one HyperFleet API; clones share connections, token and times.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    transport: Arc<Transport>,
    observed: ObservedTimes,
    /// True once the API required POST where the method is `Auto`.
    posts: AtomicBool,
}

// === impl Client ===

impl Client {
    /// Sets the client up; nothing is sent yet, and the token is first read with the first call.
    pub fn new(settings: Settings) -> Result<Self, SetupError> {
        let transport = Arc::new(Transport::new(&settings)?);
        let (observed, posts) = (ObservedTimes::default(), AtomicBool::new(false));
        Ok(Self { inner: Arc::new(Inner { settings, transport, observed, posts }) })
    }

    /// Calls that are carried out within this budget.
    pub fn within<'a>(&'a self, budget: &'a Budget) -> Calls<'a> {
        Calls::new(self, budget)
    }

    /// Tells of every change of the resources of a kind, until `stop`; see [`Watch`].
    pub fn watch(&self, plural: impl Into<String>, query: WatchQuery, stop: CancellationToken) -> Watch {
        watch::begin(self.clone(), plural.into(), query, stop)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn transport(&self) -> &Arc<Transport> {
        &self.inner.transport
    }

    /// Begins an observation: the time that the report about it is to carry, later than that of every one before.
    pub fn observe(&self) -> Timestamp {
        self.inner.observed.next(Timestamp::now())
    }

    /// True if reports are sent by POST, as far as is known.
    pub(crate) fn posts(&self) -> bool {
        match self.inner.settings.report_method {
            ReportMethod::Auto => self.inner.posts.load(Ordering::Relaxed),
            ReportMethod::Put => false,
            ReportMethod::Post => true,
        }
    }

    /// Remembers which method the API wants.
    pub(crate) fn remember_posts(&self, posts: bool) {
        self.inner.posts.store(posts, Ordering::Relaxed);
    }
}
