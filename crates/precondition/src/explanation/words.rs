//! The sentences of an explanation.

use std::fmt;

use super::{Answer, Explanation, Finding, Role, Shown};
use crate::similar::shortened;
use crate::syntax::Quantifier;
use crate::value::noted;

/// Characters of the source in one line, and lines of one explanation.
const LONGEST_SOURCE: usize = 120;
const MOST_LINES: usize = 20;
/// Reasons that are given for one element of a list, and characters of a line, which may hold several elements of several
/// lists.
const MOST_REASONS: usize = 3;
const LONGEST_LINE: usize = 2_000;

pub(super) fn lines(explanation: &Explanation) -> Vec<String> {
    let root = &explanation.root;
    let speaker = Speaker { explanation };
    let mut lines = match unanswerable(root) {
        Some((finding, reason)) => vec![speaker.cannot(finding, reason)],
        None if root.is(true) => vec![speaker.is(root)],
        None => speaker.blamed(root),
    };
    few(&mut lines, MOST_LINES);
    lines.into_iter().map(|line| shortened(&line, LONGEST_LINE)).collect()
}

/// No more than so many, and how many more there are.
fn few(told: &mut Vec<String>, most: usize) {
    if told.len() > most {
        let more = told.len() - most;
        told.truncate(most);
        told.push(format!("… and {more} more"));
    }
}

pub(super) fn tree(explanation: &Explanation, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let speaker = Speaker { explanation };
    let mut open = vec![(0, &explanation.root)];
    let mut first = true;
    while let Some((depth, finding)) = open.pop() {
        formatter.write_str(if first { "" } else { "\n" })?;
        first = false;
        write!(formatter, "{:1$}", "", depth * 2)?;
        if let Some(element) = finding.element {
            write!(formatter, "[{element}] ")?;
        }
        write!(formatter, "`{}`: {}{}", speaker.source(finding), finding.answer, noted(&finding.notes))?;
        // Literals say themselves.
        let parts = finding.parts.iter().filter(|part| part.role != Role::Literal);
        open.extend(parts.rev().map(|part| (depth + 1, part)));
    }
    Ok(())
}

/// The part that could not be answered for a reason of its own.
fn unanswerable(finding: &Finding) -> Option<(&Finding, &str)> {
    match &finding.answer {
        Answer::Unanswerable(reason) => Some((finding, reason)),
        Answer::PartUnanswerable => finding.parts.iter().find_map(unanswerable),
        Answer::Is(_) | Answer::NotLookedAt => None,
    }
}

struct Speaker<'e> {
    explanation: &'e Explanation,
}

// === impl Speaker ===

impl Speaker<'_> {
    /// In one line, whatever it was in.
    fn source(&self, finding: &Finding) -> String {
        let source = self.explanation.source_of(finding).split_whitespace().collect::<Vec<_>>().join(" ");
        shortened(&source, LONGEST_SOURCE)
    }

    fn is(&self, finding: &Finding) -> String {
        format!("`{}` is {}", self.source(finding), finding.answer)
    }

    fn cannot(&self, finding: &Finding, reason: &str) -> String {
        format!("`{}` cannot be answered: {reason}", self.source(finding))
    }

    /// The parts to which a truth value is owed, down to those that say it themselves.
    fn blamed(&self, finding: &Finding) -> Vec<String> {
        let truth = finding.is(true);
        let of_parts = |wanted: Option<bool>| {
            let parts = finding.parts.iter().filter(|part| wanted.is_none_or(|wanted| part.is(wanted)));
            parts.flat_map(|part| self.blamed(part)).collect()
        };
        match finding.role {
            Role::Not => of_parts(None),
            Role::And => of_parts((!truth).then_some(false)),
            Role::Or => of_parts(truth.then_some(true)),
            Role::Choice => self.chosen(finding),
            Role::Test => vec![self.tested(finding)],
            Role::Each { quantifier, length } => vec![self.asked(finding, quantifier, length)],
            Role::Literal | Role::Value => vec![format!("{}{}", self.is(finding), noted(&finding.notes))],
        }
    }

    fn chosen(&self, finding: &Finding) -> Vec<String> {
        let [condition, branches @ ..] = finding.parts.as_slice() else {
            return vec![self.is(finding)];
        };
        let taken = branches.iter().filter(|branch| branch.answer != Answer::NotLookedAt);
        let lines = taken.flat_map(|branch| self.blamed(branch));
        lines.map(|line| format!("{line}; asked because {}", self.is(condition))).collect()
    }

    fn tested(&self, finding: &Finding) -> String {
        let sides = finding.parts.iter().zip(["left", "right"]).filter(|(part, _)| part.role != Role::Literal);
        let sides = sides.filter_map(|(part, side)| match &part.answer {
            Answer::Is(shown) => Some(format!("{side} side is {shown}{}", noted(&part.notes))),
            _ => None,
        });
        let sides = sides.collect::<Vec<_>>().join(", ");
        let colon = if sides.is_empty() { "" } else { ": " };
        format!("{}{colon}{sides}{}", self.is(finding), noted(&finding.notes))
    }

    fn asked(&self, finding: &Finding, quantifier: Quantifier, length: usize) -> String {
        let is = self.is(finding);
        let truth = finding.is(true);
        let asked = finding.parts.iter().filter(|part| part.element.is_some());
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
        let asked = asked.filter_map(|part| Some((part, part.element?)));
        let because = |part| {
            let mut reasons = self.blamed(part);
            few(&mut reasons, MOST_REASONS);
            reasons.join(", ")
        };
        let mut elements = asked.map(|(part, index)| format!("[{index}] {}", because(part))).collect::<Vec<_>>();
        let all_alike = truth == (quantifier != Quantifier::Any);
        if all_alike && !elements.is_empty() && length > elements.len() {
            elements.push(format!("and {} more", length - elements.len()));
        }
        let colon = if elements.is_empty() { "" } else { ": " };
        format!("{is}: {outcome}{colon}{}", elements.join("; "))
    }
}

// === impl Shown ===

impl Shown {
    /// Whether it is exactly the text of a condition's status.
    pub(crate) fn is_status(&self) -> bool {
        matches!(self, Self::Text(text) if matches!(text.as_str(), "\"True\"" | "\"False\"" | "\"true\"" | "\"false\""))
    }
}
