//! Scripted faults: what to do to which call, how often, and from which call on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::operation::Operation;
use super::refusal::Refusal;
use crate::scripted::{PLACE, ParseFaultError, Parts, Repetition, Scripted, duration_of, duration_text};

/// A fault, written `OPERATION[ in SECRET]:EFFECT[*N][@K]`.
///
/// - `OPERATION` is `setSecret`, `getSecret`, `updateSecret`, `getSecrets`, `getSecretVersions`, `deleteSecret`,
///   `getDeletedSecret`, `getDeletedSecrets`, `purgeDeletedSecret`, `recoverDeletedSecret`, `requestToken`, or `*` for any of
///   them. Without the name of a `SECRET` it fits the calls for every secret.
/// - `EFFECT` is one of
///   - `throttled`, `internal-error`, `unavailable`, `gateway-timeout`, `unauthorized`, `access-denied` or `not-found`: nothing
///     is done and that is the answer. `(retry-after=2s)` behind it adds the header `Retry-After` (`s` or `ms`);
///   - `commit-then-timeout`: does it, then answers 504;
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
/// use emulators::key_vault::Fault;
///
/// let fault: Fault = "setSecret:throttled(retry-after=2s)*3@2".parse().unwrap();
/// assert_eq!(fault.to_string(), "setSecret:throttled(retry-after=2s)*3@2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    operation: Option<Operation>,
    secret: Option<String>,
    effect: Effect,
    repetition: Repetition,
}

/// The target of a call.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) operation: Operation,
    pub(crate) secret: String,
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Refuse { answer: Answer, retry_after: Option<Duration> },
    CommitThenTimeout,
    CommitThenCut,
    CommitThenHang,
    Cut,
    Hang,
}

/// An answer that a fault can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Throttled,
    InternalError,
    Unavailable,
    GatewayTimeout,
    Unauthorized,
    AccessDenied,
    NotFound,
}

/// The answers, as they are written.
const ANSWERS: [(&str, Answer); 7] = [
    ("throttled", Answer::Throttled),
    ("internal-error", Answer::InternalError),
    ("unavailable", Answer::Unavailable),
    ("gateway-timeout", Answer::GatewayTimeout),
    ("unauthorized", Answer::Unauthorized),
    ("access-denied", Answer::AccessDenied),
    ("not-found", Answer::NotFound),
];

/// The effects that are not answers, as they are written.
const EFFECTS: [(&str, Effect); 5] = [
    ("commit-then-timeout", Effect::CommitThenTimeout),
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
        if let Some(secret) = &self.secret {
            write!(formatter, "{PLACE}{secret}")?;
        }
        write!(formatter, ":{}{}", self.effect, self.repetition)
    }
}

impl Scripted for Fault {
    type Call = Aim;
    type Effect = Effect;

    fn fits(&self, call: &Aim) -> bool {
        self.operation.is_none_or(|wanted| wanted == call.operation)
            && self.secret.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(&call.secret))
    }

    fn repetition(&self) -> Repetition {
        self.repetition
    }

    fn effect(&self) -> &Effect {
        &self.effect
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let Parts { target, place, effect, repetition } = Parts::of(text, "operation")?;
    let secret = place.map(str::to_owned);
    Ok(Fault { operation: operation_named(target)?, secret, effect: effect_named(effect)?, repetition })
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
        Some((name, option)) => (name, Some(option)),
        None => (text, None),
    };
    let Some((_, answer)) = ANSWERS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<_> =
            ANSWERS.iter().map(|(name, _)| *name).chain(EFFECTS.iter().map(|(name, _)| *name)).collect();
        return Err(format!("there is no effect {name:?}; allowed are {}", names.join(", ")));
    };
    let retry_after = option.map(|option| {
        let value = option.strip_prefix("retry-after=").and_then(|rest| rest.strip_suffix(')'));
        value
            .and_then(duration_of)
            .ok_or_else(|| format!("{:?} must be (retry-after=2s) or (retry-after=500ms)", format!("({option}")))
    });
    Ok(Effect::Refuse { answer: *answer, retry_after: retry_after.transpose()? })
}

// === impl Effect ===

impl Effect {
    /// True if the call's work is done before the fault shows.
    pub(crate) fn commits(self) -> bool {
        matches!(self, Self::CommitThenTimeout | Self::CommitThenCut | Self::CommitThenHang)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Refuse { answer, retry_after } = self {
            let named = ANSWERS.iter().find(|(_, one)| one == answer);
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

// === impl Answer ===

impl Answer {
    /// The refusal for a call to `secret`.
    pub(crate) fn refusal(self, secret: &str, retry_after: Option<Duration>) -> Refusal {
        let refusal = match self {
            Self::Throttled => Refusal::throttled(),
            Self::InternalError => Refusal::new(500, "InternalServerError", "Scripted fault: the service failed."),
            Self::Unavailable => Refusal::new(503, "ServiceUnavailable", "Scripted fault: the service is unavailable."),
            Self::GatewayTimeout => Refusal::new(504, "GatewayTimeout", "Scripted fault: the gateway timed out."),
            Self::Unauthorized => Refusal::unauthorized("Scripted fault: the token is refused."),
            Self::AccessDenied => Refusal::forbidden("AccessDenied", "Scripted fault: the access policy denies this."),
            Self::NotFound => Refusal::not_found(secret),
        };
        refusal.with_retry(retry_after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("setSecret:throttled")]
    #[case("*:cut*0")]
    #[case("getSecret:hang@3")]
    #[case("getSecret in a-b:unavailable(retry-after=1500ms)*2@4")]
    #[case("setSecret:commit-then-timeout*3")]
    #[case("requestToken:internal-error")]
    fn is_written_as_it_is_read(#[case] text: &str) {
        assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
    }

    #[rstest::rstest]
    #[case("throttled", "a colon must stand between the operation and the effect")]
    #[case("set:cut", "there is no operation \"set\"; allowed are *, setSecret")]
    #[case("*:gone", "there is no effect \"gone\"; allowed are throttled, internal-error")]
    #[case("*:throttled(later)", "\"(later)\" must be (retry-after=2s)")]
    #[case("*:cut@0", "\"0\" in @K must be a whole number, 1 or more")]
    fn says_which_part_is_wrong(#[case] text: &str, #[case] wrong: &str) {
        let error = text.parse::<Fault>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid fault {text:?}: {wrong}")), "{error}");
    }
}
