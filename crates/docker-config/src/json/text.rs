//! Reads the characters of a document with their positions.

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

    /// Consumes `expected` if it comes next.
    pub(super) fn take(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.next();
        }
        found
    }

    /// Consumes and returns the characters up to the first that `accepts` refuses.
    pub(super) fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accepts(c)).unwrap_or(rest.len());
        let (taken, _) = rest.split_at(length);
        for _ in taken.chars() {
            self.next();
        }
        taken
    }

    pub(super) fn skip_white_space(&mut self) {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r'));
    }

    /// Returns the problem of another character than the expected one.
    pub(super) fn unexpected(&self, expected: ProblemKind) -> Problem {
        let kind = match self.peek() {
            None => ProblemKind::UnexpectedEnd,
            Some('\0') => ProblemKind::NulByte,
            Some(_) => expected,
        };
        problem(kind, self.position)
    }
}

/// Returns a syntax problem, which belongs to no member.
pub(super) fn problem(kind: ProblemKind, position: Position) -> Problem {
    Problem::new(Path::root(), kind, position)
}
