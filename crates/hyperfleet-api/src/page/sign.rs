//! States as people read them: a shape and a word, and a colour for who sees it.

use super::html::{Element, classed, el};
use crate::decide::aggregate::RECONCILED;
use crate::resource::{Condition, Report, Resource, Status};

/// What a state means to whoever looks after the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    /// As it should be.
    Good,
    /// Somebody should look.
    Bad,
    /// Nobody can say yet.
    Unsure,
    /// Nothing to say.
    Quiet,
}

/// A word with its shape.
#[derive(Clone, Debug)]
pub(super) struct Sign {
    pub(super) mood: Mood,
    shape: &'static str,
    word: String,
}

impl Mood {
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Unsure => "unsure",
            Self::Quiet => "quiet",
        }
    }
}

// === impl Sign ===

impl Sign {
    fn new(mood: Mood, shape: &'static str, word: impl Into<String>) -> Self {
        Self { mood, shape, word: word.into() }
    }

    /// A condition's status.
    pub(super) fn status(status: Status) -> Self {
        let (mood, shape) = match status {
            Status::True => (Mood::Good, "✓"),
            Status::False => (Mood::Bad, "✗"),
            Status::Unknown => (Mood::Unsure, "?"),
        };
        Self::new(mood, shape, status.as_str())
    }

    /// Whether all is as it was wished; nothing where that is not concluded for this kind.
    pub(super) fn reconciled(resource: &Resource) -> Option<(Self, &Condition)> {
        let condition = resource.condition(RECONCILED)?;
        Some((Self::status(condition.status), condition))
    }

    /// Where an adapter stands, and in a word why, unless all is well. What is stale says what it was.
    pub(super) fn explained(resource: &Resource, report: Option<&Report>) -> (Self, Option<String>) {
        let sign = Self::standing(resource, report);
        let why = report.filter(|_| sign.mood != Mood::Good).and_then(|report| {
            if report.observed_generation != resource.generation {
                let (seen, wanted) = (report.observed_generation, resource.generation);
                return Some(format!("{seen} of {wanted}, was {}", report.status("Available").as_str()));
            }
            report.condition("Available")?.reason.clone()
        });
        (sign, why)
    }

    /// Where an adapter stands with the resource's generation: the question that `Reconciled` asks of each.
    pub(super) fn standing(resource: &Resource, report: Option<&Report>) -> Self {
        let Some(report) = report else { return Self::new(Mood::Unsure, "–", "never") };
        if report.observed_generation != resource.generation {
            return Self::new(Mood::Unsure, "↺", "stale");
        }
        if !resource.is_terminating() {
            return Self::status(report.status("Available"));
        }
        match report.status("Finalized") {
            Status::True => Self::new(Mood::Good, "✓", "Finalized"),
            _ => Self::new(Mood::Bad, "✗", "not finalized"),
        }
    }

    /// Whether it is being deleted.
    pub(super) fn deleting(resource: &Resource) -> Self {
        if resource.is_terminating() {
            Self::new(Mood::Unsure, "⌫", "yes")
        } else {
            Self::new(Mood::Quiet, "·", "no")
        }
    }

    /// As it is shown. The shape is not read out; the word says the same.
    pub(super) fn show(&self) -> Element {
        self.show_as(&self.word)
    }

    /// The same with other words.
    pub(super) fn show_as(&self, words: &str) -> Element {
        let shape = el("i").attr("aria-hidden", "true").text(self.shape);
        classed("span", &format!("sign {}", self.mood.class())).child(shape).text(" ").text(words)
    }
}
