//! Scripted faults: what to do to which call, how often, and from which call on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::operation::Operation;
use super::refusal::Refusal;
use crate::scripted::{ParseFaultError, Parts, Repetition, Scripted, duration_of, duration_text};

/// A fault, written `OPERATION:EFFECT[*N][@K]`.
///
/// - `OPERATION` is `token`, `listCredentials`, `getCredential`, `createCredential`, `deleteCredential`, `getRegistry`, or `*`.
/// - `EFFECT` is one of
///   - `throttled`, `internal-error`, `bad-gateway`, `unavailable`, `gateway-timeout`, `unauthorized` or `forbidden`: nothing is
///     done and that is the answer. `(retry-after=2s)` behind it adds the header `Retry-After`;
///   - `insert`: adds a credential, and goes on;
///   - `garbage`: does nothing, and answers 200 with a page in HTML;
///   - `commit-then-timeout`: does it, then answers 504;
///   - `commit-then-cut`: does it, then drops the connection without an answer;
///   - `cut`: does nothing and drops the connection;
///   - `hang`: does nothing and never answers.
/// - `*N` makes it happen `N` times, `*0` for ever; `@K` lets the first `K` − 1 matching calls pass.
///
/// ```
/// use emulators::accounts_mgmt::Fault;
///
/// let fault: Fault = "listCredentials:throttled(retry-after=2s)*3@2".parse().unwrap();
/// assert_eq!(fault.to_string(), "listCredentials:throttled(retry-after=2s)*3@2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    operation: Option<Operation>,
    effect: Effect,
    repetition: Repetition,
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Refuse { status: u16, retry_after: Option<Duration> },
    Insert,
    Garbage,
    CommitThenTimeout,
    CommitThenCut,
    Cut,
    Hang,
}

/// The statuses, as they are written.
const STATUSES: [(&str, u16); 7] = [
    ("throttled", 429),
    ("internal-error", 500),
    ("bad-gateway", 502),
    ("unavailable", 503),
    ("gateway-timeout", 504),
    ("unauthorized", 401),
    ("forbidden", 403),
];

/// The effects without a setting of their own, as they are written.
const EFFECTS: [(&str, Effect); 6] = [
    ("insert", Effect::Insert),
    ("garbage", Effect::Garbage),
    ("commit-then-timeout", Effect::CommitThenTimeout),
    ("commit-then-cut", Effect::CommitThenCut),
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
        let operation = self.operation.map_or("*", Operation::name);
        write!(formatter, "{operation}:{}{}", self.effect, self.repetition)
    }
}

impl Scripted for Fault {
    type Call = Operation;
    type Effect = Effect;

    fn fits(&self, call: &Operation) -> bool {
        self.operation.is_none_or(|operation| operation == *call)
    }

    fn repetition(&self) -> Repetition {
        self.repetition
    }

    fn effect(&self) -> &Effect {
        &self.effect
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let Parts { target, effect, repetition, .. } = Parts::of(text, "operation")?;
    let operation = match target {
        "*" => None,
        name => Some(Operation::ALL.into_iter().find(|operation| operation.name() == name).ok_or_else(|| {
            let names = Operation::ALL.map(Operation::name).join(", ");
            format!("there is no operation {name:?}; allowed are *, {names}")
        })?),
    };
    Ok(Fault { operation, effect: effect_named(effect)?, repetition })
}

fn effect_named(text: &str) -> Result<Effect, String> {
    if let Some((_, effect)) = EFFECTS.iter().find(|(name, _)| *name == text) {
        return Ok(*effect);
    }
    let (name, option) = text.split_once('(').map_or((text, None), |(name, option)| (name, option.strip_suffix(')')));
    let Some((_, status)) = STATUSES.iter().find(|(known, _)| *known == name) else {
        let names = STATUSES.iter().map(|(name, _)| *name).chain(EFFECTS.iter().map(|(name, _)| *name));
        return Err(format!("there is no effect {name:?}; allowed are {}", names.collect::<Vec<_>>().join(", ")));
    };
    let retry_after = option.and_then(|option| option.strip_prefix("retry-after=")).and_then(duration_of);
    if text.contains('(') && retry_after.is_none() {
        return Err(format!("{text:?} must end in (retry-after=2s) or (retry-after=500ms)"));
    }
    Ok(Effect::Refuse { status: *status, retry_after })
}

// === impl Effect ===

impl Effect {
    /// True if the call's work is done before the fault shows.
    pub(super) fn commits(self) -> bool {
        matches!(self, Self::Insert | Self::CommitThenTimeout | Self::CommitThenCut)
    }

    /// The refusal, if that is the effect.
    pub(super) fn refusal(self) -> Option<Refusal> {
        match self {
            Self::Refuse { status: 403, .. } => Some(Refusal::forbidden()),
            Self::Refuse { status, retry_after } => {
                Some(Refusal { retry_after, ..Refusal::new(status, "Scripted fault") })
            }
            Self::CommitThenTimeout => Some(Refusal::new(504, "Scripted fault")),
            _ => None,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Refuse { status, retry_after } = self {
            let named = STATUSES.iter().find(|(_, known)| known == status);
            formatter.write_str(named.map_or("", |(name, _)| name))?;
            return match retry_after {
                Some(after) => write!(formatter, "(retry-after={})", duration_text(*after)),
                None => Ok(()),
            };
        }
        let named = EFFECTS.iter().find(|(_, effect)| effect == self);
        formatter.write_str(named.map_or("", |(name, _)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("listCredentials:throttled")]
    #[case("*:cut*0")]
    #[case("deleteCredential:commit-then-cut@3")]
    #[case("token:unavailable(retry-after=1500ms)*2@4")]
    #[case("listCredentials:insert*2")]
    fn is_written_as_it_is_read(#[case] text: &str) {
        assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
    }

    #[rstest::rstest]
    #[case("throttled", "a colon must stand between the operation and the effect")]
    #[case("set:cut", "there is no operation \"set\"; allowed are *, token")]
    #[case("*:gone", "there is no effect \"gone\"; allowed are throttled, internal-error")]
    #[case("*:throttled(later)", "\"throttled(later)\" must end in (retry-after=2s)")]
    fn says_which_part_is_wrong(#[case] text: &str, #[case] wrong: &str) {
        let error = text.parse::<Fault>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid fault {text:?}: {wrong}")), "{error}");
    }
}
