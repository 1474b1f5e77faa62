//! The change stream: one JSON line per event, from the current state or from a version on.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::{Api, response};
use crate::problem::{Code, Problem, Rejection};
use crate::render;
use crate::search::Search;
use crate::service::Address;
use crate::store::{Change, ChangeKind, FeedError, Query};

/// Maximum number of resources or changes per read.
const BATCH: i64 = 500;

/// The state of one open change stream.
struct Watch {
    api: Api,
    query: Query,
    kind: String,
    /// The resources of which the client has, or has not, a copy, by id.
    known: BTreeMap<String, Known>,
    /// True if the client has no copy of a resource that is not in `known`: the stream began with the current state.
    complete: bool,
    /// The version up to which all changes are sent.
    version: i64,
    phase: Phase,
}

/// The knowledge about the client's copy of one resource, as of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    is_held: bool,
    version: i64,
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
const BEGINNING: i64 = 0;

/// Opens a stream of the changes of a kind: after `version`, or without one after the current state.
pub(super) async fn stream(
    api: &Api,
    kind: Option<&str>,
    owner_id: Option<&str>,
    search: Search,
    version: Option<&str>,
) -> Result<Response, Rejection> {
    let Some(kind) = kind else {
        return Err(Problem::validation("watching needs a kind: use the path of one kind, or set `kind`").into());
    };
    if let Some(id) = owner_id {
        let parent = api.service().registry().kind(kind).and_then(|child| child.parent_kind.as_deref());
        let descriptor = parent.and_then(|parent| api.service().registry().kind(parent));
        api.service().get(&Address { descriptor, owner_id: None, id }).await?;
    }
    let store = api.service().store();
    let version = match version {
        None => BEGINNING,
        Some(text) => {
            let fault = || Problem::validation("resource_version must be one that a change stream has returned");
            text.parse().ok().filter(|version| *version >= 0).ok_or_else(fault)?
        }
    };
    let begins = version == BEGINNING;
    let version = if begins {
        store.newest_version().await?
    } else {
        // A version that is too old is refused with 410 instead of an event in the stream.
        store.changes_since(version, kind, 0).await.map_err(gone)?;
        version
    };
    let owner_id = owner_id.map(str::to_owned);
    let watch = Watch {
        api: api.clone(),
        query: Query { owner_id, search, ..Query::of_kind(kind, BATCH) },
        kind: kind.to_owned(),
        known: BTreeMap::new(),
        complete: begins,
        version,
        phase: if begins { Phase::State(String::new()) } else { Phase::Follow },
    };
    let lines = stream::unfold(watch, |mut watch| async move {
        let next = watch.next().await?;
        Some((Ok::<_, std::convert::Infallible>(next), watch))
    });
    let mut response = response::with_type(StatusCode::OK, "application/x-ndjson", Body::from_stream(lines));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn gone(error: FeedError) -> Rejection {
    match error {
        FeedError::Gone => Problem::new(
            Code::Gone,
            "the changes after that resource_version are no longer kept: watch again without resource_version",
        )
        .into(),
        FeedError::Store(error) => error.into(),
    }
}

// === impl Watch ===

impl Watch {
    /// The next lines; `None` at the end of the stream. A database error ends the stream too, and the client resumes it.
    async fn next(&mut self) -> Option<Bytes> {
        let stop = self.api.parts.stop.clone();
        tokio::select! {
            () = stop.cancelled() => None,
            lines = self.advance() => lines.ok().flatten(),
        }
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, FeedError> {
        loop {
            let lines = match &self.phase {
                Phase::Ended => return Ok(None),
                Phase::State(after) => {
                    let after = after.clone();
                    self.read_state(&after).await?
                }
                Phase::CatchUp(until) if self.version >= *until => {
                    self.phase = Phase::Follow;
                    bookmark(self.version, &self.kind)
                }
                Phase::CatchUp(_) => self.read_changes().await?,
                Phase::Follow => {
                    let store = self.api.service().store().clone();
                    let beyond = store.wait_beyond(self.version);
                    match tokio::time::timeout(self.api.parts.limits.bookmark, beyond).await {
                        Err(_quiet) => bookmark(self.version, &self.kind),
                        Ok(waited) => {
                            waited?;
                            self.read_changes().await?
                        }
                    }
                }
            };
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
    }

    /// Reads the next batch of the current state.
    async fn read_state(&mut self, after: &str) -> Result<Bytes, FeedError> {
        let service = self.api.service();
        let (objects, version) = service.store().scan(&self.query, after, BATCH).await?;
        self.phase = match objects.last() {
            Some((last, _)) => Phase::State(last.clone()),
            None => Phase::CatchUp(version),
        };
        let mut lines = Vec::new();
        for (id, object) in objects {
            lines.extend(event(ChangeKind::Added.as_str(), BEGINNING, &object));
            self.known.insert(id, Known { is_held: true, version });
        }
        Ok(lines.into())
    }

    /// Reads the next batch of changes.
    async fn read_changes(&mut self) -> Result<Bytes, FeedError> {
        let store = self.api.service().store().clone();
        match store.changes_since(self.version, &self.kind, BATCH).await {
            Ok((feed, version)) => {
                let lines = feed.changes.into_iter().filter_map(|(at, change)| self.event_of(at, change)).flatten();
                let lines: Vec<u8> = lines.collect();
                self.version = version;
                Ok(lines.into())
            }
            Err(FeedError::Gone) => {
                // The client is too slow for the retained history and has to start again.
                self.phase = Phase::Ended;
                let problem = json!({ "code": Code::Gone.as_str(), "status": 410, "title": Code::Gone.title() });
                Ok(event("ERROR", self.version, &problem.to_string()))
            }
            Err(failed) => Err(failed),
        }
    }

    /// The event of a change for this client: a resource that begins to match is added, one that ceases to match is deleted.
    /// `None` if the client has a later version or is not affected.
    fn event_of(&mut self, version: i64, change: Change) -> Option<Bytes> {
        let Change { kind, resource_id, object, .. } = change;
        let known = self.known.get(&resource_id).copied();
        if known.is_some_and(|known| known.version >= version) {
            return None;
        }
        let matches = kind != ChangeKind::Deleted && self.matches(&object);
        let held = known.map(|known| known.is_held).or_else(|| self.complete.then_some(false));
        let event_kind = match (matches, held) {
            (true, Some(true)) => ChangeKind::Modified,
            (true, Some(false)) => ChangeKind::Added,
            (true, None) => kind,
            (false, Some(false)) => return None,
            (false, _) => ChangeKind::Deleted,
        };
        if kind == ChangeKind::Deleted || (self.complete && !matches) {
            self.known.remove(&resource_id);
        } else {
            self.known.insert(resource_id, Known { is_held: matches, version });
        }
        Some(event(event_kind.as_str(), version, &object))
    }

    fn matches(&self, object: &str) -> bool {
        if self.query.owner_id.is_none() && self.query.search.is_blank() {
            return true;
        }
        let Ok(object) = serde_json::from_str::<Value>(object) else { return false };
        let owned = self.query.owner_id.as_deref().is_none_or(|owner| {
            object.get("owner_references").and_then(|owner| owner.get("id")).and_then(Value::as_str) == Some(owner)
        });
        owned && render::parse(&object).is_some_and(|resource| self.query.search.matches(&resource))
    }
}

/// An event line with a serialised object.
fn event(kind: &str, version: i64, object: &str) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{kind}\",\"resource_version\":\"{version}\",\"object\":{object}}}\n"))
}

fn bookmark(version: i64, kind: &str) -> Bytes {
    event("BOOKMARK", version, &json!({ "kind": kind }).to_string())
}
