//! The common part of scripted faults: notation, counting, arming.

use std::fmt;
use std::time::Duration;

/// The error of a text that is not a fault: the wrong part, and what is allowed there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid fault {text:?}: {wrong}")]
pub struct ParseFaultError {
    text: String,
    wrong: String,
}

/// Number of times a fault happens, and the matching call from which it does; written `*N@K`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repetition {
    times: u32,
    first: u32,
}

/// Stands between a fault's target and the place to which it is limited.
pub(crate) const PLACE: &str = " in ";

/// A fault's text in its parts: `TARGET[ in PLACE]:EFFECT[*N][@K]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) target: &'a str,
    pub(crate) place: Option<&'a str>,
    pub(crate) effect: &'a str,
    pub(crate) repetition: Repetition,
}

/// Something that can happen to calls.
pub(crate) trait Scripted {
    /// The properties of a call on arrival.
    type Call: ?Sized;
    /// The effect on the call.
    type Effect: Clone;

    fn fits(&self, call: &Self::Call) -> bool;

    fn repetition(&self) -> Repetition;

    fn effect(&self) -> &Self::Effect;
}

/// The faults that wait for their calls.
#[derive(Debug)]
pub(crate) struct Script<F>(Vec<Armed<F>>);

#[derive(Debug)]
struct Armed<F> {
    fault: F,
    seen: u32,
    happened: u32,
}

impl ParseFaultError {
    pub(crate) fn new(text: &str, wrong: String) -> Self {
        Self { text: text.to_owned(), wrong }
    }
}

// === impl Parts ===

impl<'a> Parts<'a> {
    /// Takes a fault's text apart; what stands in parentheses may hold any sign.
    pub(crate) fn of(text: &'a str, target: &str) -> Result<Self, String> {
        let (target, rest) =
            text.split_once(':').ok_or_else(|| format!("a colon must stand between the {target} and the effect"))?;
        let (inside, tail) = match rest.rfind(')') {
            Some(end) => rest.split_at(end + 1),
            None => ("", rest),
        };
        let (tail, first) = match tail.rsplit_once('@') {
            Some((tail, number)) => (tail, count(number, "@K", 1)?),
            None => (tail, 1),
        };
        let (tail, times) = match tail.rsplit_once('*') {
            Some((tail, number)) => (tail, count(number, "*N", 0)?),
            None => (tail, 1),
        };
        let effect = rest.get(..inside.len() + tail.len()).unwrap_or(rest);
        let (target, place) = match target.split_once(PLACE) {
            Some((target, place)) => (target, Some(place).filter(|place| !place.is_empty())),
            None => (target, None),
        };
        Ok(Self { target, place, effect, repetition: Repetition { times, first } })
    }
}

impl fmt::Display for Repetition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.times != 1 {
            write!(formatter, "*{}", self.times)?;
        }
        if self.first != 1 {
            write!(formatter, "@{}", self.first)?;
        }
        Ok(())
    }
}

// === impl Script ===

impl<F> Default for Script<F> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<F: Scripted> Script<F> {
    pub(crate) fn add(&mut self, fault: F) {
        self.0.push(Armed { fault, seen: 0, happened: 0 });
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts a call and says what happens to it.
    pub(crate) fn strike(&mut self, call: &F::Call) -> Option<F::Effect> {
        let mut effect = None;
        for armed in self.0.iter_mut().filter(|armed| armed.fault.fits(call)) {
            let Repetition { times, first } = armed.fault.repetition();
            armed.seen = armed.seen.saturating_add(1);
            let left = times == 0 || armed.happened < times;
            if effect.is_none() && left && armed.seen >= first {
                armed.happened = armed.happened.saturating_add(1);
                effect = Some(armed.fault.effect().clone());
            }
        }
        effect
    }
}

fn count(text: &str, part: &str, least: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{text:?} in {part} must be a whole number, {least} or more"))
}

/// Reads `2s` or `500ms`.
pub(crate) fn duration_of(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(number) => number.parse().ok().map(Duration::from_millis),
        None => text.strip_suffix('s')?.parse().ok().map(Duration::from_secs),
    }
}

/// Writes what [`duration_of`] reads.
pub(crate) fn duration_text(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    }
}
