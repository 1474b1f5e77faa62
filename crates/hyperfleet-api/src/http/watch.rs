//! The change stream: one JSON line per event, from the current state or from a version on.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::selection::{Selection, TooSlow, event};
use super::streams::{Full, OpenStream};
use super::{Api, response};
use crate::problem::{Code, Problem, Rejection};
use crate::search::Search;
use crate::service::{Address, Caller};
use crate::store::{Batch, Change, FeedError, Query, Version};

/// Maximum of one read; a stream holds two of them if its reader is slow.
const BATCH: Batch = Batch { items: 500, bytes: 256 * 1024 };

/// The parameters of a change stream.
pub(super) struct Following<'a> {
    pub(super) kind: Option<&'a str>,
    pub(super) owner_id: Option<&'a str>,
    pub(super) search: Search,
    /// The version to resume after; `None` begins with the current state.
    pub(super) version: Option<&'a str>,
}

/// The state of one open change stream.
struct Watch {
    api: Api,
    query: Query,
    kind: String,
    selection: Selection,
    /// The version up to which all changes are sent.
    version: Version,
    phase: Phase,
    /// The time of the last lines.
    sent: Instant,
}

/// The next kind of lines to send.
enum Phase {
    /// The current state, from the resources after this id on. It is read in batches, each as of its own version.
    State(String),
    /// The changes up to this version, which happened while the state was read; then a bookmark.
    CatchUp(i64),
    /// Changes as they happen.
    Follow,
    /// Nothing: the stream has ended.
    Ended,
}

/// The version of the events of the current state. A client that resumes from it gets the current state again.
const BEGINNING: &str = "0";

/// Opens a stream of the changes of a kind: after `version`, or without one after the current state.
pub(super) async fn stream(api: &Api, caller: &Caller, following: Following<'_>) -> Result<Response, Rejection> {
    let Following { kind, owner_id, search, version } = following;
    let Some(kind) = kind else {
        return Err(Problem::validation("watching needs a kind: use the path of one kind, or set `kind`").into());
    };
    if let Some(id) = owner_id {
        let parent = api.service().registry().kind(kind).and_then(|child| child.parent_kind.as_deref());
        let descriptor = parent.and_then(|parent| api.service().registry().kind(parent));
        api.service().get(&Address { descriptor, owner_id: None, id }, &caller.reach).await?;
    }
    let store = api.service().store();
    let fault = || Problem::validation("resource_version must be one that a change stream has returned");
    let given = version.filter(|version| *version != BEGINNING);
    let given = given.map(|text| Version::parse(text).ok_or_else(fault)).transpose()?;
    let open = api.parts.streams.open(&caller.identity, &caller.tenancy).map_err(full)?;
    let begins = given.is_none();
    let version = match given {
        None => store.newest_version().await?,
        Some(version) => {
            // A version that is too old is refused with 410 instead of an event in the stream.
            let nothing = Batch { items: 0, bytes: 0 };
            store.changes_since(&version, kind, &caller.reach, nothing).await.map_err(gone)?;
            version
        }
    };
    let owner_id = owner_id.map(str::to_owned);
    let watch = Watch {
        api: api.clone(),
        query: Query {
            owner_id: owner_id.clone(),
            search: search.clone(),
            ..Query::of_kind(kind, &caller.reach, BATCH.items)
        },
        kind: kind.to_owned(),
        selection: Selection::new(owner_id, search, begins),
        version,
        phase: if begins { Phase::State(String::new()) } else { Phase::Follow },
        sent: Instant::now(),
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(watch.send(sender, open));
    let lines = stream::unfold(receiver, |mut receiver| async move {
        let lines = receiver.recv().await?;
        Some((Ok::<Bytes, Infallible>(lines), receiver))
    });
    let mut response = response::with_type(StatusCode::OK, "application/x-ndjson", Body::from_stream(lines));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn full(bound: Full) -> Problem {
    Problem::new(
        Code::Unavailable,
        match bound {
            Full::Total => "too many change streams are open on this server (changes.max_streams): try again",
            Full::Identity => {
                "the caller has too many change streams open (changes.max_streams_per_identity): close one and try again"
            }
        },
    )
}

fn gone(error: FeedError) -> Rejection {
    match error {
        FeedError::Gone => Problem::new(
            Code::Gone,
            "the changes after that resource_version are not kept, or it was given before the database was restored: watch again \
             without resource_version",
        )
        .into(),
        FeedError::Store(error) => error.into(),
    }
}

// === impl Watch ===

impl Watch {
    /// Sends lines until the stream ends, the client is gone, or the client takes too long to read. The next lines are read
    /// when the client has taken the previous ones.
    async fn send(mut self, sender: mpsc::Sender<Bytes>, open: OpenStream) {
        let (stop, stall) = (self.api.parts.stop.clone(), self.api.parts.limits.stall);
        let mut grants = self.api.authentication().grants.subscribe();
        let sending = async {
            while let Ok(Ok(permit)) = tokio::time::timeout(stall, sender.reserve()).await {
                tokio::select! {
                    // A database error ends the stream too, and the client resumes it.
                    lines = self.advance() => match lines {
                        Ok(Some(lines)) => permit.send(lines),
                        Ok(None) | Err(_) => break,
                    },
                    () = sender.closed() => break,
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            // The client resumes the stream, if it still may.
            _replaced = grants.changed() => {}
            () = sending => {}
        }
        drop(open);
    }

    /// Returns the next lines; `None` at the end of the stream.
    async fn advance(&mut self) -> Result<Option<Bytes>, FeedError> {
        loop {
            let lines = match &self.phase {
                Phase::Ended => return Ok(None),
                Phase::State(after) => {
                    let after = after.clone();
                    self.read_state(&after).await?
                }
                Phase::CatchUp(until) if self.version.number >= *until => {
                    self.phase = Phase::Follow;
                    bookmark(&self.version, &self.kind)
                }
                Phase::CatchUp(_) => self.read_changes().await?,
                Phase::Follow => {
                    let store = self.api.service().store().clone();
                    let beyond = store.wait_beyond(&self.version);
                    match tokio::time::timeout_at(self.bookmark_due(), beyond).await {
                        Err(_quiet) => bookmark(&self.version, &self.kind),
                        Ok(waited) => {
                            waited?;
                            self.read_changes().await?
                        }
                    }
                }
            };
            let is_due = matches!(self.phase, Phase::Follow) && Instant::now() >= self.bookmark_due();
            // Changes that this client does not get must not put off the bookmark.
            let lines = if lines.is_empty() && is_due { bookmark(&self.version, &self.kind) } else { lines };
            if !lines.is_empty() {
                self.sent = Instant::now();
                return Ok(Some(lines));
            }
        }
    }

    fn bookmark_due(&self) -> Instant {
        self.sent + self.api.parts.limits.bookmark
    }

    /// Reads the next batch of the current state.
    async fn read_state(&mut self, after: &str) -> Result<Bytes, FeedError> {
        let service = self.api.service();
        let (objects, version) = service.store().scan(&self.query, after, BATCH).await?;
        self.phase = match objects.last() {
            Some((last, _)) => Phase::State(last.clone()),
            None => Phase::CatchUp(version.number),
        };
        let mut lines = Vec::new();
        for (id, object) in objects {
            lines.extend(event(ADDED, BEGINNING, &object));
            self.selection.hold(id, version.number);
        }
        Ok(lines.into())
    }

    /// Reads the next batch of changes.
    async fn read_changes(&mut self) -> Result<Bytes, FeedError> {
        let store = self.api.service().store().clone();
        match store.changes_since(&self.version, &self.kind, &self.query.reach, BATCH).await {
            Ok((feed, version)) => {
                let lines = self.select(feed.changes).await;
                self.version = version;
                // Resuming would take as long, so the client gets the cause.
                Ok(lines.unwrap_or_else(|TooSlow| self.end(Code::Timeout)))
            }
            // The client is too slow for the retained history and has to start again.
            Err(FeedError::Gone) => Ok(self.end(Code::Gone)),
            Err(failed) => Err(failed),
        }
    }

    /// Returns the lines for changes. A search is evaluated on a thread of its own, within the time of a request.
    async fn select(&mut self, changes: Vec<(i64, Change)>) -> Result<Bytes, TooSlow> {
        let deadline = Instant::now() + self.api.parts.limits.request;
        if !self.selection.evaluates() {
            return self.selection.events(&self.version, changes, deadline);
        }
        let epoch = self.version.clone();
        let mut selection = std::mem::take(&mut self.selection);
        let evaluated = tokio::task::spawn_blocking(move || {
            let lines = selection.events(&epoch, changes, deadline);
            (selection, lines)
        });
        let (selection, lines) = evaluated.await.map_err(|_panicked_or_stopping| TooSlow)?;
        self.selection = selection;
        lines
    }

    /// Ends the stream with an error event.
    fn end(&mut self, code: Code) -> Bytes {
        self.phase = Phase::Ended;
        let problem = json!({ "code": code.as_str(), "status": code.status().as_u16(), "title": code.title() });
        event("ERROR", &self.version.to_string(), &problem.to_string())
    }
}

/// The type of the events of the current state.
const ADDED: &str = crate::store::ChangeKind::Added.as_str();

fn bookmark(version: &Version, kind: &str) -> Bytes {
    event("BOOKMARK", &version.to_string(), &json!({ "kind": kind }).to_string())
}
