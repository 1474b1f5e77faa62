//! Watches: every change, by the API's change stream or, if it has none, by polling.

mod event;
mod health;
mod lines;
mod source;
mod view;
mod watcher;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::stream::{BoxStream, Stream, StreamExt as _, unfold};
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

pub use event::{WatchEvent, WatchKind};
pub use health::Health;

use crate::client::Client;
use source::Api;
use watcher::Watcher;

/// The watched resources, and the version to start from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchQuery {
    /// In the API's search language; all resources of the kind if `None`.
    pub search: Option<String>,
    /// True if every resource is to have `status.adapters`, also where the API has no such view. Then the reports of resources that
    /// have changed or are not reconciled are read one by one.
    pub reads_reports: bool,
    /// Version of the last event that was handled; `None` begins with the current state.
    pub from_version: Option<String>,
}

/// Events about the resources of a kind; a [`Stream`] that ends only at shutdown.
///
/// The current state comes first, as one `Added` per resource, and ends with a `Bookmark`; the changes follow. After
/// `Restarted` the current state comes again: resources that are not `Added` until the next `Bookmark` no longer exist. A
/// watch from a version begins with the changes since.
///
/// Without a change stream the same events are found by polling. They then have no version, and the object of a
/// `Deleted` has only its identity.
pub struct Watch {
    events: BoxStream<'static, WatchEvent>,
    health: Receiver<Health>,
}

// === impl Client ===

impl Client {
    /// Watches the resources of a kind until `stop`; see [`Watch`].
    pub fn watch(&self, plural: impl Into<String>, query: WatchQuery, stop: CancellationToken) -> Watch {
        let settings = self.settings().watch;
        let source = Api::new(self.clone(), plural.into(), query.search, query.reads_reports, stop.clone());
        let (watcher, health) = Watcher::new(source, settings, query.from_version);
        let events = unfold((watcher, stop), async |(mut watcher, stop)| {
            let event = stop.run_until_cancelled(watcher.next()).await?;
            Some((event, (watcher, stop)))
        });
        Watch { events: events.boxed(), health }
    }
}

// === impl Watch ===

impl Watch {
    /// Returns the health, for readiness and metrics; it changes only while events are awaited.
    pub fn health(&self) -> Receiver<Health> {
        self.health.clone()
    }

    /// Returns the next event; `None` at shutdown. Cancel-safe.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        self.events.next().await
    }
}

impl Stream for Watch {
    type Item = WatchEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<WatchEvent>> {
        self.events.poll_next_unpin(context)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("health", &*self.health.borrow()).finish_non_exhaustive()
    }
}
