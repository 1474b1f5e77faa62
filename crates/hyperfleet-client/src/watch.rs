//! Watches: every change, by the API's change stream or, where it has none, by polling.

mod event;
mod lines;
mod source;
mod view;
mod watcher;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{BoxStream, Stream, StreamExt as _, unfold};
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

pub use event::{WatchEvent, WatchKind};

use crate::client::Client;
use crate::error::Error;
use source::Api;
use watcher::Watcher;

/// The watched resources, and the version to start from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchQuery {
    /// In the API's search language; all resources of the kind if `None`.
    pub search: Option<String>,
    /// The version of the last event that was dealt with; `None` begins with the present state.
    pub from_version: Option<String>,
}

/// The health of the watch.
#[derive(Clone, Debug, Default)]
pub enum Health {
    /// Nothing was heard yet.
    #[default]
    Connecting,
    /// Changes come through the API's change stream.
    Streaming,
    /// The API has no change stream; changes are found by comparing lists.
    Polling,
    /// Changes do not come at present; what was last tried failed like this. It is tried again.
    Failing(Arc<Error>),
}

/// Events about the resources of a kind; a [`Stream`] that ends only at shutdown.
///
/// The present state comes first, as one `Added` a resource, and a `Bookmark` says that this was all. Then come the
/// changes. `Restarted` says that the thread was lost and the present state comes anew: what is not `Added` until the
/// next `Bookmark` is gone. A watch from a version begins with the changes since.
///
/// Without a change stream the same events are found by polling. They then carry no version, and the object of a
/// `Deleted` only says which it was.
pub struct Watch {
    events: BoxStream<'static, WatchEvent>,
    health: Receiver<Health>,
}

/// Begins to watch.
pub(crate) fn begin(client: Client, plural: String, query: WatchQuery, stop: CancellationToken) -> Watch {
    let settings = client.settings().watch;
    let source = Api::new(client, plural, query.search, stop.clone());
    let (watcher, health) = Watcher::new(source, settings, query.from_version);
    let events = unfold((watcher, stop), async |(mut watcher, stop)| {
        let event = stop.run_until_cancelled(watcher.next()).await?;
        Some((event, (watcher, stop)))
    });
    Watch { events: events.boxed(), health }
}

// === impl Watch ===

impl Watch {
    /// Its health, for readiness and metrics; it changes only while events are awaited.
    pub fn health(&self) -> Receiver<Health> {
        self.health.clone()
    }

    /// The next event; `None` at shutdown. Cancel-safe: nothing is lost if this is dropped before it is done.
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
