//! Parses tokens into an expression, with Go Expr's precedence.
//!
//! From loose to tight: `? :`, `or`, `and`, the comparisons, `not`, `??`, members. Each has its function here, in this
//! order.

mod hints;
mod path;

use crate::lexer::{self, Token, TokenKind};
use crate::parse_error::SyntaxError;
use crate::syntax::{Choice, Each, Expr, Kind, Operator, Quantifier, Test};

/// Maximum bytes of a source; a longer one is an attack or a mistake.
pub(crate) const MAX_SOURCE: usize = 4096;
const MAX_DEPTH: usize = 64;

pub(crate) fn parse(source: &str) -> Result<Expr, SyntaxError> {
    if source.len() > MAX_SOURCE {
        let message = format!("{} bytes are more than the {MAX_SOURCE} of an expression", source.len());
        return Err(SyntaxError::new(0..0, message));
    }
    let tokens = lexer::tokens(source)?;
    let mut parser = Parser { source, tokens, position: 0, depth: 0, predicates: 0, coalesced_at: None };
    if parser.kind() == &TokenKind::End {
        return Err(SyntaxError::new(0..0, "the expression is empty".to_owned()));
    }
    let expression = parser.expression()?;
    match parser.kind() {
        TokenKind::End => Ok(expression),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    position: usize,
    depth: usize,
    /// The number of enclosing predicates, in which alone `#` has a meaning.
    predicates: usize,
    /// The position after a `??` without parentheses, at which no other operator may follow.
    coalesced_at: Option<usize>,
}

// === impl Parser: tokens ===

impl Parser<'_> {
    fn token(&self) -> Option<&Token> {
        self.tokens.get(self.position).or(self.tokens.last())
    }

    fn kind(&self) -> &TokenKind {
        self.token().map_or(&TokenKind::End, |token| &token.kind)
    }

    fn kind_after(&self, ahead: usize) -> &TokenKind {
        self.tokens.get(self.position + ahead).map_or(&TokenKind::End, |token| &token.kind)
    }

    /// Returns the start of the current token.
    fn start(&self) -> usize {
        self.token().map_or(0, |token| token.span.start)
    }

    /// Returns the end of the last consumed token.
    fn end(&self) -> usize {
        self.position.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |token| token.span.end)
    }

    fn advance(&mut self) {
        self.position += 1;
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.kind(), TokenKind::Symbol(found) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.kind(), TokenKind::Name(found) if found == word)
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &'static str, why: &str) -> Result<(), SyntaxError> {
        if self.take_symbol(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}` {why}"))) }
    }

    fn node(&self, start: usize, kind: Kind) -> Expr {
        Expr { kind, span: start..self.end().max(start) }
    }

    /// Bounds every recursion, so no input exhausts the stack.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>) -> Result<T, SyntaxError> {
        if self.depth == MAX_DEPTH {
            let start = self.start();
            return Err(SyntaxError::new(start..start, format!("this is nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}

// === impl Parser: expressions ===

impl Parser<'_> {
    fn expression(&mut self) -> Result<Expr, SyntaxError> {
        self.deeper(|parser| {
            let start = parser.start();
            let condition = parser.disjunction()?;
            if !parser.take_symbol("?") {
                return Ok(condition);
            }
            let then = parser.expression()?;
            parser.expect(":", "between the two answers of `… ? … : …`")?;
            let otherwise = parser.expression()?;
            Ok(parser.node(start, Kind::Choice(Box::new(Choice { condition, then, otherwise }))))
        })
    }

    fn disjunction(&mut self) -> Result<Expr, SyntaxError> {
        self.chain(["or", "||"], Self::conjunction, Kind::Or)
    }

    fn conjunction(&mut self) -> Result<Expr, SyntaxError> {
        self.chain(["and", "&&"], Self::comparison, Kind::And)
    }

    fn chain(
        &mut self,
        spellings: [&str; 2],
        operand: fn(&mut Self) -> Result<Expr, SyntaxError>,
        kind: fn(Vec<Expr>) -> Kind,
    ) -> Result<Expr, SyntaxError> {
        let start = self.start();
        let first = operand(self)?;
        let mut operands = vec![first];
        while self.is_word(spellings[0]) || self.is_symbol(spellings[1]) {
            self.refuse_after_coalesce()?;
            self.advance();
            operands.push(operand(self)?);
            self.coalesced_at = None;
        }
        match operands.pop() {
            Some(only) if operands.is_empty() => Ok(only),
            last => {
                operands.extend(last);
                Ok(self.node(start, kind(operands)))
            }
        }
    }

    fn comparison(&mut self) -> Result<Expr, SyntaxError> {
        let start = self.start();
        let left = self.operand()?;
        let Some((operator, negated)) = self.operator()? else {
            return Ok(left);
        };
        self.refuse_after_coalesce()?;
        self.position += 1 + usize::from(negated);
        let right = self.operand()?;
        let pattern = if operator == Operator::Matches { pattern(&right)? } else { None };
        self.coalesced_at = None;
        if self.operator()?.is_some() {
            let fault = self.error_here("comparisons do not chain".to_owned());
            return Err(fault.hint("join two with `and`, or put one in parentheses"));
        }
        Ok(self.node(start, Kind::Test(Box::new(Test { operator, negated, left, right, pattern }))))
    }

    /// Returns the comparison operator at the current position without consuming it.
    fn operator(&self) -> Result<Option<(Operator, bool)>, SyntaxError> {
        let named = |kind: &TokenKind| match kind {
            TokenKind::Symbol(symbol) => Operator::of(symbol),
            TokenKind::Name(word) => Operator::of(word),
            _ => None,
        };
        if !self.is_word("not") {
            return Ok(named(self.kind()).map(|operator| (operator, false)));
        }
        match named(self.kind_after(1)).filter(|operator| operator.is_word()) {
            Some(operator) => Ok(Some((operator, true))),
            None => Err(self.unexpected("`not in`, `not matches`, `not contains`, `not startsWith` or `not endsWith`")),
        }
    }

    /// Refuses an operator after `??` without parentheses, as Go Expr does, because its meaning is ambiguous.
    fn refuse_after_coalesce(&self) -> Result<(), SyntaxError> {
        if self.coalesced_at != Some(self.position) {
            return Ok(());
        }
        Err(self.error_here("`??` is followed by another operator".to_owned()).hint("put `… ?? …` in parentheses"))
    }

    fn operand(&mut self) -> Result<Expr, SyntaxError> {
        let start = self.start();
        if self.is_word("not") || self.is_symbol("!") {
            self.advance();
            let inner = self.deeper(Self::operand)?;
            self.coalesced_at = None;
            return Ok(self.node(start, Kind::Not(Box::new(inner))));
        }
        let first = self.postfix()?;
        if !self.is_symbol("??") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take_symbol("??") {
            let negation = self.is_word("not") || self.is_symbol("!");
            operands.push(if negation { self.deeper(Self::operand)? } else { self.postfix()? });
        }
        self.coalesced_at = Some(self.position);
        Ok(self.node(start, Kind::Coalesce(operands)))
    }

    fn primary(&mut self) -> Result<Expr, SyntaxError> {
        let start = self.start();
        let kind = match self.kind().clone() {
            TokenKind::Number(number) => Kind::Number(number),
            TokenKind::Text(text) => Kind::Text(text),
            TokenKind::Name(name) => return self.name(&name),
            TokenKind::Symbol("-") => return self.negative(start),
            TokenKind::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")", "to close the parenthesis")?;
                self.coalesced_at = None;
                return Ok(inner);
            }
            TokenKind::Symbol("[") => {
                self.advance();
                return self.list(start);
            }
            TokenKind::Symbol("#" | ".") => return self.element(start),
            TokenKind::Symbol(_) | TokenKind::End => return Err(self.unexpected("a value")),
        };
        self.advance();
        Ok(self.node(start, kind))
    }

    fn negative(&mut self, start: usize) -> Result<Expr, SyntaxError> {
        let TokenKind::Number(number) = self.kind_after(1).clone() else {
            return Err(self.unexpected("a value"));
        };
        self.position += 2;
        Ok(self.node(start, Kind::Number(number.negated())))
    }

    fn list(&mut self, start: usize) -> Result<Expr, SyntaxError> {
        let mut elements = Vec::new();
        while !self.is_symbol("]") {
            elements.push(self.expression()?);
            if !self.take_symbol(",") {
                break;
            }
        }
        self.expect("]", "to close the list, or `,`")?;
        self.coalesced_at = None;
        Ok(self.node(start, Kind::List(elements)))
    }

    /// Parses `#`, which may be omitted before `.member`.
    fn element(&mut self, start: usize) -> Result<Expr, SyntaxError> {
        if self.predicates == 0 {
            let fault = self.error_here("there is no element outside of a predicate".to_owned());
            return Err(fault.hint("`#` and `.member` belong into any(list, {…}) and its kin; elsewhere name a root"));
        }
        if self.take_symbol("#") {
            let attached = self.start() == self.end();
            if let (true, TokenKind::Name(name)) = (attached, self.kind()) {
                return Err(self
                    .error_here(format!("`#{name}` is not part of this language"))
                    .hint("`#` is the element"));
            }
        }
        Ok(Expr { kind: Kind::Element, span: start..self.end().max(start) })
    }

    fn length(&mut self, start: usize) -> Result<Expr, SyntaxError> {
        let inner = self.expression()?;
        self.expect(")", "after the one argument of `len`")?;
        Ok(self.node(start, Kind::Length(Box::new(inner))))
    }

    fn each(&mut self, start: usize, quantifier: Quantifier) -> Result<Expr, SyntaxError> {
        let name = quantifier.text();
        let list = self.expression()?;
        if self.is_symbol(")") {
            let fault = self.error_here(format!("`{name}` has no predicate"));
            return Err(fault.hint(format!("write {name}(list, {{.member == \"value\"}})")));
        }
        self.expect(",", &format!("between the list and the predicate of `{name}`"))?;
        let braced = self.take_symbol("{");
        self.predicates += 1;
        let predicate = self.expression()?;
        self.predicates -= 1;
        if braced {
            self.expect("}", "to close the predicate")?;
        }
        self.expect(")", &format!("to close `{name}`"))?;
        self.coalesced_at = None;
        Ok(self.node(start, Kind::Each(Box::new(Each { quantifier, list, predicate }))))
    }
}

fn pattern(right: &Expr) -> Result<Option<regex::Regex>, SyntaxError> {
    let Kind::Text(pattern) = &right.kind else {
        return Ok(None);
    };
    let compiled = crate::pattern::compile(pattern);
    compiled
        .map(Some)
        .map_err(|fault| SyntaxError::new(right.span.clone(), format!("this pattern is not one: {fault}")))
}
