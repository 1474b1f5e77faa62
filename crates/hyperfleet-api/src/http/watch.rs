//! The change stream: one JSON line per event, from the current state or from a version on.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::lines::{self, Lines};
use super::selection::{Selection, TooSlow};
use super::streams::{Full, OpenStream};
use super::{Api, response};
use crate::problem::{Code, Problem, Rejection};
use crate::render::event;
use crate::search::Search;
use crate::service::{Address, Caller};
use crate::store::{Batch, FeedError, Query, Reader, Recorded, StoreError, Version};

/// Maximum of one read; a stream holds one of them if its reader is slow.
const BATCH: Batch = Batch { items: 500, bytes: 128 * 1024 };

/// The same for the current state. Each read computes the sizes of all its items, so it has few more than fit.
const STATE_BATCH: Batch = Batch { items: 100, ..BATCH };

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
    reader: Reader,
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
    let reader = store.reader();
    let version = match given {
        None => store.newest_version().await?,
        Some(version) => {
            // A version that is too old is refused with 410 instead of an event in the stream.
            reader.check(&version).await.map_err(gone)?;
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
        reader,
        version,
        phase: if begins { Phase::State(String::new()) } else { Phase::Follow },
        sent: Instant::now(),
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(watch.send(sender, open));
    let body = lines::body(receiver);
    let mut response = response::with_type(StatusCode::OK, "application/x-ndjson", body);
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
    async fn send(mut self, sender: mpsc::Sender<Lines>, open: OpenStream) {
        let (stop, stall) = (self.api.parts.stop.clone(), self.api.parts.limits.stall);
        let mut grants = self.api.authentication().grants.subscribe();
        let sending = async {
            let room = lines::Room::default();
            while let Ok(Some(room)) = tokio::time::timeout(stall, room.wait()).await {
                let lines = tokio::select! {
                    lines = self.advance() => lines,
                    () = sender.closed() => break,
                };
                // A database error ends the stream too, and the client resumes it.
                let Ok(Some(lines)) = lines else { break };
                if sender.send(room.take(lines)).await.is_err() {
                    break;
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
    async fn advance(&mut self) -> Result<Option<Vec<Bytes>>, FeedError> {
        loop {
            let lines = match &self.phase {
                Phase::Ended => return Ok(None),
                Phase::State(after) => {
                    let after = after.clone();
                    self.read_state(&after).await?
                }
                Phase::CatchUp(until) if self.version.number >= *until => {
                    self.phase = Phase::Follow;
                    self.selection.caught_up();
                    self.bookmark()
                }
                Phase::CatchUp(_) => {
                    if !self.reader.wait_beyond(&self.version).await {
                        return Ok(None);
                    }
                    self.read_changes().await?
                }
                Phase::Follow => {
                    let due = self.bookmark_due();
                    match tokio::time::timeout_at(due, self.reader.wait_beyond(&self.version)).await {
                        Err(_quiet) => self.bookmark(),
                        Ok(true) => self.read_changes().await?,
                        Ok(false) => return Ok(None),
                    }
                }
            };
            let is_due = matches!(self.phase, Phase::Follow) && Instant::now() >= self.bookmark_due();
            // Changes that this client does not get must not put off the bookmark.
            let lines = if lines.is_empty() && is_due { self.bookmark() } else { lines };
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
    async fn read_state(&mut self, after: &str) -> Result<Vec<Bytes>, FeedError> {
        let store = self.api.service().store();
        // A search waits for another permit.
        let _permit = if self.query.search.is_blank() { store.read_permit().await } else { None };
        let reading = tokio::time::timeout(self.api.parts.limits.request, store.scan(&self.query, after, STATE_BATCH));
        let (objects, version) = reading.await.unwrap_or_else(|_elapsed| Err(StoreError::timed_out()))?;
        self.selection.hold(objects.iter().map(|(id, _)| id.as_str()), version.number);
        self.phase = match objects.last() {
            Some((last, _)) => Phase::State(last.clone()),
            None => Phase::CatchUp(version.number),
        };
        Ok(objects.iter().map(|(_, object)| event(ADDED, &BEGINNING, object.as_bytes())).collect())
    }

    /// Reads the next batch of changes.
    async fn read_changes(&mut self) -> Result<Vec<Bytes>, FeedError> {
        match self.reader.read(&self.version, &self.kind, &self.query.reach, BATCH).await {
            Ok((changes, version)) => {
                let lines = self.select(changes).await;
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
    async fn select(&mut self, changes: Vec<Arc<Recorded>>) -> Result<Vec<Bytes>, TooSlow> {
        let limit = self.api.parts.limits.request;
        if changes.is_empty() || !self.selection.evaluates() {
            return self.selection.events(changes, Instant::now() + limit);
        }
        let _permit = self.api.parts.streams.evaluation().await;
        let deadline = Instant::now() + limit;
        let mut selection = std::mem::take(&mut self.selection);
        let evaluated = tokio::task::spawn_blocking(move || {
            let lines = selection.events(changes, deadline);
            (selection, lines)
        });
        let (selection, lines) = evaluated.await.map_err(|_panicked_or_stopping| TooSlow)?;
        self.selection = selection;
        lines
    }

    fn bookmark(&self) -> Vec<Bytes> {
        vec![event("BOOKMARK", &self.version, json!({ "kind": self.kind }).to_string().as_bytes())]
    }

    /// Ends the stream with an error event.
    fn end(&mut self, code: Code) -> Vec<Bytes> {
        self.phase = Phase::Ended;
        let problem = json!({ "code": code.as_str(), "status": code.status().as_u16(), "title": code.title() });
        vec![event("ERROR", &self.version, problem.to_string().as_bytes())]
    }
}

/// The type of the events of the current state.
const ADDED: &str = crate::store::ChangeKind::Added.as_str();
