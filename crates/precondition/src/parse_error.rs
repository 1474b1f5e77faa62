//! The error of an expression that cannot be parsed: message, position and hint.

use std::fmt::{self, Write as _};
use std::ops::Range;

use crate::text;

/// Maximum characters of the excerpt of a source line.
const MAX_EXCERPT: usize = 100;

/// The error of an expression that cannot be parsed.
///
/// Its text has three or four lines: position and message, the line of the source, carets under the position, and a hint
/// if there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    line: usize,
    column: usize,
    message: String,
    hint: Option<String>,
    excerpt: String,
    /// Characters before the caret in the excerpt.
    indent: usize,
    width: usize,
}

/// A syntax error with its byte range in the source.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) span: Range<usize>,
    message: String,
    hint: Option<String>,
}

// === impl SyntaxError ===

impl SyntaxError {
    pub(crate) fn new(span: Range<usize>, message: String) -> Self {
        Self { span, message, hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    pub(crate) fn within(self, source: &str) -> ParseError {
        let before = source.get(..self.span.start).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end =
            source.get(line_start..).and_then(|rest| rest.find('\n')).map_or(source.len(), |at| at + line_start);
        let characters = |range: Range<usize>| source.get(range).unwrap_or_default().chars().count();
        let column = characters(line_start..before.len());
        // Of a long line, the part around the position.
        let skipped = column.saturating_sub(MAX_EXCERPT / 2);
        let line = source.get(line_start..line_end).unwrap_or_default();
        let shown = line.chars().skip(skipped).take(MAX_EXCERPT);
        let excerpt = text::on_one_line(shown);
        let width = characters(self.span.start..self.span.end.min(line_end));
        let indent = column - skipped;
        ParseError {
            line: before.matches('\n').count() + 1,
            column: column + 1,
            message: self.message,
            hint: self.hint,
            width: width.clamp(1, MAX_EXCERPT.saturating_sub(indent).max(1)),
            excerpt: excerpt.trim_end().to_owned(),
            indent,
        }
    }
}

// === impl ParseError ===

impl ParseError {
    /// The line, counted from one.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, counted from one.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The problem, and the expected text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A correction or an explanation.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "line {}, column {}: {}", self.line, self.column, self.message)?;
        writeln!(formatter, "  {}", self.excerpt)?;
        write!(formatter, "  {:indent$}", "", indent = self.indent)?;
        (0..self.width).try_for_each(|_| formatter.write_char('^'))?;
        self.hint.iter().try_for_each(|hint| write!(formatter, "\nhint: {hint}"))
    }
}
