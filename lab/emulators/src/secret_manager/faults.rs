//! Scripted faults: what to do to which call, how often, and from which call on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::method::Method;
use super::status::{Code, Status};
use crate::scripted::{PLACE, ParseFaultError, Parts, Repetition, Scripted, duration_of, duration_text};

/// A fault, written `METHOD[ in PROJECT]:EFFECT[*N][@K]`.
///
/// - `METHOD` is `listSecrets`, `createSecret`, `addVersion`, `getSecret`, `updateSecret`, `deleteSecret`, `listVersions`,
///   `getVersion`, `accessVersion`, `disableVersion`, `enableVersion`, `destroyVersion`, `testIamPermissions`, or `*` for any of them.
///   Without a `PROJECT` it fits the calls for every project.
/// - `EFFECT` is one of
///   - an error code in kebab case, such as `unavailable` or `resource-exhausted`: nothing is done and that is the answer.
///     `(retry-after=2s)` behind it adds the HTTP header `Retry-After` and a `google.rpc.RetryInfo` (`s` or `ms`);
///   - `iam-denied`: what IAM answers to an identity without the permission that the call needs;
///   - `quota-exceeded`: what Google answers when the project's quota of a minute is used up;
///   - `api-disabled`: what Google answers where the API is not enabled in the project;
///   - `commit-then-timeout`: does it, then answers `DEADLINE_EXCEEDED`;
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
/// use emulators::secret_manager::Fault;
///
/// let fault: Fault = "addVersion:unavailable(retry-after=2s)*3@2".parse().unwrap();
/// assert_eq!(fault.to_string(), "addVersion:unavailable(retry-after=2s)*3@2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    method: Option<Method>,
    project: Option<String>,
    effect: Effect,
    repetition: Repetition,
}

/// The target of a call.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    pub(crate) method: Method,
    pub(crate) project: String,
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Refuse { code: Code, retry_after: Option<Duration> },
    IamDenied,
    QuotaExceeded,
    ApiDisabled,
    CommitThenTimeout,
    CommitThenCut,
    CommitThenHang,
    Cut,
    Hang,
}

/// The effects that are not codes, as they are written.
const EFFECTS: [(&str, Effect); 8] = [
    ("iam-denied", Effect::IamDenied),
    ("quota-exceeded", Effect::QuotaExceeded),
    ("api-disabled", Effect::ApiDisabled),
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
        formatter.write_str(self.method.map_or("*", Method::name))?;
        if let Some(project) = &self.project {
            write!(formatter, "{PLACE}{project}")?;
        }
        write!(formatter, ":{}{}", self.effect, self.repetition)
    }
}

impl Scripted for Fault {
    type Call = Aim;
    type Effect = Effect;

    fn fits(&self, call: &Aim) -> bool {
        self.method.is_none_or(|wanted| wanted == call.method)
            && self.project.as_ref().is_none_or(|wanted| *wanted == call.project)
    }

    fn repetition(&self) -> Repetition {
        self.repetition
    }

    fn effect(&self) -> &Effect {
        &self.effect
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let Parts { target, place, effect, repetition } = Parts::of(text, "method")?;
    let project = place.map(str::to_owned);
    Ok(Fault { method: method_named(target)?, project, effect: effect_named(effect)?, repetition })
}

fn method_named(name: &str) -> Result<Option<Method>, String> {
    if name == "*" {
        return Ok(None);
    }
    Method::served().find(|method| method.name() == name).map(Some).ok_or_else(|| {
        let names: Vec<_> = Method::served().map(Method::name).collect();
        format!("there is no method {name:?}; allowed are *, {}", names.join(", "))
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
    let Some(code) = Code::errors().find(|code| code.kebab() == name) else {
        let names: Vec<_> =
            EFFECTS.iter().map(|(name, _)| (*name).to_owned()).chain(Code::errors().map(Code::kebab)).collect();
        return Err(format!("there is no effect {name:?}; allowed are {}", names.join(", ")));
    };
    let retry_after = option.map(|option| {
        let value = option.strip_prefix("retry-after=").and_then(|rest| rest.strip_suffix(')'));
        value
            .and_then(duration_of)
            .ok_or_else(|| format!("{:?} must be (retry-after=2s) or (retry-after=500ms)", format!("({option}")))
    });
    Ok(Effect::Refuse { code, retry_after: retry_after.transpose()? })
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
        if let Self::Refuse { code, retry_after } = self {
            formatter.write_str(&code.kebab())?;
            return match retry_after {
                Some(after) => write!(formatter, "(retry-after={})", duration_text(*after)),
                None => Ok(()),
            };
        }
        let named = EFFECTS.iter().find(|(_, effect)| effect == self);
        formatter.write_str(named.map_or("", |(name, _)| name))
    }
}

/// The refusal that a scripted code is answered with.
pub(crate) fn refusal(code: Code, retry_after: Option<Duration>) -> Status {
    let status = Status::new(code, format!("Scripted fault: {code}."));
    match retry_after {
        Some(after) => status.with_retry(after),
        None => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("addVersion:unavailable")]
    #[case("*:cut*0")]
    #[case("accessVersion:hang@3")]
    #[case("getSecret:resource-exhausted(retry-after=1500ms)*2@4")]
    #[case("createSecret:commit-then-timeout*3")]
    #[case("createSecret in customer-1:iam-denied*0")]
    fn is_written_as_it_is_read(#[case] text: &str) {
        assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
    }

    #[rstest::rstest]
    #[case("unavailable", "a colon must stand between the method and the effect")]
    #[case("add:cut", "there is no method \"add\"; allowed are *, listSecrets")]
    #[case(
        "*:gone",
        "there is no effect \"gone\"; allowed are iam-denied, quota-exceeded, api-disabled, commit-then-timeout"
    )]
    #[case("*:cut*x", "\"x\" in *N must be a whole number, 0 or more")]
    #[case("*:cut@0", "\"0\" in @K must be a whole number, 1 or more")]
    #[case("*:aborted(later)", "\"(later)\" must be (retry-after=2s)")]
    #[case("*:ok", "there is no effect \"ok\"")]
    fn says_which_part_is_wrong(#[case] text: &str, #[case] wrong: &str) {
        let error = text.parse::<Fault>().unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }

    #[test]
    fn counts_calls_and_happenings() {
        let mut faults = crate::scripted::Script::<Fault>::default();
        faults.add("addVersion:cut*2@2".parse().unwrap());
        let aim = |method: Method, project: &str| Aim { method, project: project.to_owned() };
        let struck: Vec<bool> = (0..5).map(|_| faults.strike(&aim(Method::AddVersion, "a")).is_some()).collect();
        assert_eq!(struck, [false, true, true, false, false]);
        assert_eq!(faults.strike(&aim(Method::GetSecret, "a")), None);
        faults.add("* in b:hang*0".parse().unwrap());
        assert_eq!(faults.strike(&aim(Method::GetSecret, "a")), None);
        assert_eq!(faults.strike(&aim(Method::GetSecret, "b")), Some(Effect::Hang));
    }
}
