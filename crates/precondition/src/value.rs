//! Values while an expression is evaluated: borrowed, with where they came from.

use std::rc::Rc;

use serde_json::{Map, Value};

use crate::explanation::{Shown, Type};
use crate::number::Number;
use crate::similar::shortened;

/// Characters of a text, and elements of a list, that an explanation shows.
const LONGEST_TEXT: usize = 64;
const LONGEST_LIST: usize = 5;

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

/// A value, where it was found, and whether it may be shown.
#[derive(Debug, Clone)]
pub(crate) struct Traced<'a> {
    pub(crate) datum: Datum<'a>,
    /// Member by member from the root, `[]` for any element; empty where there is no such path.
    pub(crate) path: Vec<&'a str>,
    pub(crate) hidden: bool,
    /// What a person should know about it: why it is nil, how old it is.
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
        let shown = (0..self.len().min(LONGEST_LIST)).map(element).collect::<Vec<_>>().join(", ");
        if self.len() > LONGEST_LIST { format!("[{shown}, … {} elements]", self.len()) } else { format!("[{shown}]") }
    }
}

// === impl Traced ===

impl<'a> Traced<'a> {
    /// A value that no path leads to.
    pub(crate) fn made(datum: Datum<'a>) -> Self {
        Self { datum, path: Vec::new(), hidden: false, notes: Vec::new() }
    }

    /// Of a list: the element, as the predicate and an index see it.
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
            // That something is missing is no secret, and the most frequent answer.
            Datum::Nil => Shown::Nil,
            datum if self.hidden => Shown::Hidden(datum.kind()),
            Datum::Bool(value) => Shown::Bool(*value),
            Datum::Number(number) => Shown::Number(*number),
            Datum::Text(text) => Shown::Text(quoted(text)),
            Datum::List(list) => Shown::List(list.shown()),
            Datum::Object(members) => Shown::Object(members.len()),
        }
    }

    /// `nil (spec has no "gcp")`, `"True"`: the value in a sentence.
    pub(crate) fn told(&self) -> String {
        format!("{}{}", self.shown(), noted(&self.notes))
    }

    /// `spec.gcp`, for a sentence about it.
    pub(crate) fn place(&self) -> String {
        if self.path.is_empty() {
            return "it".to_owned();
        }
        let is_plain = |name: &str| name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_');
        let told = self.path.iter().enumerate().map(|(index, segment)| match *segment {
            "[]" => "[]".to_owned(),
            "…" => "[…]".to_owned(),
            root if index == 0 => root.to_owned(),
            name if is_plain(name) => format!(".{name}"),
            name => format!("[{}]", quoted(name)),
        });
        shortened(&told.collect::<String>(), 2 * LONGEST_TEXT)
    }
}

/// What to know, in parentheses.
pub(crate) fn noted(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}

/// As JSON writes it, and not too long.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for next in shortened(text, LONGEST_TEXT).chars() {
        match next {
            '"' | '\\' => quoted.extend(['\\', next]),
            next if next.is_control() => quoted.extend(next.escape_default()),
            next => quoted.push(next),
        }
    }
    quoted + "\""
}
