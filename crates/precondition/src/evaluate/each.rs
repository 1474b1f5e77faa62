//! Predicates over lists.

use super::{Evaluation, Looked};
use crate::explanation::{Finding, Role};
use crate::number::Number;
use crate::syntax::{Each, Expr, Quantifier};
use crate::value::{Datum, List, Traced};

/// Elements that are shown where none was decisive.
const MOST_SHOWN: usize = 3;
/// Predicates in predicates beyond this depth are answered, not shown: an explanation is to be read.
const DEEPEST_SHOWN: usize = 2;

// === impl Evaluation ===

impl<'a> Evaluation<'a> {
    pub(super) fn each(&mut self, expression: &'a Expr, each: &'a Each) -> Looked<'a> {
        let looked = self.look(&each.list);
        let parts = vec![looked.finding];
        let unknown = Role::Each { quantifier: each.quantifier, length: 0 };
        let Some(value) = looked.value else {
            return Looked::blocked(expression, unknown, parts);
        };
        let Datum::List(list) = &value.datum else {
            let advice = if matches!(value.datum, Datum::Nil) { "; add `?? []` if that means none" } else { "" };
            let name = each.quantifier.text();
            let reason = format!("`{name}` takes a list, but this is {}{advice}", value.told());
            return Looked::faulty(expression, unknown, reason, parts);
        };
        self.elements((expression, each), &value, list, parts)
    }

    fn elements(
        &mut self,
        (expression, each): (&'a Expr, &'a Each),
        value: &Traced<'a>,
        list: &List<'a>,
        mut parts: Vec<Finding>,
    ) -> Looked<'a> {
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
                return Looked::blocked(expression, role, parts);
            };
            stopped = stop == Some(truth);
            if stopped {
                // What decided stands alone; the others had no say.
                parts.truncate(1);
            }
            if self.elements.len() < DEEPEST_SHOWN && parts.len() <= MOST_SHOWN {
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
        Looked::settled(expression, role, Traced { hidden, ..Traced::made(datum) }, parts)
    }
}
