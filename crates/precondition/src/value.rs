//! Values during an evaluation: borrowed from the document, with their path.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::finding::{Shown, Type};
use crate::number::Number;
use crate::text::shortened;

/// Maximum characters of a text, and elements of a list, in an explanation.
const MAX_TEXT: usize = 64;
const MAX_LIST: usize = 5;

#[derive(Debug, Clone)]
pub(crate) enum Datum<'a> {
    Nil,
    Bool(bool),
    Number(Number),
    Text(&'a str),
    List(List<'a>),
    Object(&'a Map<String, Value>),
}

#[derive(Debug, Clone)]
pub(crate) enum List<'a> {
    Read(&'a [Value]),
    Made(Rc<[Traced<'a>]>),
}

/// A value with its path, its secrecy and its notes.
#[derive(Debug, Clone)]
pub(crate) struct Traced<'a> {
    pub(crate) datum: Datum<'a>,
    /// The members from the root, `[]` for any element; empty if there is no such path.
    pub(crate) path: Vec<&'a str>,
    pub(crate) hidden: bool,
    /// Notes for people, such as the reason why it is nil, or its age.
    pub(crate) notes: Vec<String>,
}

// === impl Datum ===

impl<'a> Datum<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Nil,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(Number::of(number)),
            Value::String(text) => Self::Text(text),
            Value::Array(elements) => Self::List(List::Read(elements)),
            Value::Object(members) => Self::Object(members),
        }
    }

    pub(crate) fn kind(&self) -> Type {
        match self {
            Self::Nil => Type::Nil,
            Self::Bool(_) => Type::Bool,
            Self::Number(_) => Type::Number,
            Self::Text(_) => Type::Text,
            Self::List(_) => Type::List,
            Self::Object(_) => Type::Object,
        }
    }

    fn shown_in_list(&self) -> String {
        match self {
            Self::Nil => "nil".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => quoted(text),
            Self::List(_) => "[…]".to_owned(),
            Self::Object(_) => "{…}".to_owned(),
        }
    }
}

// === impl List ===

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Read(elements) => elements.len(),
            Self::Made(elements) => elements.len(),
        }
    }

    pub(crate) fn datum(&self, index: usize) -> Option<Datum<'a>> {
        match self {
            Self::Read(elements) => elements.get(index).map(Datum::of),
            Self::Made(elements) => elements.get(index).map(|element| element.datum.clone()),
        }
    }

    fn shown(&self) -> String {
        let element = |index| match (self, self.datum(index)) {
            (Self::Made(elements), _) if elements.get(index).is_none_or(|element| element.hidden) => {
                "hidden".to_owned()
            }
            (_, Some(datum)) => datum.shown_in_list(),
            (_, None) => String::new(),
        };
        let shown = (0..self.len().min(MAX_LIST)).map(element).collect::<Vec<_>>().join(", ");
        if self.len() > MAX_LIST { format!("[{shown}, … {} elements]", self.len()) } else { format!("[{shown}]") }
    }
}

// === impl Traced ===

impl<'a> Traced<'a> {
    /// A computed value, which has no path.
    pub(crate) fn made(datum: Datum<'a>) -> Self {
        Self { datum, path: Vec::new(), hidden: false, notes: Vec::new() }
    }

    /// Returns an element of a list, for a predicate or an index.
    pub(crate) fn element(&self, list: &List<'a>, index: usize) -> Option<Self> {
        if let List::Made(elements) = list {
            let element = elements.get(index)?;
            return Some(Self { hidden: self.hidden || element.hidden, ..element.clone() });
        }
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push("[]");
        }
        Some(Self { datum: list.datum(index)?, path, hidden: self.hidden, notes: Vec::new() })
    }

    pub(crate) fn shown(&self) -> Shown {
        match &self.datum {
            // The absence of a value is no secret, and the most frequent answer.
            Datum::Nil => Shown::Nil,
            datum if self.hidden => Shown::Hidden(datum.kind()),
            Datum::Bool(value) => Shown::Bool(*value),
            Datum::Number(number) => Shown::Number(*number),
            Datum::Text(text) => Shown::Text(quoted(text)),
            Datum::List(list) => Shown::List(list.shown()),
            Datum::Object(members) => Shown::Object(members.len()),
        }
    }

    /// Returns the value as part of a sentence: `nil (spec has no "gcp")` or `"True"`.
    pub(crate) fn described(&self) -> String {
        format!("{}{}", self.shown(), noted(&self.notes))
    }

    /// Returns the path as part of a sentence: `spec.gcp`.
    pub(crate) fn location(&self) -> String {
        if self.path.is_empty() {
            return "it".to_owned();
        }
        let is_plain = |name: &str| name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_');
        let segments = self.path.iter().enumerate().map(|(index, segment)| match *segment {
            "[]" => "[]".to_owned(),
            "…" => "[…]".to_owned(),
            root if index == 0 => root.to_owned(),
            name if is_plain(name) => format!(".{name}"),
            name => format!("[{}]", quoted(name)),
        });
        shortened(&segments.collect::<String>(), 2 * MAX_TEXT)
    }
}

/// Returns the notes in parentheses.
pub(crate) fn noted(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// Returns a text in quotes, escaped as in JSON, and shortened.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for next in shortened(text, MAX_TEXT).chars() {
        match next {
            '"' | '\\' => quoted.extend(['\\', next]),
            next if next.is_control() => quoted.extend(next.escape_default()),
            next => quoted.push(next),
        }
    }
    quoted + "\""
}
