//! From an expression and its context to an answer, with everything that was found on the way.

mod access;
mod each;
mod test;

use std::ops::Range;

use crate::context::Context;
use crate::explanation::{Answer, Finding, Role};
use crate::number::Number;
use crate::syntax::{Choice, Expr, Kind};
use crate::value::{Datum, List, Traced};

/// One for each part that is looked at, and more for long texts and patterns: no expression runs for long.
const MOST_STEPS: usize = 100_000;
/// Bytes of a text that are gone through in one step.
const BYTES_A_STEP: usize = 64;

/// Answers with the whole expression's truth value, if it has one.
pub(crate) fn evaluate<'a>(expression: &'a Expr, context: &'a Context<'a>) -> (Option<bool>, Finding) {
    let mut evaluation = Evaluation { context, steps: 0, guesses: 0, elements: Vec::new() };
    evaluation.condition(expression, "a precondition")
}

struct Evaluation<'a> {
    context: &'a Context<'a>,
    steps: usize,
    guesses: usize,
    /// What `#` is, innermost last.
    elements: Vec<Traced<'a>>,
}

/// A value, and the finding for it. Without a value, the finding says why.
struct Looked<'a> {
    value: Option<Traced<'a>>,
    finding: Finding,
}

/// The evaluation took too many steps.
struct Exhausted;

// === impl Evaluation ===

impl<'a> Evaluation<'a> {
    fn charge(&mut self, steps: usize) -> Result<(), Exhausted> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MOST_STEPS { Err(Exhausted) } else { Ok(()) }
    }

    fn look(&mut self, expression: &'a Expr) -> Looked<'a> {
        if let Err(exhausted) = self.charge(1) {
            return Looked::faulty(expression, Role::Value, exhausted.into(), Vec::new());
        }
        let literal = |datum| Looked::settled(expression, Role::Literal, Traced::made(datum), Vec::new());
        match &expression.kind {
            Kind::Nil => literal(Datum::Nil),
            Kind::Bool(value) => literal(Datum::Bool(*value)),
            Kind::Number(number) => literal(Datum::Number(*number)),
            Kind::Text(text) => literal(Datum::Text(text)),
            Kind::List(elements) => self.list(expression, elements),
            Kind::Root(root) => Looked::settled(expression, Role::Value, self.root(root), Vec::new()),
            Kind::Element => {
                let element = self.elements.last().cloned().unwrap_or_else(|| Traced::made(Datum::Nil));
                Looked::settled(expression, Role::Value, element, Vec::new())
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

    /// Looks for a truth value, which `who` takes.
    fn condition(&mut self, expression: &'a Expr, who: &str) -> (Option<bool>, Finding) {
        let Looked { value, mut finding } = self.look(expression);
        let Some(value) = value else {
            return (None, finding);
        };
        if let Datum::Bool(truth) = value.datum {
            return (Some(truth), finding);
        }
        let advice = match (&value.datum, who) {
            (Datum::Nil, _) => "; add `?? false` if that means no",
            (Datum::Text(_), _) if value.shown().is_status() => "; compare it with `== \"True\"`",
            (_, "`not`") => "; `not` binds tighter than comparisons, so these need parentheses",
            _ => "",
        };
        let reason = format!("{who} takes true or false, but this is {}{advice}", value.told());
        finding.answer = Answer::Unanswerable(reason);
        (None, finding)
    }

    fn list(&mut self, expression: &'a Expr, elements: &'a [Expr]) -> Looked<'a> {
        let mut parts = Vec::new();
        let mut made = Vec::new();
        let mut literal = true;
        for element in elements {
            let looked = self.look(element);
            literal &= looked.finding.role == Role::Literal;
            parts.push(looked.finding);
            match looked.value {
                Some(value) => made.push(value),
                None => return Looked::blocked(expression, Role::Value, parts),
            }
        }
        let role = if literal { Role::Literal } else { Role::Value };
        Looked::settled(expression, role, Traced::made(Datum::List(List::Made(made.into()))), parts)
    }

    fn negation(&mut self, expression: &'a Expr, inner: &'a Expr) -> Looked<'a> {
        let (truth, finding) = self.condition(inner, "`not`");
        match truth {
            Some(truth) => Looked::truth(expression, Role::Not, !truth, vec![finding]),
            None => Looked::blocked(expression, Role::Not, vec![finding]),
        }
    }

    fn junction(&mut self, expression: &'a Expr, operands: &'a [Expr], role: Role) -> Looked<'a> {
        let (who, decisive) = if role == Role::And { ("`and`", false) } else { ("`or`", true) };
        let mut parts = Vec::with_capacity(operands.len());
        let mut rest = operands.iter();
        let mut answer = Some(!decisive);
        for operand in rest.by_ref() {
            let (truth, finding) = self.condition(operand, who);
            parts.push(finding);
            if truth != Some(!decisive) {
                answer = truth;
                break;
            }
        }
        parts.extend(rest.map(not_looked_at));
        match answer {
            Some(truth) => Looked::truth(expression, role, truth, parts),
            None => Looked::blocked(expression, role, parts),
        }
    }

    fn coalesce(&mut self, expression: &'a Expr, operands: &'a [Expr]) -> Looked<'a> {
        let mut parts = Vec::with_capacity(operands.len());
        let mut rest = operands.iter();
        let mut last = None;
        for operand in rest.by_ref() {
            let looked = self.look(operand);
            parts.push(looked.finding);
            let Some(value) = looked.value else {
                parts.extend(rest.map(not_looked_at));
                return Looked::blocked(expression, Role::Value, parts);
            };
            let found = !matches!(value.datum, Datum::Nil);
            last = Some(value);
            if found {
                break;
            }
        }
        parts.extend(rest.map(not_looked_at));
        let value = last.unwrap_or_else(|| Traced::made(Datum::Nil));
        Looked::settled(expression, Role::Value, value, parts)
    }

    fn choice(&mut self, expression: &'a Expr, choice: &'a Choice) -> Looked<'a> {
        let (truth, condition) = self.condition(&choice.condition, "`… ? … : …`");
        let Some(truth) = truth else {
            let parts = vec![condition, not_looked_at(&choice.then), not_looked_at(&choice.otherwise)];
            return Looked::blocked(expression, Role::Choice, parts);
        };
        let (value, parts) = if truth {
            let looked = self.look(&choice.then);
            (looked.value, vec![condition, looked.finding, not_looked_at(&choice.otherwise)])
        } else {
            let looked = self.look(&choice.otherwise);
            (looked.value, vec![condition, not_looked_at(&choice.then), looked.finding])
        };
        match value {
            Some(value) => Looked::settled(expression, Role::Choice, value, parts),
            None => Looked::blocked(expression, Role::Choice, parts),
        }
    }

    fn length(&mut self, expression: &'a Expr, inner: &'a Expr) -> Looked<'a> {
        let looked = self.look(inner);
        let parts = vec![looked.finding];
        let Some(value) = looked.value else {
            return Looked::blocked(expression, Role::Value, parts);
        };
        let length = match &value.datum {
            Datum::Text(text) => match self.charge(text.len() / BYTES_A_STEP) {
                Ok(()) => text.chars().count(),
                Err(exhausted) => return Looked::faulty(expression, Role::Value, exhausted.into(), parts),
            },
            Datum::List(list) => list.len(),
            Datum::Object(members) => members.len(),
            Datum::Nil | Datum::Bool(_) | Datum::Number(_) => {
                let reason = format!("`len` takes a text, a list or an object, but this is {}", value.told());
                return Looked::faulty(expression, Role::Value, reason, parts);
            }
        };
        let length = Datum::Number(Number::Integer(i128::try_from(length).unwrap_or(i128::MAX)));
        Looked::settled(expression, Role::Value, Traced { hidden: value.hidden, ..Traced::made(length) }, parts)
    }
}

// === impl Looked ===

impl<'a> Looked<'a> {
    fn settled(expression: &Expr, role: Role, value: Traced<'a>, parts: Vec<Finding>) -> Self {
        let answer = Answer::Is(value.shown());
        let finding = Finding { notes: value.notes.clone(), ..finding(&expression.span, role, answer, parts) };
        Self { value: Some(value), finding }
    }

    fn truth(expression: &Expr, role: Role, truth: bool, parts: Vec<Finding>) -> Self {
        Self::settled(expression, role, Traced::made(Datum::Bool(truth)), parts)
    }

    fn faulty(expression: &Expr, role: Role, reason: String, parts: Vec<Finding>) -> Self {
        Self { value: None, finding: finding(&expression.span, role, Answer::Unanswerable(reason), parts) }
    }

    fn blocked(expression: &Expr, role: Role, parts: Vec<Finding>) -> Self {
        Self { value: None, finding: finding(&expression.span, role, Answer::PartUnanswerable, parts) }
    }
}

// === impl Exhausted ===

impl From<Exhausted> for String {
    fn from(_: Exhausted) -> Self {
        format!("the expression takes more than {MOST_STEPS} steps on this document")
    }
}

fn finding(span: &Range<usize>, role: Role, answer: Answer, parts: Vec<Finding>) -> Finding {
    Finding { span: span.clone(), answer, notes: Vec::new(), parts, role, element: None }
}

fn not_looked_at(expression: &Expr) -> Finding {
    finding(&expression.span, Role::Value, Answer::NotLookedAt, Vec::new())
}
