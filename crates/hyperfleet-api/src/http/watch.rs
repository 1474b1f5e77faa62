//! The change stream: one JSON line an event, from the present state or from a version on.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::{Api, answer};
use crate::problem::{Code, Problem, Rejection};
use crate::render;
use crate::search::Search;
use crate::service::Address;
use crate::store::{Change, ChangeKind, FeedError, Query};

/// So many resources or changes are read at a time.
const BATCH: i64 = 500;

/// One reader's place in the stream.
struct Reader {
    api: Api,
    query: Query,
    kind: String,
    /// What the reader is known to hold or not to hold, each as of a version.
    known: BTreeMap<String, Known>,
    /// Whether what is not known is not held: the reader has been told the present state.
    complete: bool,
    /// All changes up to here have been told.
    version: i64,
    phase: Phase,
}

/// What is known of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    held: bool,
    version: i64,
}

/// What is told next.
enum Phase {
    /// The present state, from the resources after this id on. It is read in parts, each as of its own version.
    State(String),
    /// What has changed while the state was read, up to this version; then a bookmark.
    CatchUp(i64),
    /// What happens.
    Follow,
    /// Nothing any more.
    Ended,
}

/// What the events of the present state carry: who resumes from there begins with the present state again.
const BEGINNING: i64 = 0;

/// A stream of changes of a kind, after that version or, without one, after the present state.
pub(super) async fn stream(
    api: &Api,
    kind: Option<&str>,
    owner_id: Option<&str>,
    search: Search,
    version: Option<&str>,
) -> Result<Response, Rejection> {
    let Some(kind) = kind else {
        return Err(Problem::validation("watching needs a kind: ask one kind's own path, or give `kind`").into());
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
            let fault = || Problem::validation("resource_version must be one that a change stream has told");
            text.parse().ok().filter(|version| *version >= 0).ok_or_else(fault)?
        }
    };
    let begins = version == BEGINNING;
    let version = if begins {
        store.newest_version().await?
    } else {
        // Whether it can be resumed is said at once, not in the stream.
        store.changes_since(version, kind, 0).await.map_err(gone)?;
        version
    };
    let owner_id = owner_id.map(str::to_owned);
    let reader = Reader {
        api: api.clone(),
        query: Query { owner_id, search, ..Query::of_kind(kind, BATCH) },
        kind: kind.to_owned(),
        known: BTreeMap::new(),
        complete: begins,
        version,
        phase: if begins { Phase::State(String::new()) } else { Phase::Follow },
    };
    let lines = stream::unfold(reader, |mut reader| async move {
        let next = reader.next().await?;
        Some((Ok::<_, std::convert::Infallible>(next), reader))
    });
    let mut response = answer::with_type(StatusCode::OK, "application/x-ndjson", Body::from_stream(lines));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn gone(error: FeedError) -> Rejection {
    match error {
        FeedError::Gone => Problem::new(
            Code::Gone,
            "what came after that resource_version is no longer kept: list again and start anew",
        )
        .into(),
        FeedError::Store(error) => error.into(),
    }
}

// === impl Reader ===

impl Reader {
    /// The next lines; `None` at the end of the stream. The database's absence ends it too: the reader resumes.
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
                    self.tell_state(&after).await?
                }
                Phase::CatchUp(until) if self.version >= *until => {
                    self.phase = Phase::Follow;
                    bookmark(self.version, &self.kind)
                }
                Phase::CatchUp(_) => self.tell_changes().await?,
                Phase::Follow => {
                    let store = self.api.service().store().clone();
                    let beyond = store.wait_beyond(self.version);
                    match tokio::time::timeout(self.api.parts.limits.bookmark, beyond).await {
                        Err(_quiet) => bookmark(self.version, &self.kind),
                        Ok(waited) => {
                            waited?;
                            self.tell_changes().await?
                        }
                    }
                }
            };
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
    }

    /// The next part of the present state.
    async fn tell_state(&mut self, after: &str) -> Result<Bytes, FeedError> {
        let service = self.api.service();
        let (objects, version) = service.store().scan(&self.query, after, BATCH).await?;
        self.phase = match objects.last() {
            Some((last, _)) => Phase::State(last.clone()),
            None => Phase::CatchUp(version),
        };
        let mut lines = Vec::new();
        for (id, object) in objects {
            lines.extend(event(ChangeKind::Added.as_str(), BEGINNING, &object));
            self.known.insert(id, Known { held: true, version });
        }
        Ok(lines.into())
    }

    /// The next changes.
    async fn tell_changes(&mut self) -> Result<Bytes, FeedError> {
        let store = self.api.service().store().clone();
        match store.changes_since(self.version, &self.kind, BATCH).await {
            Ok((feed, version)) => {
                let lines = feed.changes.into_iter().filter_map(|(at, change)| self.tell(at, change)).flatten();
                let lines: Vec<u8> = lines.collect();
                self.version = version;
                Ok(lines.into())
            }
            Err(FeedError::Gone) => {
                // The reader is slower than the past is long. It learns so, and starts anew.
                self.phase = Phase::Ended;
                let problem = json!({ "code": Code::Gone.as_str(), "status": 410, "title": Code::Gone.title() });
                Ok(event("ERROR", self.version, &problem.to_string()))
            }
            Err(failed) => Err(failed),
        }
    }

    /// A change as this reader sees it: what begins to match is added, what ceases to match is deleted. What it has been
    /// told as of a later version is not told again.
    fn tell(&mut self, version: i64, change: Change) -> Option<Bytes> {
        let Change { kind, resource_id, object, .. } = change;
        let known = self.known.get(&resource_id).copied();
        if known.is_some_and(|known| known.version >= version) {
            return None;
        }
        let matches = kind != ChangeKind::Deleted && self.matches(&object);
        let held = known.map(|known| known.held).or_else(|| self.complete.then_some(false));
        let told = match (matches, held) {
            (true, Some(true)) => ChangeKind::Modified,
            (true, Some(false)) => ChangeKind::Added,
            (true, None) => kind,
            (false, Some(false)) => return None,
            (false, _) => ChangeKind::Deleted,
        };
        if kind == ChangeKind::Deleted || (self.complete && !matches) {
            self.known.remove(&resource_id);
        } else {
            self.known.insert(resource_id, Known { held: matches, version });
        }
        Some(event(told.as_str(), version, &object))
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

/// A line about an object that is JSON text already.
fn event(kind: &str, version: i64, object: &str) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{kind}\",\"resource_version\":\"{version}\",\"object\":{object}}}\n"))
}

fn bookmark(version: i64, kind: &str) -> Bytes {
    event("BOOKMARK", version, &json!({ "kind": kind }).to_string())
}
