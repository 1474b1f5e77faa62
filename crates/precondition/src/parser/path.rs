//! Parses names, roots, and the members that follow them.

use super::Parser;
use crate::lexer::{TokenKind, is_name, is_name_start};
use crate::parse_error::SyntaxError;
use crate::syntax::{Expr, Key, Kind, Quantifier, Root, Step};

/// The name of the whole document, which is never a value itself.
const DOCUMENT: &str = "cluster";

// === impl Parser ===

impl Parser<'_> {
    /// Parses a value and the members that follow it.
    pub(super) fn postfix(&mut self) -> Result<Expr, SyntaxError> {
        let start = self.start();
        let is_document = self.is_word(DOCUMENT);
        let is_element = self.is_symbol(".");
        let mut base = self.primary()?;
        let mut steps = Vec::new();
        while let Some(step) = self.step(is_element && steps.is_empty())? {
            steps.push(step);
        }
        if is_document {
            base = self.document(start, &mut steps)?;
        }
        if steps.is_empty() {
            // An expression in parentheses keeps its own range.
            return Ok(base);
        }
        Ok(self.node(start, Kind::Access { base: Box::new(base), steps }))
    }

    fn step(&mut self, must: bool) -> Result<Option<Step>, SyntaxError> {
        let optional = self.is_symbol("?.");
        if optional || self.is_symbol(".") {
            self.advance();
            if optional && self.take_symbol("[") {
                return self.index().map(Some);
            }
            return self.member().map(Some);
        }
        if self.take_symbol("[") {
            return self.index().map(Some);
        }
        if must { Err(self.unexpected("a member's name")) } else { Ok(None) }
    }

    fn member(&mut self) -> Result<Step, SyntaxError> {
        let TokenKind::Name(name) = self.kind().clone() else {
            return Err(self.unexpected("a member's name"));
        };
        if matches!(self.kind_after(1), TokenKind::Symbol("(")) {
            return Err(self.method(&name));
        }
        self.advance();
        Ok(Step { key: Key::Name(name) })
    }

    fn index(&mut self) -> Result<Step, SyntaxError> {
        let key = if let Some(name) = self.bare_name() {
            Key::Name(name)
        } else {
            let computed = self.expression()?;
            match computed.kind {
                Kind::Text(name) => Key::Name(name),
                kind => Key::Computed(Expr { kind, span: computed.span }),
            }
        };
        self.expect("]", "to close the index")?;
        self.coalesced_at = None;
        Ok(Step { key })
    }

    /// Parses names without quotes in brackets, such as `[validation]` and `[landing-zone]`.
    ///
    /// The language has no variables and no subtraction, so the notation is unambiguous. A literal stays a literal.
    fn bare_name(&mut self) -> Option<String> {
        let rest = self.source.get(self.start()..)?;
        let length = rest.find(|next| !is_name(next) && next != '-').unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(length)?;
        let closed = after.trim_start().starts_with(']');
        let named = name.starts_with(is_name_start) && !name.ends_with('-');
        if !closed || !named || matches!(name, "true" | "false" | "nil") {
            return None;
        }
        let end = self.start() + length;
        while self.start() < end && self.kind() != &TokenKind::End {
            self.advance();
        }
        Some(name.to_owned())
    }

    /// Parses a name in place of a value.
    pub(super) fn name(&mut self, name: &str) -> Result<Expr, SyntaxError> {
        let start = self.start();
        if matches!(self.kind_after(1), TokenKind::Symbol("(")) {
            return self.call(start, name);
        }
        let kind = match name {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "spec" => Kind::Root(Root::Spec),
            "status" => Kind::Root(Root::Status),
            "metadata" => Kind::Root(Root::Metadata),
            "event" => Kind::Root(Root::Event),
            // The document is replaced once its member is known.
            "nil" | DOCUMENT => Kind::Nil,
            _ => return Err(self.unknown_name(name)),
        };
        self.advance();
        Ok(self.node(start, kind))
    }

    fn call(&mut self, start: usize, name: &str) -> Result<Expr, SyntaxError> {
        let quantifier = Quantifier::of(name);
        if quantifier.is_none() && name != "len" {
            return Err(self.unknown_function(name));
        }
        self.position += 2;
        match quantifier {
            Some(quantifier) => self.each(start, quantifier),
            None => self.length(start),
        }
    }

    /// Converts `cluster.spec` to `spec`: the first step becomes the root.
    fn document(&mut self, start: usize, steps: &mut Vec<Step>) -> Result<Expr, SyntaxError> {
        if let Some(Step { key: Key::Name(_) }) = steps.first()
            && let Key::Name(name) = steps.remove(0).key
        {
            return Ok(Expr { kind: Kind::Root(Root::of_document(name)), span: start..self.end() });
        }
        let fault = SyntaxError::new(start..start + DOCUMENT.len(), "`cluster` is the whole document".to_owned());
        Err(fault.hint("name one of its members: cluster.spec, cluster.status, cluster.name"))
    }
}
