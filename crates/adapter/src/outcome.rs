//! Parses the termination message of a run, which has the format of HyperFleet's status-reporter.

use fleet_model::job::STORE_WRITES;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::limits::Spent;

/// The result of a run, from its termination message.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// True if the run has succeeded.
    pub is_success: bool,
    /// The reason, if the message has a usable one.
    pub reason: Option<String>,
    /// The message.
    pub message: String,
    /// The details, for the report's `data`.
    pub details: Map<String, Value>,
    /// The exit code of the container.
    pub exit_code: i32,
    /// Writes in the secret store by the Job's Pods that have ended.
    pub spent: Spent,
}

#[derive(Deserialize)]
struct TerminationMessage {
    status: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    details: Option<Map<String, Value>>,
}

const MAX_REASON_LENGTH: usize = 128;
const MAX_MESSAGE_LENGTH: usize = 1024;
/// Members of the details that become metrics and are not reported.
const COSTS: [&str; 5] = ["apiCalls", "k8sApiCalls", "durationMs", "versionsAdded", "versionsDestroyed"];

impl Outcome {
    /// Parses the termination message of a container; a message in another format is ignored.
    pub fn of(exit_code: i32, message: &str) -> Self {
        let parsed: Option<TerminationMessage> = serde_json::from_str(message.trim()).ok();
        let Some(parsed) = parsed.filter(|parsed| matches!(parsed.status.as_str(), "success" | "failure")) else {
            let message =
                format!("the Job's container has ended with exit code {exit_code} and without a termination message");
            let spent = Spent { writes: 0, silent_pods: 1 };
            return Self { is_success: exit_code == 0, reason: None, message, details: Map::new(), exit_code, spent };
        };
        let message = parsed.message.unwrap_or_default();
        let details = parsed.details.unwrap_or_default();
        Self {
            is_success: parsed.status == "success",
            reason: parsed.reason.map(|reason| reason.trim().to_owned()).filter(|reason| is_reason(reason)),
            message: cut(message.trim(), MAX_MESSAGE_LENGTH).to_owned(),
            spent: spent(&details),
            details,
            exit_code,
        }
    }

    /// Returns the details that are reported as data.
    pub fn data(&self) -> Map<String, Value> {
        let kept = self.details.iter().filter(|(name, _)| !COSTS.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Returns the writes among the calls that a Pod reports; a Pod that reports no calls is silent.
fn spent(details: &Map<String, Value>) -> Spent {
    let Some(calls) = details.get("apiCalls").and_then(Value::as_object) else {
        return Spent { writes: 0, silent_pods: 1 };
    };
    let writes = STORE_WRITES.iter().filter_map(|name| calls.get(*name)?.as_u64());
    Spent {
        writes: writes.fold(0, |sum, count| sum.saturating_add(u32::try_from(count).unwrap_or(u32::MAX))),
        silent_pods: 0,
    }
}

/// Returns true for a reason as Kubernetes defines it: one word in CamelCase.
fn is_reason(text: &str) -> bool {
    text.len() <= MAX_REASON_LENGTH
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_pull_secret_jobs_message_is_parsed() {
        let message = r#"{"status":"success","reason":"SecretStored","message":"stored","details":{"secretVersion":3,
            "apiCalls":{"getSecret":1,"updateSecret":2,"addVersion":1},"durationMs":5,"versionsAdded":1}}"#;
        let outcome = Outcome::of(0, message);
        assert!(outcome.is_success);
        assert_eq!((outcome.reason.as_deref(), &*outcome.message), (Some("SecretStored"), "stored"));
        assert_eq!(Value::Object(outcome.data()), serde_json::json!({"secretVersion": 3}));
        assert_eq!(outcome.spent, Spent { writes: 3, silent_pods: 0 });
    }

    #[rstest]
    #[case(0, "", true)]
    #[case(137, "", false)]
    #[case(0, "not json", true)]
    #[case(1, r#"{"status": "perhaps"}"#, false)]
    #[case(0, r#"{"status": "success", "reason": "a b\nc"}"#, true)]
    fn a_message_in_another_format_is_ignored(#[case] code: i32, #[case] message: &str, #[case] success: bool) {
        let outcome = Outcome::of(code, message);
        assert_eq!((outcome.is_success, outcome.reason), (success, None));
        assert_eq!(outcome.spent, Spent { writes: 0, silent_pods: 1 });
    }
}
