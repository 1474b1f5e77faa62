//! The characters of a document, each with its place.

use std::str::Chars;

use crate::path::Path;
use crate::problem::{Position, Problem, ProblemKind};

/// Reads forward, one character at a time.
pub(super) struct Text<'a> {
    rest: Chars<'a>,
    position: Position,
}

impl<'a> Text<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.chars(), position: Position::START }
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    pub(super) fn rest(&self) -> &'a str {
        self.rest.as_str()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        self.position.pass(character);
        Some(character)
    }

    /// Passes `expected` if it comes next.
    pub(super) fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.next();
        }
        found
    }

    /// Passes as many characters as `wanted` agrees to, and gives them back.
    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        let (taken, _) = rest.split_at(length);
        for _ in taken.chars() {
            self.next();
        }
        taken
    }

    pub(super) fn skip_white_space(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    /// The problem of something else standing here than `expected`.
    pub(super) fn unexpected(&self, expected: ProblemKind) -> Problem {
        let kind = match self.peek() {
            None => ProblemKind::UnexpectedEnd,
            Some('\0') => ProblemKind::NulByte,
            Some(_) => expected,
        };
        problem(kind, self.position)
    }
}

/// A problem of the JSON as such; it belongs to no member.
pub(super) fn problem(kind: ProblemKind, position: Position) -> Problem {
    Problem::new(Path::root(), kind, position)
}
