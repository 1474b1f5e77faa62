//! The client of one API: connections, token, observation times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use crate::error::SetupError;
use crate::observed::ObservedTimes;
use crate::settings::{ReportMethod, Settings};
use crate::transport::Transport;

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
    /// Sets up the client. No request is sent; the token is read at the first call.
    pub fn new(settings: Settings) -> Result<Self, SetupError> {
        let transport = Arc::new(Transport::new(&settings)?);
        let (observed, posts) = (ObservedTimes::default(), AtomicBool::new(false));
        Ok(Self { inner: Arc::new(Inner { settings, transport, observed, posts }) })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn transport(&self) -> &Arc<Transport> {
        &self.inner.transport
    }

    /// Returns the time of an observation that begins now, later than that of every earlier one.
    pub fn observe(&self) -> Timestamp {
        self.inner.observed.next(Timestamp::now())
    }

    /// Returns true if reports are sent by POST, as far as is known.
    pub(crate) fn posts(&self) -> bool {
        match self.inner.settings.report_method {
            ReportMethod::Auto => self.inner.posts.load(Ordering::Relaxed),
            ReportMethod::Put => false,
            ReportMethod::Post => true,
        }
    }

    /// Remembers the method that the API requires.
    pub(crate) fn remember_posts(&self, posts: bool) {
        self.inner.posts.store(posts, Ordering::Relaxed);
    }
}
