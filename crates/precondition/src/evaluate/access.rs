//! Evaluates roots, members and elements.

use super::{Evaluated, Evaluator};
use crate::finding::Role;
use crate::number::Number;
use crate::suggestion;
use crate::syntax::{Expr, Key, Root, Step};
use crate::value::{Datum, List, Traced, quoted};

/// Members of a path that one step covers.
const MEMBERS_PER_STEP: usize = 64;

/// Maximum names that one evaluation compares with misspelt ones: a predicate may miss the same member many times.
const MAX_SUGGESTIONS: usize = 1_000;

// === impl Evaluator ===

impl<'a> Evaluator<'a> {
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

    pub(super) fn access(&mut self, expression: &'a Expr, base: &'a Expr, steps: &'a [Step]) -> Evaluated<'a> {
        let evaluated = self.evaluate(base);
        let plain = evaluated.finding.parts.is_empty();
        let mut parts = if plain { Vec::new() } else { vec![evaluated.finding.clone()] };
        let Some(mut current) = evaluated.value else {
            return Evaluated::blocked(expression, Role::Value, vec![evaluated.finding]);
        };
        for step in steps {
            // Each step copies the path.
            if let Err(exhausted) = self.charge(1 + current.path.len() / MEMBERS_PER_STEP) {
                return Evaluated::failed(expression, Role::Value, exhausted.into(), parts);
            }
            let key = match &step.key {
                Key::Name(name) => Traced::made(Datum::Text(name)),
                Key::Computed(key) => {
                    let evaluated = self.evaluate(key);
                    parts.push(evaluated.finding);
                    match evaluated.value {
                        Some(key) => key,
                        None => return Evaluated::blocked(expression, Role::Value, parts),
                    }
                }
            };
            match self.step(current, &key) {
                Ok(next) => current = next,
                Err(reason) => return Evaluated::failed(expression, Role::Value, reason, parts),
            }
        }
        current.notes.extend(self.adapter_note(&current));
        Evaluated::value(expression, Role::Value, current, parts)
    }

    /// Returns the note about the adapter, unless a suggestion already names the misspelt one.
    fn adapter_note(&self, value: &Traced<'_>) -> Option<String> {
        let suggested = value.notes.iter().any(|note| note.contains("did you mean"));
        if suggested { None } else { self.context.adapter_note(&value.path) }
    }

    fn step(&mut self, from: Traced<'a>, key: &Traced<'a>) -> Result<Traced<'a>, String> {
        match (&from.datum, &key.datum) {
            (Datum::Object(members), Datum::Text(name)) => {
                let found = members.get(*name);
                let member = self.member(&from, name, key.hidden, found.map_or(Datum::Nil, Datum::of));
                let is_missing = found.is_none() && !key.hidden;
                Ok(if is_missing { Traced { notes: vec![self.missing_note(&from, name)], ..member } } else { member })
            }
            // A member of nil is nil for the same reason.
            (Datum::Nil, Datum::Text(name)) => {
                let member = self.member(&from, name, key.hidden, Datum::Nil);
                Ok(Traced { notes: from.notes, ..member })
            }
            (Datum::Nil, _) => Ok(from),
            (Datum::List(list), Datum::Number(Number::Integer(index))) => Ok(indexed(&from, list, *index, key.hidden)),
            (Datum::List(_), _) => {
                Err(format!("{} is a list: use a whole number as the index, or any(…)", from.location()))
            }
            (Datum::Object(_), datum) => Err(format!(
                "{} is an object: its members have names, so the index cannot be {}",
                from.location(),
                datum.kind()
            )),
            (Datum::Bool(_) | Datum::Number(_) | Datum::Text(_), _) => {
                Err(format!("{} is {} and has no members", from.location(), from.datum.kind()))
            }
        }
    }

    fn member(&self, from: &Traced<'a>, name: &'a str, secret_name: bool, datum: Datum<'a>) -> Traced<'a> {
        // A computed value has no path, but the name of its member may still be secret.
        let mut path = from.path.clone();
        path.push(if secret_name { "…" } else { name });
        let hidden = from.hidden || secret_name || self.context.hides(&path);
        if from.path.is_empty() {
            path.clear();
        }
        Traced { datum, path, hidden, notes: Vec::new() }
    }

    /// Returns the note that a member does not exist, with a suggestion if a similar one does.
    fn missing_note(&mut self, from: &Traced<'a>, name: &str) -> String {
        let missing = format!("{} has no {}", from.location(), quoted(name));
        // An adapter may have reported without being in this document.
        let siblings = self.context.siblings(from).filter(|sibling| *sibling != name);
        let mut compared = 0;
        let siblings = siblings.take(MAX_SUGGESTIONS.saturating_sub(self.suggestions)).inspect(|_| compared += 1);
        let nearest = suggestion::nearest(name, siblings);
        self.suggestions += compared;
        match nearest {
            Some(sibling) => format!("{missing}, did you mean {}?", quoted(sibling)),
            None => missing,
        }
    }
}

/// Returns the element at an index, counted from zero or backwards from -1.
fn indexed<'a>(from: &Traced<'a>, list: &List<'a>, index: i128, secret_index: bool) -> Traced<'a> {
    let length = i128::try_from(list.len()).unwrap_or(i128::MAX);
    let position = if index < 0 { index + length } else { index };
    let found = usize::try_from(position).ok().and_then(|position| from.element(list, position));
    let mut element = found.unwrap_or_else(|| {
        let note = format!("{} has {length} elements, and none at {index}", from.location());
        let notes = if secret_index { Vec::new() } else { vec![note] };
        Traced { datum: Datum::Nil, path: from.path.clone(), hidden: from.hidden, notes }
    });
    element.hidden |= secret_index;
    element
}
