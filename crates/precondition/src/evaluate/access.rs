//! Roots, members and elements.

use super::{Evaluation, Looked};
use crate::explanation::Role;
use crate::number::Number;
use crate::similar;
use crate::syntax::{Expr, Key, Root, Step};
use crate::value::{Datum, List, Traced, quoted};

/// Members of a path that are gone through in one step.
const MEMBERS_A_STEP: usize = 64;

/// Names that are compared with misspelt ones in one evaluation: predicates may miss the same member many times.
const MOST_GUESSES: usize = 1_000;

// === impl Evaluation ===

impl<'a> Evaluation<'a> {
    pub(super) fn root(&self, root: &'a Root) -> Traced<'a> {
        let found = self.context.root(root);
        let (path, notes) = match (root, found) {
            (Root::Other(name), None) => (vec!["cluster", name], vec![format!("cluster has no {}", quoted(name))]),
            (Root::Other(name), Some(_)) => (vec!["cluster", name], Vec::new()),
            (_, None) => (vec![root.name()], vec![format!("there is no {}", root.name())]),
            (_, Some(_)) => (vec![root.name()], Vec::new()),
        };
        let hidden = self.context.hides(&path);
        Traced { datum: found.map_or(Datum::Nil, Datum::of), path, hidden, notes }
    }

    pub(super) fn access(&mut self, expression: &'a Expr, base: &'a Expr, steps: &'a [Step]) -> Looked<'a> {
        let looked = self.look(base);
        let plain = looked.finding.parts.is_empty();
        let mut parts = if plain { Vec::new() } else { vec![looked.finding.clone()] };
        let Some(mut current) = looked.value else {
            return Looked::blocked(expression, Role::Value, vec![looked.finding]);
        };
        for step in steps {
            // The path that leads there is written anew with each step.
            if let Err(exhausted) = self.charge(1 + current.path.len() / MEMBERS_A_STEP) {
                return Looked::faulty(expression, Role::Value, exhausted.into(), parts);
            }
            let key = match &step.key {
                Key::Name(name) => Traced::made(Datum::Text(name)),
                Key::Computed(key) => {
                    let looked = self.look(key);
                    parts.push(looked.finding);
                    match looked.value {
                        Some(key) => key,
                        None => return Looked::blocked(expression, Role::Value, parts),
                    }
                }
            };
            match self.step(current, &key) {
                Ok(next) => current = next,
                Err(reason) => return Looked::faulty(expression, Role::Value, reason, parts),
            }
        }
        current.notes.extend(self.adapter_note(&current));
        Looked::settled(expression, Role::Value, current, parts)
    }

    /// A suggestion says more than that nobody has reported under a misspelt name.
    fn adapter_note(&self, value: &Traced<'_>) -> Option<String> {
        let suggested = value.notes.iter().any(|note| note.contains("did you mean"));
        if suggested { None } else { self.context.adapter_note(&value.path) }
    }

    fn step(&mut self, from: Traced<'a>, key: &Traced<'a>) -> Result<Traced<'a>, String> {
        match (&from.datum, &key.datum) {
            (Datum::Object(members), Datum::Text(name)) => {
                let found = members.get(*name);
                let member = self.member(&from, (name, key.hidden), found.map_or(Datum::Nil, Datum::of));
                let gap = found.is_none() && !key.hidden;
                Ok(if gap { Traced { notes: vec![self.gap(&from, name)], ..member } } else { member })
            }
            // Nothing has no members, so what is below is as absent, for the same reason.
            (Datum::Nil, Datum::Text(name)) => {
                let member = self.member(&from, (name, key.hidden), Datum::Nil);
                Ok(Traced { notes: from.notes, ..member })
            }
            (Datum::Nil, _) => Ok(from),
            (Datum::List(list), Datum::Number(Number::Integer(index))) => {
                Ok(indexed(&from, list, (*index, key.hidden)))
            }
            (Datum::List(_), _) => {
                Err(format!("{} is a list, which is asked with a whole number or with any(…)", from.place()))
            }
            (Datum::Object(_), datum) => Err(format!(
                "{} is an object, which is asked for a member by name, not by {}",
                from.place(),
                datum.kind()
            )),
            (Datum::Bool(_) | Datum::Number(_) | Datum::Text(_), _) => {
                Err(format!("{} is {} and has no members", from.place(), from.datum.kind()))
            }
        }
    }

    fn member(&self, from: &Traced<'a>, (name, secret_name): (&'a str, bool), datum: Datum<'a>) -> Traced<'a> {
        // What no root leads to has no path, but its name may still say that it is a secret.
        let mut path = from.path.clone();
        path.push(if secret_name { "…" } else { name });
        let hidden = from.hidden || secret_name || self.context.hides(&path);
        if from.path.is_empty() {
            path.clear();
        }
        Traced { datum, path, hidden, notes: Vec::new() }
    }

    /// Why a member is nil: it is not there, though maybe one of nearly the same name is.
    fn gap(&mut self, from: &Traced<'a>, name: &str) -> String {
        let missing = format!("{} has no {}", from.place(), quoted(name));
        // An adapter may have reported and not be in this document.
        let siblings = self.context.siblings(from).filter(|sibling| *sibling != name);
        let mut looked_at = 0;
        let siblings = siblings.take(MOST_GUESSES.saturating_sub(self.guesses)).inspect(|_| looked_at += 1);
        let nearest = similar::nearest(name, siblings);
        self.guesses += looked_at;
        match nearest {
            Some(sibling) => format!("{missing}, did you mean {}?", quoted(sibling)),
            None => missing,
        }
    }
}

/// Counted from zero, or backwards from -1.
fn indexed<'a>(from: &Traced<'a>, list: &List<'a>, (index, secret_index): (i128, bool)) -> Traced<'a> {
    let length = i128::try_from(list.len()).unwrap_or(i128::MAX);
    let position = if index < 0 { index + length } else { index };
    let found = usize::try_from(position).ok().and_then(|position| from.element(list, position));
    let mut element = found.unwrap_or_else(|| {
        let note = format!("{} has {length} elements, and none at {index}", from.place());
        let notes = if secret_index { Vec::new() } else { vec![note] };
        Traced { datum: Datum::Nil, path: from.path.clone(), hidden: from.hidden, notes }
    });
    element.hidden |= secret_index;
    element
}
