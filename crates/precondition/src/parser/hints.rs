//! Errors and hints for expressions that cannot be parsed.

use super::Parser;
use crate::lexer::TokenKind;
use crate::parse_error::SyntaxError;
use crate::suggestion;
use crate::text;

const ROOTS: &[&str] = &["spec", "status", "metadata", "event", "cluster"];
const FUNCTIONS: &[&str] = &["len", "any", "all", "none", "filter", "count"];
const MAX_QUOTE: usize = 40;

// === impl Parser ===

impl Parser<'_> {
    pub(super) fn error_here(&self, message: String) -> SyntaxError {
        let span = self.token().map_or(0..0, |token| token.span.clone());
        SyntaxError::new(span, message)
    }

    pub(super) fn unexpected(&self, expected: &str) -> SyntaxError {
        let found = match self.kind() {
            TokenKind::End => "the end".to_owned(),
            _ => format!("`{}`", self.quote()),
        };
        let error = self.error_here(format!("expected {expected}, found {found}"));
        error.maybe_hint(self.likely_mistake())
    }

    fn quote(&self) -> String {
        let span = self.token().map_or(0..0, |token| token.span.clone());
        text::shortened(&text::on_one_line(self.source.get(span).unwrap_or_default().chars()), MAX_QUOTE)
    }

    fn likely_mistake(&self) -> Option<String> {
        let hint = match self.kind() {
            TokenKind::Symbol("-") if self.is_attached() => {
                "a name with a dash goes into brackets: status.adapters[landing-zone]"
            }
            TokenKind::Symbol(symbol) => symbol_hint(symbol)?,
            TokenKind::Name(word) => word_hint(word)?,
            TokenKind::Text(_) | TokenKind::Number(_) | TokenKind::End => return None,
        };
        Some(hint.to_owned())
    }

    /// Returns true if the current token is directly between two names.
    fn is_attached(&self) -> bool {
        let before = self.position.checked_sub(1).and_then(|before| self.tokens.get(before));
        let after = self.tokens.get(self.position + 1);
        let is_name = |token: &&crate::lexer::Token| matches!(token.kind, TokenKind::Name(_));
        let end = self.token().map_or(0, |token| token.span.end);
        before.filter(is_name).is_some_and(|before| before.span.end == self.start())
            && after.filter(is_name).is_some_and(|after| after.span.start == end)
    }

    pub(super) fn unknown_name(&self, name: &str) -> SyntaxError {
        let shown = text::shortened(name, MAX_QUOTE);
        let error = self.error_here(format!("`{shown}` is not known; a path begins with {}", listed(ROOTS)));
        let hint = match name {
            "null" | "None" | "NULL" | "Nil" | "undefined" => "write `nil`".to_owned(),
            "True" | "TRUE" => "write `true`, or \"True\" for a condition's status".to_owned(),
            "False" | "FALSE" => "write `false`, or \"False\" for a condition's status".to_owned(),
            "NOT" | "Not" => "write `not`".to_owned(),
            "adapters" | "conditions" | "phase" => format!("write `status.{name}`"),
            "let" | "if" => "there are no variables and no statements; a choice is `… ? … : …`".to_owned(),
            _ => match suggestion::nearest(name, ROOTS.iter().copied()) {
                Some(root) => format!("did you mean `{root}`?"),
                None => format!("a text stands in quotes: \"{shown}\""),
            },
        };
        error.hint(hint)
    }

    pub(super) fn unknown_function(&self, name: &str) -> SyntaxError {
        let shown = text::shortened(name, MAX_QUOTE);
        let error = self.error_here(format!("there is no function `{shown}`; there are {}", listed(FUNCTIONS)));
        let hint = match name {
            "has" => "`has(…)` is CEL; an absent member is `nil` here: write `… != nil`".to_owned(),
            "size" => "`size(…)` is CEL; write `len(…)`".to_owned(),
            "exists" | "one" | "find" => "write any(list, {…}) or count(list, {…}) == 1".to_owned(),
            "map" | "sum" | "reduce" => "predicates can use members: any(list, {.member == …})".to_owned(),
            "not" | "and" | "or" | "in" => format!("`{name}` is an operator and needs a value before it"),
            _ => match suggestion::nearest(name, FUNCTIONS.iter().copied()) {
                Some(function) => format!("did you mean `{function}`?"),
                None => return error,
            },
        };
        error.hint(hint)
    }

    pub(super) fn method(&self, name: &str) -> SyntaxError {
        let shown = text::shortened(name, MAX_QUOTE);
        let error = self.error_here(format!("values have no methods, so there is no `.{shown}(…)`"));
        match name {
            "startsWith" | "endsWith" | "contains" | "matches" => error.hint(format!("write `… {name} \"text\"`")),
            "exists" => error.hint("`.exists(x, …)` is CEL; write any(list, {…})"),
            "exists_one" => error.hint("`.exists_one(x, …)` is CEL; write count(list, {…}) == 1"),
            "all" | "filter" => error.hint(format!("`.{name}(x, …)` is CEL; write {name}(list, {{…}})")),
            "size" | "length" | "len" => error.hint("write `len(…)`"),
            "orValue" => error.hint("`.orValue(…)` is CEL; write `… ?? value`"),
            _ => error,
        }
    }
}

fn symbol_hint(symbol: &str) -> Option<&'static str> {
    Some(match symbol {
        "=" => "`==` compares",
        "===" => "write `==`",
        "!==" | "<>" => "write `!=`",
        "=~" | "~" => "write `… matches \"pattern\"`",
        "&" => "write `&&` or `and`",
        "|" => "write `||` or `or`",
        "+" | "-" | "*" | "/" | "%" | "**" | "^" => "there is no arithmetic in this language",
        ".." => "there are no ranges in this language; compare with `<` and `>=`",
        "{" => "there are no objects in this language; predicates stand in any(list, {…}) and its kin",
        ":" => "there are no slices in this language, and `:` needs a `?` before it",
        ";" => "there is one expression, and no statement",
        "$" | "@" => "a path begins with its root: spec, status, metadata, event or cluster",
        _ => return None,
    })
}

fn word_hint(word: &str) -> Option<&'static str> {
    Some(match word {
        "AND" | "And" => "write `and`",
        "OR" | "Or" => "write `or`",
        "IN" | "In" => "write `in`",
        "is" | "IS" | "equals" | "eq" => "write `==`",
        "ne" => "write `!=`",
        "startswith" | "starts_with" | "hasPrefix" => "write `startsWith`",
        "endswith" | "ends_with" | "hasSuffix" => "write `endsWith`",
        "match" | "like" | "LIKE" => "write `matches`",
        "contain" | "includes" => "write `contains`",
        _ => return None,
    })
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
