//! The change stream: one JSON line an event, from the present state or from a version on.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::{Api, answer};
use crate::problem::{Code, Problem};
use crate::render;
use crate::search::{Order, Search};
use crate::service::{Address, Failure};
use crate::store::{Change, ChangeKind, FeedError, Query};

/// So many resources or changes are read at a time.
const BATCH: i64 = 500;

/// One reader's place in the stream.
struct Reader {
    api: Api,
    kind: String,
    owner_id: Option<String>,
    search: Search,
    /// Which resources the reader holds, as far as that is known: `None` where it has resumed and may hold any.
    held: BTreeMap<String, bool>,
    complete: bool,
    version: i64,
    /// The present state, as far as it is not told yet.
    ahead: Vec<Bytes>,
    ended: bool,
}

/// A stream of changes of a kind, after that version or, without one, after the present state.
pub(super) async fn stream(
    api: &Api,
    kind: Option<&str>,
    owner_id: Option<&str>,
    search: Search,
    version: Option<&str>,
) -> Result<Response, Failure> {
    let Some(kind) = kind else {
        return Err(Problem::validation("watching needs a kind: ask one kind's own path, or give `kind`").into());
    };
    if let Some(id) = owner_id {
        let parent = api.service().registry().kind(kind).and_then(|child| child.parent_kind.as_deref());
        let descriptor = parent.and_then(|parent| api.service().registry().kind(parent));
        api.service().get(&Address { descriptor, owner_id: None, id }).await?;
    }
    let mut reader = Reader {
        api: api.clone(),
        kind: kind.to_owned(),
        owner_id: owner_id.map(str::to_owned),
        search,
        held: BTreeMap::new(),
        complete: version.is_none(),
        version: 0,
        ahead: Vec::new(),
        ended: false,
    };
    match version {
        Some(version) => {
            let parsed = version.parse().ok().filter(|version| *version >= 0);
            let fault = || Problem::validation("resource_version must be one that a change stream has told");
            reader.version = parsed.ok_or_else(fault)?;
            // Whether it can be resumed is said at once, not in the stream.
            api.service().store().changes_since(reader.version, kind, 0).await.map_err(gone)?;
        }
        None => reader.begin().await?,
    }
    let lines = stream::unfold(reader, |mut reader| async move {
        let next = reader.next().await?;
        Some((Ok::<_, std::convert::Infallible>(next), reader))
    });
    let mut response = answer::with_type(StatusCode::OK, "application/x-ndjson", Body::from_stream(lines));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn gone(error: FeedError) -> Failure {
    match error {
        FeedError::Gone => Problem::new(
            Code::Gone,
            "what came after that resource_version is no longer kept: list again and start anew",
        )
        .into(),
        FeedError::Store(error) => Failure::Store(error),
    }
}

// === impl Reader ===

impl Reader {
    /// Reads the present state, as of one version.
    async fn begin(&mut self) -> Result<(), Failure> {
        let query = Query {
            kind: Some(self.kind.clone()),
            owner_id: self.owner_id.clone(),
            reference: None,
            search: self.search.clone(),
            order: Order::default(),
            offset: 0,
            limit: i64::from(i32::MAX),
        };
        let (page, version) = self.api.service().store().list_with_version(&query).await?;
        self.version = version;
        for resource in &page.items {
            self.held.insert(resource.id.clone(), true);
        }
        let registry = self.api.service().registry();
        let events = page.items.iter().map(|resource| {
            event(ChangeKind::Added.as_str(), version, &Value::Object(render::resource(resource, registry)))
        });
        self.ahead = events.collect();
        self.ahead.push(bookmark(version, &self.kind));
        self.ahead.reverse();
        Ok(())
    }

    /// The next lines; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if let Some(line) = self.ahead.pop() {
            return Some(line);
        }
        let service = self.api.service().clone();
        let stop = self.api.parts.stop.clone();
        loop {
            let beyond = service.store().wait_beyond(self.version);
            let waited = tokio::select! {
                () = stop.cancelled() => return None,
                waited = tokio::time::timeout(self.api.parts.limits.bookmark, beyond) => waited,
            };
            if waited.is_err() {
                return Some(bookmark(self.version, &self.kind));
            }
            match service.store().changes_since(self.version, &self.kind, BATCH).await {
                Ok((feed, version)) => {
                    let lines: Vec<u8> =
                        feed.changes.into_iter().filter_map(|(at, change)| self.tell(at, change)).flatten().collect();
                    self.version = version;
                    if !lines.is_empty() {
                        return Some(Bytes::from(lines));
                    }
                }
                Err(FeedError::Gone) => {
                    // The reader is slower than the past is long. It learns so, and starts anew.
                    self.ended = true;
                    let problem = json!({ "code": Code::Gone.as_str(), "status": 410, "title": Code::Gone.title() });
                    return Some(event("ERROR", self.version, &problem));
                }
                // The database is away: the reader resumes from its last version.
                Err(FeedError::Store(_)) => return None,
            }
        }
    }

    /// A change as this reader sees it: what begins to match is added, what ceases to match is deleted.
    fn tell(&mut self, version: i64, change: Change) -> Option<Bytes> {
        let Change { kind, resource_id, object, .. } = change;
        let held = self.held.get(&resource_id).copied();
        let matches = kind != ChangeKind::Deleted && self.matches(&object);
        let told = match (matches, held) {
            (true, Some(true)) => ChangeKind::Modified,
            (true, None) if !self.complete => kind,
            (true, _) => ChangeKind::Added,
            (false, Some(true)) => ChangeKind::Deleted,
            (false, None) if !self.complete => ChangeKind::Deleted,
            (false, _) => return None,
        };
        if told == ChangeKind::Deleted {
            if self.complete || kind == ChangeKind::Deleted {
                self.held.remove(&resource_id);
            } else {
                self.held.insert(resource_id, false);
            }
        } else {
            self.held.insert(resource_id, true);
        }
        Some(event(told.as_str(), version, &object))
    }

    fn matches(&self, object: &Value) -> bool {
        let owned = self.owner_id.as_deref().is_none_or(|owner| {
            object.get("owner_references").and_then(|owner| owner.get("id")).and_then(Value::as_str) == Some(owner)
        });
        owned && render::parse(object).is_some_and(|resource| self.search.matches(&resource))
    }
}

fn event(kind: &str, version: i64, object: &Value) -> Bytes {
    let event = json!({ "type": kind, "resource_version": version.to_string(), "object": object });
    Bytes::from(event.to_string() + "\n")
}

fn bookmark(version: i64, kind: &str) -> Bytes {
    event("BOOKMARK", version, &json!({ "kind": kind }))
}
