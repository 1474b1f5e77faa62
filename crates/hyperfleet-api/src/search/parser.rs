//! The parser: from tokens to an expression. `or` binds weakest, then `and`, then `not`, then the tests.

use std::mem;
use std::vec::IntoIter;

use super::error::{Quote, SearchError};
use super::expression::{Expression, Test};
use super::field::{self, Field, Kind as FieldKind};
use super::literal::{self, Literal, Number};
use super::pattern::Pattern;
use super::scalar::{Comparison, Scalar};
use super::token::{self, Kind, Token};

/// Maximum nesting of parentheses and `not`. SQLite refuses an expression of depth 1000.
const MAX_DEPTH: usize = 64;

/// Tokens of the language that this server does not support, each with its error message.
const UNSUPPORTED: &[(&[&str], &str)] = &[
    (&["+", "-", "*", "/", "%"], "arithmetic is not supported: compare a field with a value"),
    (&["~=", "~!"], "regular expressions are not supported: use like or ilike"),
    (&["len", "any", "all", "sum"], "len, any, all and sum are not supported: compare a field with a value"),
];

/// The operator of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Null,
    Compare(Comparison),
    In,
    Between,
    Like { ignores_case: bool },
}

struct Parser<'a> {
    rest: IntoIter<Token<'a>>,
    next: Token<'a>,
    depth: usize,
    /// Number of `not` around the next test; an odd number negates it.
    nots: usize,
}

/// A field with its token.
struct Subject<'a> {
    field: Field,
    token: Token<'a>,
}

/// Parses a search; `None` for a blank text.
pub(super) fn parse(text: &str) -> Result<Option<Expression>, SearchError> {
    let mut rest = token::read(text)?.into_iter();
    let next = rest.next().unwrap_or(Token { column: 1, text: "", kind: Kind::End });
    let mut parser = Parser { rest, next, depth: 0, nots: 0 };
    if parser.next.kind == Kind::End {
        return Ok(None);
    }
    let expression = parser.alternatives()?;
    if parser.next.kind == Kind::End { Ok(Some(expression)) } else { Err(parser.expected("and, or, or the end")) }
}

// === impl Parser: expressions ===

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Expression, SearchError> {
        let parts = self.series("or", Self::conjunction)?;
        Ok(joined(parts, if self.is_negated() { Expression::All } else { Expression::Any }))
    }

    fn conjunction(&mut self) -> Result<Expression, SearchError> {
        let parts = self.series("and", Self::term)?;
        Ok(joined(parts, if self.is_negated() { Expression::Any } else { Expression::All }))
    }

    fn series(
        &mut self,
        separator: &str,
        part: fn(&mut Self) -> Result<Expression, SearchError>,
    ) -> Result<Vec<Expression>, SearchError> {
        let mut parts = vec![part(self)?];
        while self.take_keyword(separator) {
            parts.push(part(self)?);
        }
        Ok(parts)
    }

    fn term(&mut self) -> Result<Expression, SearchError> {
        let column = self.next.column;
        if self.take_keyword("not") {
            self.nots += 1;
            let expression = self.nested(column, Self::term)?;
            self.nots -= 1;
            return Ok(expression);
        }
        if self.take_symbol("(") {
            let expression = self.nested(column, Self::alternatives)?;
            return if self.take_symbol(")") { Ok(expression) } else { Err(self.expected("and, or, or ')'")) };
        }
        self.test()
    }

    fn nested(
        &mut self,
        column: usize,
        inner: fn(&mut Self) -> Result<Expression, SearchError>,
    ) -> Result<Expression, SearchError> {
        if self.depth == MAX_DEPTH {
            let message = format!("parentheses and not nest at most {MAX_DEPTH} deep: remove some of them");
            return Err(SearchError::search(column, message));
        }
        self.depth += 1;
        let expression = inner(self)?;
        self.depth -= 1;
        Ok(expression)
    }
}

// === impl Parser: tests ===

impl<'a> Parser<'a> {
    fn test(&mut self) -> Result<Expression, SearchError> {
        if self.at_literal() {
            return self.reversed();
        }
        let subject = self.subject()?;
        let at = self.next.column;
        let (negated_here, operator) = self.operator()?;
        subject.check(at, operator, self.nots > 0 || negated_here)?;
        let negated = self.is_negated() != negated_here;
        let test = match operator {
            Operator::Null => Test::Null { negated },
            Operator::Compare(comparison) => compared(at, comparison.negated_if(negated), self.value(&subject)?)?,
            Operator::In => Test::In { negated, values: self.values(&subject)? },
            Operator::Between => return self.between(&subject, negated),
            Operator::Like { ignores_case } => Test::Like { negated, pattern: self.pattern(ignores_case)? },
        };
        Ok(Expression::Test(subject.field, test))
    }

    /// A comparison whose value stands first: `'x' = name`.
    fn reversed(&mut self) -> Result<Expression, SearchError> {
        let (column, text) = (self.next.column, self.next.text);
        let literal = self.literal()?;
        let at = self.next.column;
        let symbol = Some(&self.next).filter(|token| token.kind == Kind::Symbol);
        let Some(comparison) = symbol.and_then(|token| Comparison::parse(token.text)) else {
            return Err(self.expected("a comparison such as ="));
        };
        self.advance();
        let subject = self.subject()?;
        let comparison = comparison.reversed();
        subject.check(at, Operator::Compare(comparison), self.nots > 0)?;
        let value = subject.value(literal, column, text)?;
        let test = compared(at, comparison.negated_if(self.is_negated()), value)?;
        Ok(Expression::Test(subject.field, test))
    }

    /// True before a literal.
    fn at_literal(&self) -> bool {
        let Token { kind, .. } = &self.next;
        matches!(kind, Kind::Quoted(_) | Kind::Number | Kind::Time)
            || self.next.is_symbol("-")
            || self.next.is_keyword("true")
            || self.next.is_keyword("false")
    }

    fn subject(&mut self) -> Result<Subject<'a>, SearchError> {
        if self.next.kind != Kind::Word || unsupported(&self.next).is_some() {
            return Err(self.expected("a field"));
        }
        let token = self.advance();
        match Field::parse(token.text) {
            Some(field) => Ok(Subject { field, token }),
            None => Err(SearchError::search(
                token.column,
                format!(
                    "{}: {} is not one of {}, labels.<key>, spec.<path>, status.conditions.<Type> (also with .reason, \
                     .observed_generation, .last_updated_time or .last_transition_time)",
                    field::INVALID,
                    Quote(token.text),
                    field::column_names(),
                ),
            )),
        }
    }

    /// The operator, with true if it is negated, as in `is not null` and `not in`.
    fn operator(&mut self) -> Result<(bool, Operator), SearchError> {
        if self.next.kind == Kind::Symbol
            && let Some(comparison) = Comparison::parse(self.next.text)
        {
            self.advance();
            return Ok((false, Operator::Compare(comparison)));
        }
        if self.take_keyword("is") {
            let negated = self.take_keyword("not");
            return if self.take_keyword("null") {
                Ok((negated, Operator::Null))
            } else {
                Err(self.expected("null or not null"))
            };
        }
        let negated = self.take_keyword("not");
        let operators = [
            ("in", Operator::In),
            ("between", Operator::Between),
            ("like", Operator::Like { ignores_case: false }),
            ("ilike", Operator::Like { ignores_case: true }),
        ];
        match operators.into_iter().find(|(keyword, _)| self.take_keyword(keyword)) {
            Some((_, operator)) => Ok((negated, operator)),
            None if negated => Err(self.expected("in, between, like or ilike")),
            None => Err(self.expected("a comparison such as =")),
        }
    }

    fn between(&mut self, subject: &Subject<'a>, negated: bool) -> Result<Expression, SearchError> {
        let at = self.next.column;
        let low = self.value(subject)?;
        if !self.take_keyword("and") {
            return Err(self.expected("and with the upper end of between"));
        }
        let high = self.value(subject)?;
        if low.compare(&high).is_none() || matches!(low, Scalar::Bool(_)) {
            return Err(SearchError::search(at, "between needs two texts, two numbers or two times"));
        }
        let bounds = [(Comparison::GreaterOrEqual, low), (Comparison::LessOrEqual, high)];
        let tests = bounds.map(|(comparison, bound)| {
            Expression::Test(subject.field.clone(), Test::Compare(comparison.negated_if(negated), bound))
        });
        Ok(if negated { Expression::Any(tests.into()) } else { Expression::All(tests.into()) })
    }
}

// === impl Parser: values ===

impl<'a> Parser<'a> {
    /// A list: `['a', 'b']`, or as in SQL `('a', 'b')`.
    fn values(&mut self, subject: &Subject<'a>) -> Result<Vec<Scalar<'static>>, SearchError> {
        let end = if self.take_symbol("[") {
            "]"
        } else if self.take_symbol("(") {
            ")"
        } else {
            return Err(self.expected("a list such as ['a', 'b']"));
        };
        let mut values = vec![self.value(subject)?];
        while self.take_symbol(",") {
            let at = self.next.column;
            let value = self.value(subject)?;
            if values.first().and_then(|first| first.compare(&value)).is_none() {
                return Err(SearchError::search(at, "a list has values of one type: combine two lists by or"));
            }
            values.push(value);
        }
        if self.take_symbol(end) { Ok(values) } else { Err(self.expected(&format!("',' or '{end}'"))) }
    }

    /// A value that the field can be compared with.
    fn value(&mut self, subject: &Subject<'a>) -> Result<Scalar<'static>, SearchError> {
        let (column, text) = (self.next.column, self.next.text);
        let literal = self.literal()?;
        subject.value(literal, column, text)
    }

    fn pattern(&mut self, ignores_case: bool) -> Result<Pattern, SearchError> {
        let column = self.next.column;
        let Literal::Text(text) = self.literal()? else {
            return Err(SearchError::search(column, "a pattern is a text in quotes, such as 'prod-%'"));
        };
        Pattern::parse(&text, ignores_case).map_err(|error| SearchError::search(column, error.to_string()))
    }

    fn literal(&mut self) -> Result<Literal, SearchError> {
        let negative = self.take_symbol("-");
        let token = self.next.clone();
        let literal = match (&token.kind, negative) {
            (Kind::Number, _) => Number::parse(token.text, negative).map(Literal::Number),
            (Kind::Time, false) => literal::time(token.text).map(Literal::Time),
            (Kind::Quoted(text), false) => Some(Literal::Text(text.clone())),
            (Kind::Word, false) if token.is_keyword("true") => Some(Literal::Bool(true)),
            (Kind::Word, false) if token.is_keyword("false") => Some(Literal::Bool(false)),
            (Kind::Word, false) => return Err(self.expected("a value (put text in quotes)")),
            _ => return Err(self.expected("a value")),
        };
        self.advance();
        literal.ok_or_else(|| {
            let what = if token.kind == Kind::Time { "time" } else { "number of 64 bits" };
            SearchError::search(token.column, format!("{} is not a {what}: put text in quotes", Quote(token.text)))
        })
    }
}

// === impl Parser: tokens ===

impl<'a> Parser<'a> {
    fn is_negated(&self) -> bool {
        !self.nots.is_multiple_of(2)
    }

    fn advance(&mut self) -> Token<'a> {
        // After the end comes the end again.
        let next = self.rest.next().unwrap_or(Token { kind: Kind::End, text: "", ..self.next });
        mem::replace(&mut self.next, next)
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = self.next.is_symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = self.next.is_keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// The error of an unexpected token.
    fn expected(&self, what: &str) -> SearchError {
        let message = match (unsupported(&self.next), &self.next.kind) {
            (Some(reason), _) => reason.to_owned(),
            (None, Kind::End) => format!("expected {what}, but the search ends here"),
            (None, _) => format!("expected {what}, not {}", Quote(self.next.text)),
        };
        SearchError::search(self.next.column, message)
    }
}

/// The error message of a token that is not supported.
fn unsupported(token: &Token<'_>) -> Option<&'static str> {
    let is_one = |word: &&str| token.is_symbol(word) || token.is_keyword(word);
    UNSUPPORTED.iter().find(|(tokens, _)| tokens.iter().any(is_one)).map(|(_, reason)| *reason)
}

/// Joins the parts; a single part stays as it is.
fn joined(mut parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

/// A comparison with that value.
fn compared(at: usize, comparison: Comparison, value: Scalar<'static>) -> Result<Test, SearchError> {
    if matches!(value, Scalar::Bool(_)) && !matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
        return Err(SearchError::search(at, "true and false have no order: compare them by = or !="));
    }
    Ok(Test::Compare(comparison, value))
}

// === impl Subject ===

impl Subject<'_> {
    /// Fails if the field does not support the operator.
    fn check(&self, at: usize, operator: Operator, under_not: bool) -> Result<(), SearchError> {
        let reason = self.refuses(operator, under_not);
        let error = |reason| SearchError::search(at, format!("{reason}, as with {}", Quote(self.token.text)));
        reason.map_or(Ok(()), |reason| Err(error(reason)))
    }

    /// The reason for which the field does not support the operator.
    fn refuses(&self, operator: Operator, under_not: bool) -> Option<&'static str> {
        match (&self.field, operator) {
            (Field::Label(_), _) if under_not => Some("not is not supported on labels: use !="),
            (Field::Status(_) | Field::Part(..), _) if under_not => Some("not is not supported on conditions"),
            (Field::Status(_) | Field::Part(..), Operator::Null)
            | (Field::Status(_), Operator::Compare(Comparison::Equal))
            | (Field::Part(..), Operator::Compare(_)) => None,
            (Field::Status(_), _) => Some("the status of a condition supports only = and is null"),
            (Field::Part(..), _) => Some("this part of a condition supports only =, !=, <, <=, >, >= and is null"),
            (_, Operator::Like { .. }) if !matches!(self.field.kind(), FieldKind::Text | FieldKind::Json) => {
                Some("like and ilike are supported on texts only")
            }
            _ => None,
        }
    }

    /// The literal as a value that the field can be compared with.
    fn value(&self, literal: Literal, column: usize, text: &str) -> Result<Scalar<'static>, SearchError> {
        let kind = self.field.kind();
        kind.scalar(literal).ok_or_else(|| {
            let field = Quote(self.token.text);
            let message = format!("{field} is compared with {}, not with {}", kind.expected(), Quote(text));
            SearchError::search(column, message)
        })
    }
}
