//! Scripted faults: what to do to which call, how often, and from which call on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::form::Form;
use super::operation::Operation;
use super::refusal::Refusal;
use crate::scripted::{Occasions, PLACE, ParseFaultError, Parts, Scripted, duration_of, duration_text};

/// A fault, written `OPERATION[ in TARGET]:EFFECT[*N][@K]`.
///
/// - `OPERATION` is the name of an [`Operation`], such as `createOrgRobot` or `issueToken`, or `*` for any of them. Without a
///   `TARGET` (a robot with or without the organization's name, a team, a repository) it fits all calls.
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
pub struct Fault {
    operation: Option<Operation>,
    target: Option<String>,
    effect: Effect,
    occasions: Occasions,
}

/// The target of a call.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) operation: Operation,
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

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|wrong| ParseFaultError::new(text, wrong))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.operation.map_or("*", Operation::name))?;
        if let Some(target) = &self.target {
            write!(formatter, "{PLACE}{target}")?;
        }
        write!(formatter, ":{}{}", self.effect, self.occasions)
    }
}

impl Scripted for Fault {
    type Call = Aim;
    type Effect = Effect;

    fn fits(&self, call: &Aim) -> bool {
        let is_of = |target: &str, wanted: &str| {
            target == wanted || target.split_once('+').is_some_and(|(_organization, short)| short == wanted)
        };
        self.operation.is_none_or(|wanted| wanted == call.operation)
            && self.target.as_ref().is_none_or(|wanted| is_of(&call.target, wanted))
    }

    fn occasions(&self) -> Occasions {
        self.occasions
    }

    fn effect(&self) -> &Effect {
        &self.effect
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let Parts { target: operation, place, effect, occasions } = Parts::of(text, "operation")?;
    let target = place.map(str::to_owned);
    Ok(Fault { operation: operation_named(operation)?, target, effect: effect_named(effect)?, occasions })
}

fn operation_named(name: &str) -> Result<Option<Operation>, String> {
    if name == "*" {
        return Ok(None);
    }
    Operation::all().find(|operation| operation.name() == name).map(Some).ok_or_else(|| {
        let names: Vec<_> = Operation::all().map(Operation::name).collect();
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
    pub(crate) fn refusal(self, form: Form) -> Option<Refusal> {
        match self {
            Self::Refuse { status, retry_after } => {
                Some(Refusal::scripted(status, form, "Scripted fault").with_retry(retry_after))
            }
            Self::CommitThenTimeout => Some(Refusal::scripted(504, form, "Scripted fault")),
            _ => None,
        }
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

    #[rstest::rstest]
    #[case("createOrgRobot:throttled")]
    #[case("*:cut*0")]
    #[case("issueToken:hang@3")]
    #[case("getOrgRobot in a-b:unavailable(retry-after=1500ms)*2@4")]
    #[case("createOrgRobot:commit-then-timeout*3")]
    #[case("listOrgLogs:slow(2s)")]
    #[case("getOrgRobots:commit-then-huge")]
    fn is_written_as_it_is_read(#[case] text: &str) {
        assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
    }

    #[rstest::rstest]
    #[case("throttled", "a colon must stand between the operation and the effect")]
    #[case("set:cut", "there is no operation \"set\"; allowed are *, createOrgRobot")]
    #[case("*:gone", "there is no effect \"gone\"; allowed are throttled, internal-error")]
    #[case("*:throttled(later)", "\"throttled(later)\" must end in (retry-after=2s)")]
    #[case("*:slow", "slow must have a time")]
    #[case("*:cut@0", "\"0\" in @K must be a whole number, 1 or more")]
    fn says_which_part_is_wrong(#[case] text: &str, #[case] wrong: &str) {
        let error = text.parse::<Fault>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid fault {text:?}: {wrong}")), "{error}");
    }
}
