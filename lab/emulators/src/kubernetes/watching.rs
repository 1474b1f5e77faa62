//! Watches: the current objects, then changes, until the client or the server ends them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http_body_util::channel::{Channel, Sender};
use serde_json::{Value, json};

use super::ask::{Ask, Form};
use super::engine::Engine;
use super::faults::Effect;
use super::resources::Resource;
use super::selectors::Selector;
use super::status::Status;
use super::store::{Change, Object};
use super::value::{copy, set};
use super::{meta, tables, verbs, views};
use crate::connections::Connection;

/// Maximum number of events that wait for a slow reader before the watch waits for it.
const WAITING: usize = 64;

/// So often a watch that has asked for them gets bookmarks.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// Maximum time that sent events get to leave before a scripted cut.
const FLUSH: Duration = Duration::from_millis(20);

/// One watch.
struct Watch {
    engine: Arc<Engine>,
    connection: Connection,
    resource: Arc<Resource>,
    view: Arc<Resource>,
    namespace: String,
    selector: Selector,
    form: Form,
    include: String,
    bookmarks: bool,
    /// Events left to deliver before a scripted end.
    fuse: Option<(usize, End)>,
    /// Up to which revision everything was delivered.
    seen: u64,
    /// True if rows were sent, so that columns need not be sent again.
    headed: bool,
    sender: Sender<Bytes, Infallible>,
}

/// The end of a scripted watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Cut,
    Gone,
}

/// The watch is over.
struct Over;

/// Begins a watch.
pub(crate) fn watch(
    engine: &Arc<Engine>,
    connection: &Connection,
    ask: &Ask,
    selector: Selector,
    effect: Option<&Effect>,
) -> Result<Body, Status> {
    verbs::check_match(ask)?;
    // A revision that is still to come is waited for.
    let from = ask.query.number::<u64>("resourceVersion")?.filter(|revision| *revision > 0);
    let timeout = ask.query.number::<u64>("timeoutSeconds")?.map(Duration::from_secs);
    let announced = ask.query.flag("sendInitialEvents");
    let (sender, body) = Channel::new(WAITING);
    let mut watch = Watch {
        engine: Arc::clone(engine),
        connection: connection.clone(),
        resource: Arc::clone(&ask.resource),
        view: Arc::clone(&ask.view),
        namespace: ask.namespace.clone(),
        selector,
        form: ask.form,
        include: ask.query.get("includeObject").to_owned(),
        bookmarks: ask.query.flag("allowWatchBookmarks"),
        fuse: match effect {
            Some(Effect::CutAfter(events)) => Some((*events, End::Cut)),
            Some(Effect::GoneAfter(events)) => Some((*events, End::Gone)),
            _ => None,
        },
        seen: from.unwrap_or_default(),
        headed: false,
        sender,
    };
    let initial = if from.is_none() || announced { watch.begin() } else { Vec::new() };
    tokio::spawn(async move {
        // Over is over, however it came to that.
        drop(watch.run(initial, announced, timeout).await);
    });
    Ok(Body::new(body))
}

impl Watch {
    /// The current objects.
    fn begin(&mut self) -> Vec<Object> {
        let namespace = Some(self.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let (objects, revision) = self.engine.store.read(|state| {
            let fitting = state.list(&self.resource, namespace).filter(|object| self.selector.matches(object));
            (fitting.cloned().collect(), state.revision())
        });
        self.seen = revision;
        objects
    }

    async fn run(&mut self, initial: Vec<Object>, announced: bool, timeout: Option<Duration>) -> Result<(), Over> {
        let mut revisions = self.engine.store.revisions();
        let stopping = self.engine.store.stopping.clone();
        let connection = self.connection.clone();
        self.burn().await?;
        for object in initial {
            self.deliver("ADDED", &object).await?;
        }
        if announced && self.bookmarks {
            self.bookmark(true).await?;
        }
        let end = tokio::time::sleep(timeout.unwrap_or(Duration::from_secs(u32::MAX.into())));
        tokio::pin!(end);
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + BOOKMARKS, BOOKMARKS);
        loop {
            revisions.mark_unchanged();
            self.catch_up().await?;
            tokio::select! {
                changed = revisions.changed() => changed.map_err(|_| Over)?,
                _ = ticks.tick(), if self.bookmarks => self.bookmark(false).await?,
                () = &mut end => {
                    if self.bookmarks {
                        self.bookmark(false).await?;
                    }
                    return Ok(());
                }
                () = stopping.cancelled() => return Ok(()),
                () = connection.ended() => return Ok(()),
            }
        }
    }

    /// Delivers what has happened since.
    async fn catch_up(&mut self) -> Result<(), Over> {
        let found = self.engine.store.read(|state| {
            let changes = state.since(self.seen)?;
            let ours = changes.filter(|change| change.storage == self.resource.storage).cloned();
            Some((ours.collect::<Vec<_>>(), state.revision()))
        });
        let Some((changes, revision)) = found else {
            let forgotten = self.engine.store.read(super::store::State::forgotten);
            return self.gone(forgotten).await;
        };
        for change in changes {
            match (self.seen_as(&change), &change.before) {
                (Some("DELETED"), Some(before)) if !change.deleted => {
                    // As it was when it was last selected, at the revision of the change.
                    let mut last = (**before).clone();
                    copy(&change.object, &mut last, &["metadata", "resourceVersion"]);
                    self.deliver("DELETED", &Arc::new(last)).await?;
                }
                (Some(kind), _) => self.deliver(kind, &change.object).await?,
                (None, _) => {}
            }
        }
        self.seen = revision.max(self.seen);
        Ok(())
    }

    /// A change as seen through the selector; none if it is not visible.
    fn seen_as(&self, change: &Change) -> Option<&'static str> {
        let fits = |object: &Object| {
            (self.namespace.is_empty() || meta::namespace(object) == self.namespace) && self.selector.matches(object)
        };
        let before = change.before.as_ref().is_some_and(fits);
        let after = !change.deleted && fits(&change.object);
        match (before, after) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }

    async fn deliver(&mut self, kind: &str, object: &Object) -> Result<(), Over> {
        let shown = match self.form {
            Form::Whole => views::present(&self.view, object),
            Form::Metadata => views::metadata_only(object),
            Form::Table => {
                let rows = [Arc::clone(object)];
                let mut table = tables::table(&self.view, &rows, &self.include, self.engine.store.now());
                if self.headed {
                    set(&mut table, &["columnDefinitions"], Value::Null);
                }
                self.headed = true;
                table
            }
        };
        self.send(&json!({"type": kind, "object": shown})).await?;
        if let Some((left, _)) = &mut self.fuse {
            *left = left.saturating_sub(1);
        }
        self.burn().await
    }

    /// Ends the watch if its scripted end has come.
    async fn burn(&mut self) -> Result<(), Over> {
        match self.fuse {
            Some((0, End::Cut)) => {
                tokio::time::sleep(FLUSH).await;
                self.connection.cut();
                Err(Over)
            }
            Some((0, End::Gone)) => self.gone(self.seen + 1).await,
            _ => Ok(()),
        }
    }

    async fn gone(&mut self, oldest: u64) -> Result<(), Over> {
        let status = Status::expired(format!("too old resource version: {} ({oldest})", self.seen));
        self.send(&json!({"type": "ERROR", "object": status.json()})).await?;
        Err(Over)
    }

    async fn bookmark(&mut self, first: bool) -> Result<(), Over> {
        let mut object = json!({
            "kind": self.view.kind, "apiVersion": self.view.api_version(),
            "metadata": {"resourceVersion": self.seen.to_string(), "creationTimestamp": null},
        });
        if first {
            set(&mut object, &["metadata", "annotations", "k8s.io/initial-events-end"], "true");
        }
        if self.form == Form::Metadata {
            object = views::metadata_only(&object);
        }
        self.send(&json!({"type": "BOOKMARK", "object": object})).await
    }

    async fn send(&mut self, event: &Value) -> Result<(), Over> {
        let line = Bytes::from(format!("{event}\n"));
        self.sender.send_data(line).await.map_err(|_| Over)
    }
}
