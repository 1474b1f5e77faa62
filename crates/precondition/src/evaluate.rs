//! Evaluates an expression in a context, and records the finding for each part.

mod access;
mod each;
mod test;

use std::ops::Range;

use crate::context::Context;
use crate::finding::{Answer, Finding, Role};
use crate::number::Number;
use crate::syntax::{Choice, Expr, Kind};
use crate::value::{Datum, List, Traced};

/// Maximum steps: one for each evaluated part, and more for long texts and patterns, so no expression runs for long.
const MAX_STEPS: usize = 100_000;
/// Bytes of a text that one step covers.
const BYTES_PER_STEP: usize = 64;

/// Returns the expression's truth value, if it has one, and the findings.
pub(crate) fn evaluate<'a>(expression: &'a Expr, context: &'a Context<'a>) -> (Option<bool>, Finding) {
    let mut evaluation = Evaluator { context, steps: 0, suggestions: 0, elements: Vec::new() };
    evaluation.condition(expression, "a precondition")
}

struct Evaluator<'a> {
    context: &'a Context<'a>,
    steps: usize,
    suggestions: usize,
    /// The values of `#`, innermost last.
    elements: Vec<Traced<'a>>,
}

/// A value and its finding. Without a value, the finding has the reason.
struct Evaluated<'a> {
    value: Option<Traced<'a>>,
    finding: Finding,
}

/// The evaluation took too many steps.
struct Exhausted;

// === impl Evaluator ===

impl<'a> Evaluator<'a> {
    fn charge(&mut self, steps: usize) -> Result<(), Exhausted> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS { Err(Exhausted) } else { Ok(()) }
    }

    fn evaluate(&mut self, expression: &'a Expr) -> Evaluated<'a> {
        if let Err(exhausted) = self.charge(1) {
            return Evaluated::failed(expression, Role::Value, exhausted.into(), Vec::new());
        }
        let literal = |datum| Evaluated::value(expression, Role::Literal, Traced::made(datum), Vec::new());
        match &expression.kind {
            Kind::Nil => literal(Datum::Nil),
            Kind::Bool(value) => literal(Datum::Bool(*value)),
            Kind::Number(number) => literal(Datum::Number(*number)),
            Kind::Text(text) => literal(Datum::Text(text)),
            Kind::List(elements) => self.list(expression, elements),
            Kind::Root(root) => Evaluated::value(expression, Role::Value, self.root(root), Vec::new()),
            Kind::Element => {
                let element = self.elements.last().cloned().unwrap_or_else(|| Traced::made(Datum::Nil));
                Evaluated::value(expression, Role::Value, element, Vec::new())
            }
            Kind::Access { base, steps } => self.access(expression, base, steps),
            Kind::Not(inner) => self.negation(expression, inner),
            Kind::And(operands) => self.junction(expression, operands, Role::And),
            Kind::Or(operands) => self.junction(expression, operands, Role::Or),
            Kind::Coalesce(operands) => self.coalesce(expression, operands),
            Kind::Test(test) => self.test(expression, test),
            Kind::Choice(choice) => self.choice(expression, choice),
            Kind::Length(inner) => self.length(expression, inner),
            Kind::Each(each) => self.each(expression, each),
        }
    }

    /// Evaluates a truth value as the operand of `operator`.
    fn condition(&mut self, expression: &'a Expr, operator: &str) -> (Option<bool>, Finding) {
        let Evaluated { value, mut finding } = self.evaluate(expression);
        let Some(value) = value else {
            return (None, finding);
        };
        if let Datum::Bool(truth) = value.datum {
            return (Some(truth), finding);
        }
        let advice = match (&value.datum, operator) {
            (Datum::Nil, _) => "; add `?? false` if that means no",
            (Datum::Text(_), _) if value.shown().is_status() => "; compare it with `== \"True\"`",
            (_, "`not`") => "; `not` binds tighter than comparisons, so these need parentheses",
            _ => "",
        };
        let reason = format!("{operator} takes true or false, but this is {}{advice}", value.described());
        finding.answer = Answer::Unanswerable(reason);
        (None, finding)
    }

    fn list(&mut self, expression: &'a Expr, elements: &'a [Expr]) -> Evaluated<'a> {
        let mut parts = Vec::new();
        let mut made = Vec::new();
        let mut literal = true;
        for element in elements {
            let evaluated = self.evaluate(element);
            literal &= evaluated.finding.role == Role::Literal;
            parts.push(evaluated.finding);
            match evaluated.value {
                Some(value) => made.push(value),
                None => return Evaluated::blocked(expression, Role::Value, parts),
            }
        }
        let role = if literal { Role::Literal } else { Role::Value };
        Evaluated::value(expression, role, Traced::made(Datum::List(List::Made(made.into()))), parts)
    }

    fn negation(&mut self, expression: &'a Expr, inner: &'a Expr) -> Evaluated<'a> {
        let (truth, finding) = self.condition(inner, "`not`");
        match truth {
            Some(truth) => Evaluated::truth(expression, Role::Not, !truth, vec![finding]),
            None => Evaluated::blocked(expression, Role::Not, vec![finding]),
        }
    }

    fn junction(&mut self, expression: &'a Expr, operands: &'a [Expr], role: Role) -> Evaluated<'a> {
        let (operator, decisive) = if role == Role::And { ("`and`", false) } else { ("`or`", true) };
        let mut parts = Vec::with_capacity(operands.len());
        let mut rest = operands.iter();
        let mut answer = Some(!decisive);
        for operand in rest.by_ref() {
            let (truth, finding) = self.condition(operand, operator);
            parts.push(finding);
            if truth != Some(!decisive) {
                answer = truth;
                break;
            }
        }
        parts.extend(rest.map(not_evaluated));
        match answer {
            Some(truth) => Evaluated::truth(expression, role, truth, parts),
            None => Evaluated::blocked(expression, role, parts),
        }
    }

    fn coalesce(&mut self, expression: &'a Expr, operands: &'a [Expr]) -> Evaluated<'a> {
        let mut parts = Vec::with_capacity(operands.len());
        let mut rest = operands.iter();
        let mut last = None;
        for operand in rest.by_ref() {
            let evaluated = self.evaluate(operand);
            parts.push(evaluated.finding);
            let Some(value) = evaluated.value else {
                parts.extend(rest.map(not_evaluated));
                return Evaluated::blocked(expression, Role::Value, parts);
            };
            let found = !matches!(value.datum, Datum::Nil);
            last = Some(value);
            if found {
                break;
            }
        }
        parts.extend(rest.map(not_evaluated));
        let value = last.unwrap_or_else(|| Traced::made(Datum::Nil));
        Evaluated::value(expression, Role::Value, value, parts)
    }

    fn choice(&mut self, expression: &'a Expr, choice: &'a Choice) -> Evaluated<'a> {
        let (truth, condition) = self.condition(&choice.condition, "`… ? … : …`");
        let Some(truth) = truth else {
            let parts = vec![condition, not_evaluated(&choice.then), not_evaluated(&choice.otherwise)];
            return Evaluated::blocked(expression, Role::Choice, parts);
        };
        let (value, parts) = if truth {
            let evaluated = self.evaluate(&choice.then);
            (evaluated.value, vec![condition, evaluated.finding, not_evaluated(&choice.otherwise)])
        } else {
            let evaluated = self.evaluate(&choice.otherwise);
            (evaluated.value, vec![condition, not_evaluated(&choice.then), evaluated.finding])
        };
        match value {
            Some(value) => Evaluated::value(expression, Role::Choice, value, parts),
            None => Evaluated::blocked(expression, Role::Choice, parts),
        }
    }

    fn length(&mut self, expression: &'a Expr, inner: &'a Expr) -> Evaluated<'a> {
        let evaluated = self.evaluate(inner);
        let parts = vec![evaluated.finding];
        let Some(value) = evaluated.value else {
            return Evaluated::blocked(expression, Role::Value, parts);
        };
        let length = match &value.datum {
            Datum::Text(text) => match self.charge(text.len() / BYTES_PER_STEP) {
                Ok(()) => text.chars().count(),
                Err(exhausted) => return Evaluated::failed(expression, Role::Value, exhausted.into(), parts),
            },
            Datum::List(list) => list.len(),
            Datum::Object(members) => members.len(),
            Datum::Nil | Datum::Bool(_) | Datum::Number(_) => {
                let reason = format!("`len` takes a text, a list or an object, but this is {}", value.described());
                return Evaluated::failed(expression, Role::Value, reason, parts);
            }
        };
        let length = Datum::Number(Number::Integer(i128::try_from(length).unwrap_or(i128::MAX)));
        Evaluated::value(expression, Role::Value, Traced { hidden: value.hidden, ..Traced::made(length) }, parts)
    }
}

// === impl Evaluated ===

impl<'a> Evaluated<'a> {
    fn value(expression: &Expr, role: Role, value: Traced<'a>, parts: Vec<Finding>) -> Self {
        let answer = Answer::Is(value.shown());
        let finding = Finding { notes: value.notes.clone(), ..finding(&expression.span, role, answer, parts) };
        Self { value: Some(value), finding }
    }

    fn truth(expression: &Expr, role: Role, truth: bool, parts: Vec<Finding>) -> Self {
        Self::value(expression, role, Traced::made(Datum::Bool(truth)), parts)
    }

    fn failed(expression: &Expr, role: Role, reason: String, parts: Vec<Finding>) -> Self {
        Self { value: None, finding: finding(&expression.span, role, Answer::Unanswerable(reason), parts) }
    }

    fn blocked(expression: &Expr, role: Role, parts: Vec<Finding>) -> Self {
        Self { value: None, finding: finding(&expression.span, role, Answer::PartUnanswerable, parts) }
    }
}

// === impl Exhausted ===

impl From<Exhausted> for String {
    fn from(_: Exhausted) -> Self {
        format!("the expression takes more than {MAX_STEPS} steps on this document")
    }
}

fn finding(span: &Range<usize>, role: Role, answer: Answer, parts: Vec<Finding>) -> Finding {
    Finding { span: span.clone(), answer, notes: Vec::new(), parts, role, element: None }
}

fn not_evaluated(expression: &Expr) -> Finding {
    finding(&expression.span, Role::Value, Answer::NotEvaluated, Vec::new())
}
