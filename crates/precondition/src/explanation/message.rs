//! Renders an explanation as sentences.

use std::fmt;

use crate::finding::{Answer, Finding, Role};
use crate::syntax::Quantifier;
use crate::text::shortened;
use crate::value::noted;

/// Maximum characters of the source in one line, and lines of one explanation.
const MAX_SOURCE: usize = 120;
const MAX_LINES: usize = 20;
/// Maximum reasons for one element of a list, and characters of a line, which may have several elements of several lists.
const MAX_REASONS: usize = 3;
const MAX_LINE: usize = 2_000;

pub(super) fn lines(source: &str, root: &Finding) -> Vec<String> {
    let renderer = Renderer { source };
    let mut lines = match unanswerable(root) {
        Some((finding, reason)) => vec![renderer.cannot(finding, reason)],
        None if root.is(true) => vec![renderer.is(root)],
        None => renderer.causes(root),
    };
    truncate(&mut lines, MAX_LINES);
    lines.into_iter().map(|line| shortened(&line, MAX_LINE)).collect()
}

/// Keeps the first `max` lines and adds the number of further ones.
fn truncate(lines: &mut Vec<String>, max: usize) {
    if lines.len() > max {
        let more = lines.len() - max;
        lines.truncate(max);
        lines.push(format!("… and {more} more"));
    }
}

pub(super) fn tree(source: &str, root: &Finding, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let renderer = Renderer { source };
    let mut open = vec![(0, root)];
    let mut first = true;
    while let Some((depth, finding)) = open.pop() {
        formatter.write_str(if first { "" } else { "\n" })?;
        first = false;
        write!(formatter, "{:1$}", "", depth * 2)?;
        if let Some(element) = finding.element {
            write!(formatter, "[{element}] ")?;
        }
        write!(formatter, "`{}`: {}{}", renderer.source(finding), finding.answer, noted(&finding.notes))?;
        // A literal is its own value.
        let parts = finding.parts.iter().filter(|part| part.role != Role::Literal);
        open.extend(parts.rev().map(|part| (depth + 1, part)));
    }
    Ok(())
}

/// Returns the part that has no answer for a reason of its own.
fn unanswerable(finding: &Finding) -> Option<(&Finding, &str)> {
    match &finding.answer {
        Answer::Unanswerable(reason) => Some((finding, reason)),
        Answer::PartUnanswerable => finding.parts.iter().find_map(unanswerable),
        Answer::Is(_) | Answer::NotEvaluated => None,
    }
}

struct Renderer<'e> {
    source: &'e str,
}

// === impl Renderer ===

impl Renderer<'_> {
    /// Returns the source of a part in one line.
    fn source(&self, finding: &Finding) -> String {
        let source = finding.source_in(self.source).split_whitespace().collect::<Vec<_>>().join(" ");
        shortened(&source, MAX_SOURCE)
    }

    fn is(&self, finding: &Finding) -> String {
        format!("`{}` is {}", self.source(finding), finding.answer)
    }

    fn cannot(&self, finding: &Finding, reason: &str) -> String {
        format!("`{}` cannot be answered: {reason}", self.source(finding))
    }

    /// Returns one line for each part that caused the truth value.
    fn causes(&self, finding: &Finding) -> Vec<String> {
        let truth = finding.is(true);
        let of_parts = |truth: Option<bool>| {
            let parts = finding.parts.iter().filter(|part| truth.is_none_or(|truth| part.is(truth)));
            parts.flat_map(|part| self.causes(part)).collect()
        };
        match finding.role {
            Role::Not => of_parts(None),
            Role::And => of_parts((!truth).then_some(false)),
            Role::Or => of_parts(truth.then_some(true)),
            Role::Choice => self.choice(finding),
            Role::Test => vec![self.comparison(finding)],
            Role::Each { quantifier, length } => vec![self.quantified(finding, quantifier, length)],
            Role::Literal | Role::Value => vec![format!("{}{}", self.is(finding), noted(&finding.notes))],
        }
    }

    fn choice(&self, finding: &Finding) -> Vec<String> {
        let [condition, branches @ ..] = finding.parts.as_slice() else {
            return vec![self.is(finding)];
        };
        let taken = branches.iter().filter(|branch| branch.answer != Answer::NotEvaluated);
        let lines = taken.flat_map(|branch| self.causes(branch));
        lines.map(|line| format!("{line}; evaluated because {}", self.is(condition))).collect()
    }

    fn comparison(&self, finding: &Finding) -> String {
        let sides = finding.parts.iter().zip(["left", "right"]).filter(|(part, _)| part.role != Role::Literal);
        let sides = sides.filter_map(|(part, side)| match &part.answer {
            Answer::Is(shown) => Some(format!("{side} side is {shown}{}", noted(&part.notes))),
            _ => None,
        });
        let sides = sides.collect::<Vec<_>>().join(", ");
        let colon = if sides.is_empty() { "" } else { ": " };
        format!("{}{colon}{sides}{}", self.is(finding), noted(&finding.notes))
    }

    fn quantified(&self, finding: &Finding, quantifier: Quantifier, length: usize) -> String {
        let is = self.is(finding);
        let truth = finding.is(true);
        let elements = finding.parts.iter().filter(|part| part.element.is_some());
        if length == 0 {
            let list = finding.parts.first().filter(|list| list.role != Role::Literal);
            return match list {
                Some(list) => format!("{is}: `{}` is empty", self.source(list)),
                None => format!("{is}: the list is empty"),
            };
        }
        let outcome = match (quantifier, truth) {
            (Quantifier::Any, false) | (Quantifier::None, true) => "no element satisfies it",
            (Quantifier::All, true) => "every element satisfies it",
            (Quantifier::Any, true) | (Quantifier::None, false) => "an element satisfies it",
            (Quantifier::All, false) => "an element does not satisfy it",
            (Quantifier::Filter | Quantifier::Count, _) => return is,
        };
        let elements = elements.filter_map(|part| Some((part, part.element?)));
        let because = |part| {
            let mut reasons = self.causes(part);
            truncate(&mut reasons, MAX_REASONS);
            reasons.join(", ")
        };
        let mut elements = elements.map(|(part, index)| format!("[{index}] {}", because(part))).collect::<Vec<_>>();
        let all_alike = truth == (quantifier != Quantifier::Any);
        if all_alike && !elements.is_empty() && length > elements.len() {
            elements.push(format!("and {} more", length - elements.len()));
        }
        let colon = if elements.is_empty() { "" } else { ": " };
        format!("{is}: {outcome}{colon}{}", elements.join("; "))
    }
}
