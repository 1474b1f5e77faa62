//! Scripted faults of registries' servers: what to do to which call, how often, and from which call on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::scripted::{PLACE, ParseFaultError, Parts, Repetition, Scripted, duration_of, duration_text};

/// The operations of a server.
pub trait Operated: Copy + PartialEq + 'static {
    /// The name of the operation in faults.
    fn name(self) -> &'static str;

    /// All operations.
    fn all() -> impl Iterator<Item = Self>;
}

/// A fault, written `OPERATION[ in TARGET]:EFFECT[*N][@K]`.
///
/// - `OPERATION` is the name of an operation of the server, such as `issueToken`, or `*` for any of them. Without a `TARGET`
///   (a robot with or without what it belongs to, a team, a repository) it fits all calls.
/// - `EFFECT` is one of
///   - `throttled`, `internal-error`, `bad-gateway`, `unavailable`, `gateway-timeout`, `unauthorized`, `forbidden` or
///     `not-found`: nothing is done and that is the answer. `(retry-after=2s)` behind it adds the header `Retry-After` (`s` or
///     `ms`);
///   - `garbage`: does nothing, and answers 200 with a page in HTML;
///   - `slow(2s)`: does it, and answers so much later;
///   - `commit-then-timeout`: does it, then answers 504;
///   - `commit-then-garbage`: does it, then answers 200 with a page in HTML;
///   - `commit-then-huge`: does it, then answers with 64 MiB of spaces;
///   - `commit-then-stall`: does it, then sends a half of the answer and no more;
///   - `commit-then-cut`: does it, then drops the connection without an answer;
///   - `commit-then-hang`: does it, then never answers;
///   - `cut`: does nothing and drops the connection;
///   - `hang`: does nothing and never answers.
/// - `*N` makes it happen `N` times, `*0` for ever; without it, once.
/// - `@K` lets the first `K` − 1 matching calls pass.
///
/// If several faults match a call, the one that was added first happens; all of them count the call.
///
/// ```
/// use emulators::quay::Fault;
///
/// let fault: Fault = "createOrgRobot:throttled(retry-after=2s)*3@2".parse().unwrap();
/// assert_eq!(fault.to_string(), "createOrgRobot:throttled(retry-after=2s)*3@2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault<O> {
    operation: Option<O>,
    target: Option<String>,
    effect: Effect,
    repetition: Repetition,
}

/// The target of a call.
#[derive(Clone, Debug)]
pub(crate) struct Aim<O> {
    pub(crate) operation: O,
    pub(crate) target: String,
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Refuse { status: u16, retry_after: Option<Duration> },
    Garbage,
    Slow(Duration),
    CommitThenTimeout,
    CommitThenGarbage,
    CommitThenHuge,
    CommitThenStall,
    CommitThenCut,
    CommitThenHang,
    Cut,
    Hang,
}

/// An answer in place of the server's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
}

/// The way in which an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Whole,
    /// A page in HTML instead.
    Garbage,
    /// Too long for every reader.
    Huge,
    /// A half of it, and then nothing.
    Stalled,
    /// Not at all: the connection is dropped.
    Cut,
    /// Not at all: the connection waits.
    Hang,
}

/// A status that a fault can answer.
struct Status {
    name: &'static str,
    status: u16,
}

/// The statuses, as they are written.
const STATUSES: [Status; 8] = [
    Status { name: "throttled", status: 429 },
    Status { name: "internal-error", status: 500 },
    Status { name: "bad-gateway", status: 502 },
    Status { name: "unavailable", status: 503 },
    Status { name: "gateway-timeout", status: 504 },
    Status { name: "unauthorized", status: 401 },
    Status { name: "forbidden", status: 403 },
    Status { name: "not-found", status: 404 },
];

/// The delay of an answer, as it is written.
const SLOW: &str = "slow";

/// The effects without a setting of their own, as they are written.
const EFFECTS: [(&str, Effect); 9] = [
    ("garbage", Effect::Garbage),
    ("commit-then-timeout", Effect::CommitThenTimeout),
    ("commit-then-garbage", Effect::CommitThenGarbage),
    ("commit-then-huge", Effect::CommitThenHuge),
    ("commit-then-stall", Effect::CommitThenStall),
    ("commit-then-cut", Effect::CommitThenCut),
    ("commit-then-hang", Effect::CommitThenHang),
    ("cut", Effect::Cut),
    ("hang", Effect::Hang),
];

// === impl Fault ===

impl<O: Operated> FromStr for Fault<O> {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|wrong| ParseFaultError::new(text, wrong))
    }
}

impl<O: Operated> fmt::Display for Fault<O> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.operation.map_or("*", O::name))?;
        if let Some(target) = &self.target {
            write!(formatter, "{PLACE}{target}")?;
        }
        write!(formatter, ":{}{}", self.effect, self.repetition)
    }
}

impl<O: Operated> Scripted for Fault<O> {
    type Call = Aim<O>;
    type Effect = Effect;

    fn fits(&self, call: &Aim<O>) -> bool {
        let is_of = |target: &str, wanted: &str| {
            target == wanted || target.split_once('+').is_some_and(|(_organization, short)| short == wanted)
        };
        self.operation.is_none_or(|wanted| wanted == call.operation)
            && self.target.as_ref().is_none_or(|wanted| is_of(&call.target, wanted))
    }

    fn repetition(&self) -> Repetition {
        self.repetition
    }

    fn effect(&self) -> &Effect {
        &self.effect
    }
}

fn parse<O: Operated>(text: &str) -> Result<Fault<O>, String> {
    let Parts { target: operation, place, effect, repetition } = Parts::of(text, "operation")?;
    let target = place.map(str::to_owned);
    Ok(Fault { operation: operation_named(operation)?, target, effect: effect_named(effect)?, repetition })
}

fn operation_named<O: Operated>(name: &str) -> Result<Option<O>, String> {
    if name == "*" {
        return Ok(None);
    }
    O::all().find(|operation| operation.name() == name).map(Some).ok_or_else(|| {
        let names: Vec<_> = O::all().map(O::name).collect();
        format!("there is no operation {name:?}; allowed are *, {}", names.join(", "))
    })
}

fn effect_named(text: &str) -> Result<Effect, String> {
    if let Some((_, effect)) = EFFECTS.iter().find(|(name, _)| *name == text) {
        return Ok(*effect);
    }
    let (name, option) = match text.split_once('(') {
        Some((name, option)) => (name, option.strip_suffix(')')),
        None => (text, None),
    };
    if name == SLOW {
        let delay = option.and_then(duration_of);
        return delay
            .map(Effect::Slow)
            .ok_or_else(|| "slow must have a time, as in slow(2s) or slow(500ms)".to_owned());
    }
    let Some(Status { status, .. }) = STATUSES.iter().find(|known| known.name == name) else {
        let names = STATUSES.iter().map(|known| known.name).chain([SLOW]).chain(EFFECTS.iter().map(|(name, _)| *name));
        return Err(format!("there is no effect {name:?}; allowed are {}", names.collect::<Vec<_>>().join(", ")));
    };
    if !text.contains('(') {
        return Ok(Effect::Refuse { status: *status, retry_after: None });
    }
    let retry_after = option.and_then(|option| option.strip_prefix("retry-after=")).and_then(duration_of);
    let wrong = || format!("{text:?} must end in (retry-after=2s) or (retry-after=500ms)");
    Ok(Effect::Refuse { status: *status, retry_after: Some(retry_after.ok_or_else(wrong)?) })
}

// === impl Effect ===

impl Effect {
    /// True if the call's work is done before the fault shows.
    pub(crate) fn commits(self) -> bool {
        !matches!(self, Self::Refuse { .. } | Self::Garbage | Self::Cut | Self::Hang)
    }

    /// The refusal, if that is the effect.
    pub(crate) fn refused(self) -> Option<Refused> {
        match self {
            Self::Refuse { status, retry_after } => Some(Refused { status, retry_after }),
            Self::CommitThenTimeout => Some(Refused { status: 504, retry_after: None }),
            _ => None,
        }
    }

    /// The way in which the answer is given.
    pub(crate) fn delivery(self) -> Delivery {
        match self {
            Self::Cut | Self::CommitThenCut => Delivery::Cut,
            Self::Hang | Self::CommitThenHang => Delivery::Hang,
            Self::Garbage | Self::CommitThenGarbage => Delivery::Garbage,
            Self::CommitThenHuge => Delivery::Huge,
            Self::CommitThenStall => Delivery::Stalled,
            Self::Refuse { .. } | Self::Slow(_) | Self::CommitThenTimeout => Delivery::Whole,
        }
    }

    /// The time by which the answer is late.
    pub(crate) fn delay(self) -> Duration {
        if let Self::Slow(delay) = self { delay } else { Duration::ZERO }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse { status, retry_after } => {
                let named = STATUSES.iter().find(|known| known.status == *status);
                formatter.write_str(named.map_or("", |known| known.name))?;
                match retry_after {
                    Some(after) => write!(formatter, "(retry-after={})", duration_text(*after)),
                    None => Ok(()),
                }
            }
            Self::Slow(delay) => write!(formatter, "{SLOW}({})", duration_text(*delay)),
            _ => {
                let named = EFFECTS.iter().find(|(_, effect)| effect == self);
                formatter.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quay::Operation;

    #[rstest::rstest]
    #[case("createOrgRobot:throttled")]
    #[case("*:cut*0")]
    #[case("issueToken:hang@3")]
    #[case("getOrgRobot in a-b:unavailable(retry-after=1500ms)*2@4")]
    #[case("createOrgRobot:commit-then-timeout*3")]
    #[case("listOrgLogs:slow(2s)")]
    #[case("getOrgRobots:commit-then-huge")]
    fn is_written_as_it_is_read(#[case] text: &str) {
        assert_eq!(text.parse::<Fault<Operation>>().unwrap().to_string(), text);
    }

    #[rstest::rstest]
    #[case("throttled", "a colon must stand between the operation and the effect")]
    #[case("set:cut", "there is no operation \"set\"; allowed are *, createOrgRobot")]
    #[case("*:gone", "there is no effect \"gone\"; allowed are throttled, internal-error")]
    #[case("*:throttled(later)", "\"throttled(later)\" must end in (retry-after=2s)")]
    #[case("*:slow", "slow must have a time")]
    #[case("*:cut@0", "\"0\" in @K must be a whole number, 1 or more")]
    fn says_which_part_is_wrong(#[case] text: &str, #[case] wrong: &str) {
        let error = text.parse::<Fault<Operation>>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid fault {text:?}: {wrong}")), "{error}");
    }
}
