//! What a run has said at its end: the termination message, in the format of HyperFleet's status-reporter.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a run has said at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whether it did what it was asked to.
    pub is_success: bool,
    /// In one word, if it has said a usable one.
    pub reason: Option<String>,
    /// In a sentence.
    pub message: String,
    /// What it has found, for the report's `data`.
    pub details: Map<String, Value>,
    /// Its exit code.
    pub exit_code: i32,
}

#[derive(Deserialize)]
struct Told {
    status: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    details: Option<Map<String, Value>>,
}

const LONGEST_REASON: usize = 128;
const LONGEST_MESSAGE: usize = 1024;
/// Members of a report's data that count what the run has cost; they go into metrics.
const COSTS: [&str; 5] = ["apiCalls", "k8sApiCalls", "durationMs", "versionsAdded", "versionsDestroyed"];

impl Outcome {
    /// What a container that ended has said; a message in another form is no message.
    pub fn of(exit_code: i32, message: &str) -> Self {
        let told: Option<Told> = serde_json::from_str(message.trim()).ok();
        let Some(told) = told.filter(|told| matches!(told.status.as_str(), "success" | "failure")) else {
            let message =
                format!("the Job's container has ended with exit code {exit_code} and has said nothing usable");
            return Self { is_success: exit_code == 0, reason: None, message, details: Map::new(), exit_code };
        };
        let message = told.message.unwrap_or_default();
        Self {
            is_success: told.status == "success",
            reason: told.reason.map(|reason| reason.trim().to_owned()).filter(|reason| is_reason(reason)),
            message: cut(message.trim(), LONGEST_MESSAGE).to_owned(),
            details: told.details.unwrap_or_default(),
            exit_code,
        }
    }

    /// What of it is reported as data.
    pub fn data(&self) -> Map<String, Value> {
        let kept = self.details.iter().filter(|(name, _)| !COSTS.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// As Kubernetes has reasons: CamelCase, one word.
fn is_reason(text: &str) -> bool {
    text.len() <= LONGEST_REASON
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
    fn what_the_pull_secret_job_says_is_understood() {
        let message = r#"{"status":"success","reason":"SecretStored","message":"stored","details":{"secretVersion":3,
            "apiCalls":{"getSecret":1},"durationMs":5,"versionsAdded":1}}"#;
        let outcome = Outcome::of(0, message);
        assert!(outcome.is_success);
        assert_eq!((outcome.reason.as_deref(), &*outcome.message), (Some("SecretStored"), "stored"));
        assert_eq!(Value::Object(outcome.data()), serde_json::json!({"secretVersion": 3}));
    }

    #[rstest]
    #[case(0, "", true)]
    #[case(137, "", false)]
    #[case(0, "not json", true)]
    #[case(1, r#"{"status": "perhaps"}"#, false)]
    #[case(0, r#"{"status": "success", "reason": "a b\nc"}"#, true)]
    fn what_is_said_in_another_form_is_not_believed(#[case] code: i32, #[case] message: &str, #[case] success: bool) {
        let outcome = Outcome::of(code, message);
        assert_eq!((outcome.is_success, outcome.reason), (success, None));
    }
}
