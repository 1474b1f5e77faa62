//! States as badges: a symbol and a word, so that no reader depends on the colour.

use fleet_model::names::condition::{AVAILABLE, FINALIZED, RECONCILED};
use fleet_model::{Condition, Report, Status};
use maud::{Markup, html};

use crate::resource::Resource;

/// The severity of a state, which sets its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// The desired state.
    Good,
    /// A state that needs attention.
    Bad,
    /// A state that is not known yet.
    Unknown,
    /// A state without a judgement.
    Neutral,
}

/// A symbol and a word.
#[derive(Clone, Debug)]
pub(super) struct Badge {
    pub(super) tone: Tone,
    symbol: &'static str,
    word: String,
}

impl Tone {
    /// The CSS class.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Unknown => "unknown",
            Self::Neutral => "neutral",
        }
    }
}

// === impl Badge ===

impl Badge {
    fn new(tone: Tone, symbol: &'static str, word: impl Into<String>) -> Self {
        Self { tone, symbol, word: word.into() }
    }

    /// The badge of a condition's status.
    pub(super) fn status(status: Status) -> Self {
        let (tone, symbol) = match status {
            Status::True => (Tone::Good, "✓"),
            Status::False => (Tone::Bad, "✗"),
            Status::Unknown => (Tone::Unknown, "?"),
        };
        Self::new(tone, symbol, status.as_str())
    }

    /// The badge of `Reconciled`; `None` for a kind that has no such condition.
    pub(super) fn reconciled(resource: &Resource) -> Option<(Self, &Condition)> {
        let condition = resource.condition(RECONCILED)?;
        Some((Self::status(condition.status), condition))
    }

    /// The adapter's badge with a short explanation unless it is good: the reason, or for a stale report its generation and
    /// status.
    pub(super) fn explained(resource: &Resource, report: Option<&Report>) -> (Self, Option<String>) {
        let badge = Self::adapter(resource, report);
        let explanation = report.filter(|_| badge.tone != Tone::Good).and_then(|report| {
            if report.observed_generation != resource.generation {
                let (observed, current) = (report.observed_generation, resource.generation);
                return Some(format!("{observed} of {current}, was {}", report.status(AVAILABLE).as_str()));
            }
            report.condition(AVAILABLE)?.reason.clone()
        });
        (badge, explanation)
    }

    /// The adapter's badge for the resource's current generation, by the rule that `Reconciled` applies to each adapter.
    pub(super) fn adapter(resource: &Resource, report: Option<&Report>) -> Self {
        let Some(report) = report else { return Self::new(Tone::Unknown, "–", "no report") };
        if report.observed_generation != resource.generation {
            return Self::new(Tone::Unknown, "↺", "stale");
        }
        if !resource.is_terminating() {
            return Self::status(report.status(AVAILABLE));
        }
        match report.status(FINALIZED) {
            Status::True => Self::new(Tone::Good, "✓", FINALIZED),
            _ => Self::new(Tone::Bad, "✗", "not finalized"),
        }
    }

    /// The badge of a resource's deletion.
    pub(super) fn deleting(resource: &Resource) -> Self {
        if resource.is_terminating() {
            Self::new(Tone::Unknown, "⌫", "yes")
        } else {
            Self::new(Tone::Neutral, "·", "no")
        }
    }

    /// Renders the badge. Screen readers skip the symbol, as the word says the same.
    pub(super) fn show(&self) -> Markup {
        self.show_as(&self.word)
    }

    /// Renders the badge with another text.
    pub(super) fn show_as(&self, text: &str) -> Markup {
        html! {
            span class={ "badge " (self.tone.class()) } { i aria-hidden="true" { (self.symbol) } " " (text) }
        }
    }
}
