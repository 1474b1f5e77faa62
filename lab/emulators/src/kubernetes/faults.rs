//! Scripted faults: what to do to which call, how often, and from which call on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::status::Status;
use crate::scripted::{PLACE, ParseFaultError, Parts, Repetition, Scripted, duration_of, duration_text};

/// A fault, written `VERB/RESOURCE[/SUBRESOURCE][ in NAMESPACE]:EFFECT[*N][@K]`.
///
/// - `VERB` is `create`, `get`, `list`, `watch`, `update`, `patch`, `delete`, `deletecollection`, or `*` for any of them.
///   `RESOURCE` is a plural such as `secrets` or `jobs`, or `*`; without a `SUBRESOURCE` the fault fits the resource and
///   everything below it. Without a `NAMESPACE` it fits the calls for every namespace.
/// - `EFFECT` is one of
///   - an HTTP status from 400 to 599: nothing is done and that is the answer, a `Status` object. In parentheses may follow,
///     apart by commas, `retry-after=2s` (the header and `details.retryAfterSeconds`), `reason=NAME` in place of the usual
///     one, and last `message=TEXT`: all up to the last parenthesis;
///   - `commit-then-timeout`: does it, then answers 504 with the reason `Timeout`;
///   - `commit-then-cut`: does it, then drops the connection without an answer;
///   - `commit-then-hang`: does it, then never answers;
///   - `cut`: does nothing and drops the connection; `cut(after=N)` lets a watch deliver `N` events first;
///   - `gone(after=N)`: a watch delivers `N` events, then an ERROR event with status 410;
///   - `hang`: does nothing and never answers;
///   - `slow(200ms)`: waits so long, then does it.
/// - `*N` makes it happen `N` times, `*0` for ever; without it, once.
/// - `@K` lets the first `K` − 1 fitting calls pass.
///
/// If several faults match a call, the one that was added first happens; all of them count the call.
///
/// ```
/// use emulators::kubernetes::Fault;
///
/// for text in ["patch/secrets:429(retry-after=1s)*2", "create/secrets:403(message=exceeded quota: q)", "watch/jobs:cut(after=1)@2"] {
///     let fault: Fault = text.parse().unwrap();
///     assert_eq!(fault.to_string(), text);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    target: Target,
    effect: Effect,
    repetition: Repetition,
}

/// The calls that a fault fits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    verb: String,
    resource: String,
    subresource: Option<String>,
    namespace: Option<String>,
}

/// The target of a call.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) verb: &'static str,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
}

/// The effect of a fault on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Refuse { code: u16, retry_after: Option<Duration>, reason: Option<String>, message: Option<String> },
    CommitThenTimeout,
    CommitThenCut,
    CommitThenHang,
    Cut,
    CutAfter(usize),
    GoneAfter(usize),
    Hang,
    Slow(Duration),
}

/// The effects that need nothing in parentheses, as they are written.
const EFFECTS: [(&str, Effect); 5] = [
    ("commit-then-timeout", Effect::CommitThenTimeout),
    ("commit-then-cut", Effect::CommitThenCut),
    ("commit-then-hang", Effect::CommitThenHang),
    ("cut", Effect::Cut),
    ("hang", Effect::Hang),
];

/// The verbs that faults are written with.
const VERBS: [&str; 9] = ["*", "create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"];

/// Reasons that scripted refusals may carry.
const REASONS: [&str; 18] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
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
        let Target { verb, resource, subresource, namespace } = &self.target;
        write!(formatter, "{verb}/{resource}")?;
        if let Some(subresource) = subresource {
            write!(formatter, "/{subresource}")?;
        }
        if let Some(namespace) = namespace {
            write!(formatter, "{PLACE}{namespace}")?;
        }
        write!(formatter, ":{}{}", self.effect, self.repetition)
    }
}

impl Scripted for Fault {
    type Call = Aim;
    type Effect = Effect;

    fn fits(&self, call: &Aim) -> bool {
        let Target { verb, resource, subresource, namespace } = &self.target;
        (verb == "*" || verb == call.verb)
            && (resource == "*" || *resource == call.resource)
            && subresource.as_ref().is_none_or(|wanted| *wanted == call.subresource)
            && namespace.as_ref().is_none_or(|wanted| *wanted == call.namespace)
    }

    fn repetition(&self) -> Repetition {
        self.repetition
    }

    fn effect(&self) -> &Effect {
        &self.effect
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let Parts { target, place, effect, repetition } = Parts::of(text, "target")?;
    let mut steps = target.splitn(3, '/').map(str::to_owned);
    let (Some(verb), Some(resource)) = (steps.next(), steps.next()) else {
        return Err(format!("the target {target:?} must be VERB/RESOURCE, such as patch/secrets"));
    };
    if !VERBS.contains(&verb.as_str()) {
        return Err(format!("there is no verb {verb:?}; allowed are {}", VERBS.join(", ")));
    }
    let plain = |name: &str| name == "*" || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    if !plain(&resource) {
        return Err(format!("the resource {resource:?} must be a plural such as secrets, or *"));
    }
    let target = Target { verb, resource, subresource: steps.next(), namespace: place.map(str::to_owned) };
    Ok(Fault { target, effect: effect_of(effect)?, repetition })
}

fn effect_of(text: &str) -> Result<Effect, String> {
    if let Some((_, effect)) = EFFECTS.iter().find(|(name, _)| *name == text) {
        return Ok(effect.clone());
    }
    let (name, options) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, options)) => (name, options),
        None => (text, ""),
    };
    let after = || {
        let number = options.strip_prefix("after=").and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("{options:?} must be after=N, the number of events before"))
    };
    match name {
        "cut" => after().map(Effect::CutAfter),
        "gone" => after().map(Effect::GoneAfter),
        "slow" => duration_of(options).map(Effect::Slow).ok_or_else(|| format!("{options:?} must be like 2s or 500ms")),
        _ => refusal_of(name, options),
    }
}

fn refusal_of(name: &str, options: &str) -> Result<Effect, String> {
    let Some(code) = name.parse().ok().filter(|code| (400..600).contains(code)) else {
        let names: Vec<&str> = EFFECTS.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "there is no effect {name:?}; allowed are an HTTP status from 400 to 599, cut(after=N), gone(after=N), slow(2s), {}",
            names.join(", ")
        ));
    };
    let (mut retry_after, mut reason, mut message) = (None, None, None);
    let mut rest = options;
    while !rest.is_empty() {
        if let Some(text) = rest.strip_prefix("message=") {
            message = Some(text.to_owned());
            break;
        }
        let (option, others) = rest.split_once(',').unwrap_or((rest, ""));
        rest = others.trim_start();
        if let Some(given) = option.strip_prefix("reason=").filter(|given| REASONS.contains(given)) {
            reason = Some(given.to_owned());
        } else if let Some(given) = option.strip_prefix("retry-after=").and_then(duration_of) {
            retry_after = Some(given);
        } else {
            let reasons = REASONS.join(", ");
            return Err(format!("{option:?} must be retry-after=2s, message=TEXT, or reason= one of {reasons}"));
        }
    }
    Ok(Effect::Refuse { code, retry_after, reason, message })
}

// === impl Effect ===

impl Effect {
    /// The refusal that the fault is answered with, if that is what it does.
    pub(crate) fn refusal(&self) -> Option<Status> {
        let Self::Refuse { code, retry_after, reason, message } = self else { return None };
        let message = message.clone().unwrap_or_else(|| format!("Scripted fault: {code}."));
        let mut status = Status::new(*code, message);
        let known = reason.as_ref().and_then(|reason| REASONS.iter().find(|known| *known == reason));
        if let Some(reason) = known {
            status = status.because(reason);
        }
        Some(match retry_after {
            Some(after) => status.retry_after(after.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)),
            None => status,
        })
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse { code, retry_after, reason, message } => {
                let options: Vec<String> = [
                    retry_after.map(|after| format!("retry-after={}", duration_text(after))),
                    reason.as_ref().map(|reason| format!("reason={reason}")),
                    message.as_ref().map(|message| format!("message={message}")),
                ]
                .into_iter()
                .flatten()
                .collect();
                if options.is_empty() {
                    write!(formatter, "{code}")
                } else {
                    write!(formatter, "{code}({})", options.join(","))
                }
            }
            Self::CutAfter(events) => write!(formatter, "cut(after={events})"),
            Self::GoneAfter(events) => write!(formatter, "gone(after={events})"),
            Self::Slow(wait) => write!(formatter, "slow({})", duration_text(*wait)),
            other => {
                let named = EFFECTS.iter().find(|(_, effect)| effect == other);
                formatter.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("patch/secrets:429(retry-after=1s)*2")]
    #[case("get/secrets:500")]
    #[case("*/jobs:cut")]
    #[case("create/secrets:commit-then-cut@3")]
    #[case("update/jobs/status:409(reason=Conflict,message=try again (later), at 5*5@home: please)*0")]
    #[case("watch/jobs:cut(after=2)*2@4")]
    #[case("watch/*:gone(after=0)")]
    #[case("get/pods:slow(200ms)")]
    #[case("create/secrets in clusters-a:403(message=denied in b: no)*0")]
    fn is_written_as_it_is_read(#[case] text: &str) {
        assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
    }

    #[rstest::rstest]
    #[case("500", "a colon must stand between the target and the effect")]
    #[case("secrets:500", "the target \"secrets\" must be VERB/RESOURCE")]
    #[case("apply/secrets:500", "there is no verb \"apply\"; allowed are *, create")]
    #[case("get/Secret:500", "the resource \"Secret\" must be a plural")]
    #[case("get/secrets:200", "there is no effect \"200\"; allowed are an HTTP status")]
    #[case("get/secrets:500(reason=Odd)", "\"reason=Odd\" must be retry-after=2s")]
    #[case("get/secrets:slow", "\"\" must be like 2s or 500ms")]
    #[case("watch/secrets:gone", "must be after=N")]
    fn says_which_part_is_wrong(#[case] text: &str, #[case] wrong: &str) {
        let error = text.parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}
