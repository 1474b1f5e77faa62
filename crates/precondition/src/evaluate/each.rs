//! Evaluates predicates over lists.

use super::{Evaluated, Evaluator};
use crate::finding::{Finding, Role};
use crate::number::Number;
use crate::syntax::{Each, Expr, Quantifier};
use crate::value::{Datum, List, Traced};

/// Maximum elements in an explanation if none was decisive.
const MAX_SHOWN: usize = 3;
/// Maximum depth of nested predicates in an explanation, which people must be able to read.
const MAX_SHOWN_DEPTH: usize = 2;

/// A quantifier with its evaluated list.
struct Quantified<'a, 'v> {
    expression: &'a Expr,
    each: &'a Each,
    value: &'v Traced<'a>,
    list: &'v List<'a>,
}

// === impl Evaluator ===

impl<'a> Evaluator<'a> {
    pub(super) fn each(&mut self, expression: &'a Expr, each: &'a Each) -> Evaluated<'a> {
        let evaluated = self.evaluate(&each.list);
        let parts = vec![evaluated.finding];
        let unknown = Role::Each { quantifier: each.quantifier, length: 0 };
        let Some(value) = evaluated.value else {
            return Evaluated::blocked(expression, unknown, parts);
        };
        let Datum::List(list) = &value.datum else {
            let advice = if matches!(value.datum, Datum::Nil) { "; add `?? []` if that means none" } else { "" };
            let name = each.quantifier.text();
            let reason = format!("`{name}` takes a list, but this is {}{advice}", value.described());
            return Evaluated::failed(expression, unknown, reason, parts);
        };
        self.elements(&Quantified { expression, each, value: &value, list }, parts)
    }

    fn elements(&mut self, quantified: &Quantified<'a, '_>, mut parts: Vec<Finding>) -> Evaluated<'a> {
        let Quantified { expression, each, value, list } = *quantified;
        let quantifier = each.quantifier;
        let role = Role::Each { quantifier, length: list.len() };
        let stop = match quantifier {
            Quantifier::Any | Quantifier::None => Some(true),
            Quantifier::All => Some(false),
            Quantifier::Filter | Quantifier::Count => None,
        };
        let mut chosen = Vec::new();
        let mut stopped = false;
        for index in 0..list.len() {
            let Some(element) = value.element(list, index) else {
                break;
            };
            self.elements.push(element);
            let (truth, finding) = self.condition(&each.predicate, "a predicate");
            let element = self.elements.pop();
            let finding = Finding { element: Some(index), ..finding };
            let Some(truth) = truth else {
                parts.push(finding);
                return Evaluated::blocked(expression, role, parts);
            };
            stopped = stop == Some(truth);
            if stopped {
                // The decisive element stands alone.
                parts.truncate(1);
            }
            if self.elements.len() < MAX_SHOWN_DEPTH && parts.len() <= MAX_SHOWN {
                parts.push(finding);
            }
            chosen.extend(element.filter(|_| truth));
            if stopped {
                break;
            }
        }
        let datum = match quantifier {
            Quantifier::Any => Datum::Bool(stopped),
            Quantifier::All | Quantifier::None => Datum::Bool(!stopped),
            Quantifier::Filter => Datum::List(List::Made(chosen.into())),
            Quantifier::Count => Datum::Number(Number::Integer(i128::try_from(chosen.len()).unwrap_or(i128::MAX))),
        };
        let hidden = value.hidden && matches!(quantifier, Quantifier::Filter | Quantifier::Count);
        Evaluated::value(expression, role, Traced { hidden, ..Traced::made(datum) }, parts)
    }
}
