//! JSON values with their positions, and a strict reader of RFC 8259.

mod reader;
mod text;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use zeroize::Zeroizing;

use crate::path::Path;
use crate::problem::{JsonType, Position, Problem, ProblemKind};

pub(crate) use reader::read;
pub(crate) use writer::{Piece, Sink, write_text, write_value};

/// A value and the position of its first character.
pub(crate) struct Value {
    pub(crate) position: Position,
    pub(crate) content: Content,
}

/// The content of a value. No `Debug`, since any text may be a credential.
pub(crate) enum Content {
    Null,
    Boolean(bool),
    /// As written: a password without quotes is a number, and no float may change it.
    Number(Zeroizing<String>),
    Text(Zeroizing<String>),
    Array(Vec<Value>),
    Object(Vec<Member>),
}

/// A member of an object, in the order of the document, repeated names included.
pub(crate) struct Member {
    pub(crate) name: Zeroizing<String>,
    /// The position of the opening quote of the name.
    pub(crate) position: Position,
    pub(crate) value: Value,
}

impl Value {
    pub(crate) fn json_type(&self) -> JsonType {
        match self.content {
            Content::Null => JsonType::Null,
            Content::Boolean(_) => JsonType::Boolean,
            Content::Number(_) => JsonType::Number,
            Content::Text(_) => JsonType::String,
            Content::Array(_) => JsonType::Array,
            Content::Object(_) => JsonType::Object,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&[Member]> {
        match &self.content {
            Content::Object(members) => Some(members),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the members, or the problem that this must be an object.
    pub(crate) fn object_or(&self, path: &Path) -> Result<&[Member], Problem> {
        let kind = ProblemKind::MustBeObject { found: self.json_type() };
        self.as_object().ok_or_else(|| Problem::new(path, kind, self.position))
    }

    /// Returns the text, or the problem that this must be a string.
    pub(crate) fn text_or(&self, path: &Path) -> Result<&str, Problem> {
        let kind = ProblemKind::MustBeString { found: self.json_type() };
        self.as_text().ok_or_else(|| Problem::new(path, kind, self.position))
    }
}

/// Returns the first member of that name.
pub(crate) fn member<'a>(members: &'a [Member], name: &str) -> Option<&'a Member> {
    members.iter().find(|member| *member.name == name)
}

/// Returns true if a name occurs twice in one object, at any depth.
pub(crate) fn has_duplicates(value: &Value) -> bool {
    let mut problems = Vec::new();
    duplicates(value, &Path::root(), &mut problems);
    !problems.is_empty()
}

/// Reports the names that occur twice in one object, at any depth.
pub(crate) fn duplicates(value: &Value, path: &Path, problems: &mut Vec<Problem>) {
    match &value.content {
        Content::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                duplicates(value, &path.index(index), problems);
            }
        }
        Content::Object(members) => {
            let mut names = BTreeSet::new();
            for member in members {
                let path = path.member(&member.name);
                if !names.insert(member.name.as_str()) {
                    problems.push(Problem::new(&path, ProblemKind::DuplicateMember, member.position));
                }
                duplicates(&member.value, &path, problems);
            }
        }
        Content::Null | Content::Boolean(_) | Content::Number(_) | Content::Text(_) => {}
    }
}
