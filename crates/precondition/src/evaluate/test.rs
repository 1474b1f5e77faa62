//! Evaluates comparisons.

use std::cmp::Ordering;

use super::{BYTES_PER_STEP, Evaluated, Evaluator, Exhausted};
use crate::finding::Role;
use crate::pattern;
use crate::syntax::{Expr, Operator, Test};
use crate::value::{Datum, Traced};

/// Steps for compiling a pattern that is not a literal, and so is compiled each time: the minimum, and for each byte, as
/// three bytes may match any letter of Unicode.
const STEPS_PER_PATTERN: usize = 1_000;
const STEPS_PER_PATTERN_BYTE: usize = 32;
/// Steps for each matched byte: a pattern may have some thousand states.
const STEPS_PER_MATCHED_BYTE: usize = 8;

// === impl Evaluator ===

impl<'a> Evaluator<'a> {
    pub(super) fn test(&mut self, expression: &'a Expr, test: &'a Test) -> Evaluated<'a> {
        let left = self.evaluate(&test.left);
        let Some(left_value) = left.value else {
            let parts = vec![left.finding, super::not_evaluated(&test.right)];
            return Evaluated::blocked(expression, Role::Test, parts);
        };
        let right = self.evaluate(&test.right);
        let parts = vec![left.finding, right.finding];
        let Some(right_value) = right.value else {
            return Evaluated::blocked(expression, Role::Test, parts);
        };
        match self.answer(test, &left_value, &right_value) {
            Ok(truth) => {
                let mut evaluated = Evaluated::truth(expression, Role::Test, truth != test.negated, parts);
                evaluated.finding.notes.extend(mismatch(test.operator, &left_value, &right_value));
                evaluated
            }
            Err(reason) => Evaluated::failed(expression, Role::Test, reason, parts),
        }
    }

    fn answer(&mut self, test: &'a Test, left: &Traced<'a>, right: &Traced<'a>) -> Result<bool, String> {
        if let (Datum::Text(left), Datum::Text(right)) = (&left.datum, &right.datum)
            && test.operator.orders()
        {
            self.charge(left.len().min(right.len()) / BYTES_PER_STEP)?;
        }
        let ordering = |satisfies: fn(Ordering) -> bool| ordered(test.operator, left, right).map(satisfies);
        match test.operator {
            Operator::Equal => Ok(self.equal(&left.datum, &right.datum)?),
            Operator::NotEqual => Ok(!self.equal(&left.datum, &right.datum)?),
            Operator::Less => ordering(Ordering::is_lt),
            Operator::LessOrEqual => ordering(Ordering::is_le),
            Operator::Greater => ordering(Ordering::is_gt),
            Operator::GreaterOrEqual => ordering(Ordering::is_ge),
            Operator::In => self.within(left, right),
            Operator::Matches | Operator::Contains | Operator::StartsWith | Operator::EndsWith => {
                self.textual(test, left, right)
            }
        }
    }

    /// Deep, and without recursion: documents may be deeper than the stack.
    fn equal(&mut self, left: &Datum<'a>, right: &Datum<'a>) -> Result<bool, Exhausted> {
        let mut open = vec![(left.clone(), right.clone())];
        while let Some(pair) = open.pop() {
            self.charge(1)?;
            let same = match pair {
                (Datum::Nil, Datum::Nil) => true,
                (Datum::Bool(left), Datum::Bool(right)) => left == right,
                (Datum::Number(left), Datum::Number(right)) => left == right,
                (Datum::Text(left), Datum::Text(right)) => {
                    self.charge(left.len().min(right.len()) / BYTES_PER_STEP)?;
                    left == right
                }
                (Datum::List(left), Datum::List(right)) if left.len() == right.len() => {
                    self.charge(left.len())?;
                    open.extend((0..left.len()).filter_map(|index| Some((left.datum(index)?, right.datum(index)?))));
                    true
                }
                (Datum::Object(left), Datum::Object(right)) if left.len() == right.len() => {
                    self.charge(left.len())?;
                    let pairs =
                        left.iter().map_while(|(name, left)| Some((Datum::of(left), Datum::of(right.get(name)?))));
                    let before = open.len();
                    open.extend(pairs);
                    open.len() - before == left.len()
                }
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn within(&mut self, left: &Traced<'a>, right: &Traced<'a>) -> Result<bool, String> {
        match &right.datum {
            // As in Go Expr: nil contains nothing.
            Datum::Nil => Ok(false),
            Datum::List(list) => {
                for index in 0..list.len() {
                    if let Some(element) = list.datum(index)
                        && self.equal(&left.datum, &element)?
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Datum::Object(members) => match &left.datum {
                Datum::Text(name) => Ok(members.contains_key(*name)),
                _ => Err(format!("members of an object have names, but left side is {}", left.described())),
            },
            Datum::Text(_) => {
                Err("`in` takes a list or an object on the right; for a text write `… contains …`".to_owned())
            }
            Datum::Bool(_) | Datum::Number(_) => {
                Err(format!("`in` takes a list or an object, but right side is {}", right.described()))
            }
        }
    }

    fn textual(&mut self, test: &'a Test, left: &Traced<'a>, right: &Traced<'a>) -> Result<bool, String> {
        let operator = test.operator.text();
        let (text, operand) = match (&left.datum, &right.datum) {
            (Datum::Text(text), Datum::Text(operand)) => (*text, *operand),
            // As in Go Expr: an absent text has no content.
            (Datum::Nil | Datum::Text(_), Datum::Nil) | (Datum::Nil, Datum::Text(_)) => return Ok(false),
            (Datum::List(_), _) if test.operator == Operator::Contains => {
                return Err("`contains` takes a text on the left; for a list write `… in list`".to_owned());
            }
            (Datum::Nil | Datum::Text(_), _) => {
                return Err(format!("`{operator}` takes a text, but right side is {}", right.described()));
            }
            _ => return Err(format!("`{operator}` takes a text, but left side is {}", left.described())),
        };
        self.charge(match test.operator {
            Operator::Matches => text.len().saturating_mul(STEPS_PER_MATCHED_BYTE),
            _ => text.len() / BYTES_PER_STEP,
        })?;
        match test.operator {
            Operator::Contains => Ok(text.contains(operand)),
            Operator::StartsWith => Ok(text.starts_with(operand)),
            Operator::EndsWith => Ok(text.ends_with(operand)),
            _ => self.matched(test, text, operand, right.hidden),
        }
    }

    fn matched(&mut self, test: &Test, text: &str, operand: &str, secret: bool) -> Result<bool, String> {
        if let Some(pattern) = &test.pattern {
            return Ok(pattern.is_match(text));
        }
        self.charge(STEPS_PER_PATTERN.saturating_add(operand.len().saturating_mul(STEPS_PER_PATTERN_BYTE)))?;
        match pattern::compile(operand) {
            Ok(pattern) => Ok(pattern.is_match(text)),
            Err(_) if secret => Err("right side is not a pattern".to_owned()),
            Err(fault) => Err(format!("right side is not a pattern: {fault}")),
        }
    }
}

fn ordered(operator: Operator, left: &Traced<'_>, right: &Traced<'_>) -> Result<Ordering, String> {
    match (&left.datum, &right.datum) {
        (Datum::Number(left), Datum::Number(right)) => Ok(left.compare(*right)),
        (Datum::Text(left), Datum::Text(right)) => Ok(left.cmp(right)),
        _ => {
            let (left, right) = (left.described(), right.described());
            let operator = operator.text();
            Err(format!("`{operator}` takes two numbers or two texts, but left side is {left}, right side is {right}"))
        }
    }
}

/// Returns a note for operands of different types, such as `spec.nodes == "3"`, which are never equal.
fn mismatch(operator: Operator, left: &Traced<'_>, right: &Traced<'_>) -> Option<String> {
    let (left, right) = (left.datum.kind(), right.datum.kind());
    let compared = matches!(operator, Operator::Equal | Operator::NotEqual);
    let nil = crate::finding::Type::Nil;
    (compared && left != right && left != nil && right != nil).then(|| format!("{left} never equals {right}"))
}
