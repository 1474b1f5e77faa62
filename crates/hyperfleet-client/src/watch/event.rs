//! One line of the change stream.

use serde::Deserialize;
use serde_json::Value;

use crate::wire::Resource;

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent {
    /// The kind of change.
    pub kind: WatchKind,
    /// From where a later watch may go on; `None` where the API has no change stream, and until the state is complete.
    pub resource_version: Option<String>,
    /// The resource as it is now, or as it last was; `None` for what is not about one.
    pub object: Option<Box<Resource>>,
}

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKind {
    /// A resource is new, or new to us.
    Added,
    /// A resource is different.
    Modified,
    /// A resource is gone, or the search does not find it any more.
    Deleted,
    /// All changes up to this version have been delivered.
    Bookmark,
    /// The thread was lost; the present state comes anew, up to the next `Bookmark`.
    Restarted,
}

/// A line of the stream.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Event(WatchEvent),
    /// Nothing that this client knows, but a sign of life: an empty line, or an event of tomorrow.
    Other,
    /// A page of a list: the API does not know the parameter `watch`.
    List,
    /// An event about a resource that is not of the contract's form.
    Unreadable,
    Malformed,
}

#[derive(Deserialize)]
struct Members {
    #[serde(rename = "type")]
    kind: Option<String>,
    resource_version: Option<Value>,
    object: Option<Value>,
    items: Option<Value>,
}

// === impl WatchEvent ===

impl WatchEvent {
    /// An event that is not about one resource.
    pub(crate) fn bare(kind: WatchKind) -> Self {
        Self { kind, resource_version: None, object: None }
    }

    /// An event about a resource.
    pub(crate) fn about(kind: WatchKind, object: Resource) -> Self {
        Self { kind, resource_version: None, object: Some(Box::new(object)) }
    }
}

// === impl Line ===

impl Line {
    pub(crate) fn parse(line: &[u8]) -> Self {
        if line.trim_ascii().is_empty() {
            return Self::Other;
        }
        let Ok(members) = serde_json::from_slice::<Members>(line) else {
            return Self::Malformed;
        };
        let kind = match members.kind.as_deref() {
            Some("ADDED") => WatchKind::Added,
            Some("MODIFIED") => WatchKind::Modified,
            Some("DELETED") => WatchKind::Deleted,
            Some("BOOKMARK") => WatchKind::Bookmark,
            Some(_) => return Self::Other,
            None if members.items.is_some_and(|items| items.is_array()) => return Self::List,
            None => return Self::Malformed,
        };
        let resource_version = match members.resource_version {
            Some(Value::String(text)) => Some(text),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let object = match kind {
            WatchKind::Bookmark => None,
            _ => match members.object.map(serde_json::from_value) {
                Some(Ok(object)) => Some(object),
                Some(Err(_quotes)) => return Self::Unreadable,
                None => return Self::Malformed,
            },
        };
        Self::Event(WatchEvent { kind, resource_version, object })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::Generation;

    fn parse(line: &str) -> Line {
        Line::parse(line.as_bytes())
    }

    #[test]
    fn events_are_read() {
        let line = r#"{"type": "ADDED", "resource_version": "7", "object": {"id": "a", "generation": 2}, "more": 1}"#;
        let Line::Event(event) = parse(line) else { panic!("an event") };
        assert_eq!((event.kind, event.resource_version.as_deref()), (WatchKind::Added, Some("7")));
        assert_eq!(event.object.unwrap().generation, Generation::from(2));
        let Line::Event(bookmark) = parse(r#"{"type": "BOOKMARK", "resource_version": 8, "object": {}}"#) else {
            panic!("an event")
        };
        assert_eq!(bookmark.resource_version.as_deref(), Some("8"));
    }

    #[rstest]
    #[case("", Line::Other)]
    #[case(" \r", Line::Other)]
    #[case(r#"{"type": "PROGRESS"}"#, Line::Other)]
    #[case(r#"{"page": 1, "size": 0, "total": 0, "items": []}"#, Line::List)]
    #[case("{", Line::Malformed)]
    #[case("<html>", Line::Malformed)]
    #[case("[]", Line::Malformed)]
    #[case("{}", Line::Malformed)]
    #[case(r#"{"type": "ADDED"}"#, Line::Malformed)]
    #[case(r#"{"type": "DELETED", "object": {"name": "without id"}}"#, Line::Unreadable)]
    #[case(r#"{"type": "ADDED", "object": {"id": "a", "generation": "two"}}"#, Line::Unreadable)]
    #[case(r#"{"type": "MODIFIED", "object": {"id": "a", "created_time": "yesterday"}}"#, Line::Unreadable)]
    #[case(r#"{"type": "MODIFIED", "object": {"id": "a", "status": {"conditions": {}}}}"#, Line::Unreadable)]
    #[case(r#"{"type": "ADDED", "object": 7}"#, Line::Unreadable)]
    fn everything_else_is_recognised(#[case] line: &str, #[case] expect: Line) {
        assert_eq!(parse(line), expect);
    }
}
