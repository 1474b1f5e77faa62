//! Parses the termination message of a run, which has the format of HyperFleet's status-reporter.

use fleet_model::copy;
use fleet_model::job::{Calls, STORE_WRITES};
use serde::Deserialize;
use serde::de::DeserializeOwned;
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
    /// Their writes in the mirror.
    pub mirror_spent: Spent,
    /// Work of the Job's Pods that have ended, for the metrics.
    pub costs: Costs,
}

/// The work of Pods, as far as they have reported it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Costs {
    /// Calls to the secret store.
    #[serde(rename = "apiCalls", deserialize_with = "lenient")]
    pub store_calls: Vec<Calls>,
    /// Calls to Kubernetes.
    #[serde(rename = "k8sApiCalls", deserialize_with = "lenient")]
    pub kubernetes_calls: Vec<Calls>,
    /// Secret versions that were added.
    #[serde(deserialize_with = "lenient")]
    pub versions_added: u32,
    /// Secret versions that were destroyed.
    #[serde(deserialize_with = "lenient")]
    pub versions_destroyed: u32,
    /// Calls that were repeated.
    #[serde(deserialize_with = "lenient")]
    pub retries: u32,
}

/// Reads a member that an unknown Job may have under the same name with another meaning.
fn lenient<'de, D: serde::Deserializer<'de>, T: Default + DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

impl Costs {
    /// Adds the work of another Pod.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.store_calls.extend(other.store_calls);
        self.kubernetes_calls.extend(other.kubernetes_calls);
        self.versions_added = self.versions_added.saturating_add(other.versions_added);
        self.versions_destroyed = self.versions_destroyed.saturating_add(other.versions_destroyed);
        self.retries = self.retries.saturating_add(other.retries);
        self
    }
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
/// The writes of a Pod that does not report any.
const SILENT: Spent = Spent { writes: 0, silent_pods: 1 };
const COSTS: [&str; 6] = ["apiCalls", "k8sApiCalls", "durationMs", "versionsAdded", "versionsDestroyed", "retries"];

impl Outcome {
    /// Parses the termination message of a container; a message in another format is ignored.
    pub fn of(exit_code: i32, message: &str) -> Self {
        let parsed: Option<TerminationMessage> = serde_json::from_str(message.trim()).ok();
        let Some(parsed) = parsed.filter(|parsed| matches!(parsed.status.as_str(), "success" | "failure")) else {
            let message =
                format!("the Job's container has ended with exit code {exit_code} and without a termination message");
            return Self {
                is_success: exit_code == 0,
                reason: None,
                message,
                details: Map::new(),
                exit_code,
                spent: SILENT,
                mirror_spent: SILENT,
                costs: Costs::default(),
            };
        };
        let message = parsed.message.unwrap_or_default();
        let details = parsed.details.unwrap_or_default();
        let costs_of = |details: &Map<String, Value>| -> Costs {
            serde_json::from_value(Value::Object(details.clone())).unwrap_or_default()
        };
        let costs = costs_of(&details);
        // Each store has a quota of its own.
        let first = spent(&details, &costs);
        let mirror = copy::mirror(&details).map(|mirror| (spent(mirror, &costs_of(mirror)), costs_of(mirror)));
        let (mirror_spent, of_mirror) = mirror.unwrap_or((SILENT, Costs::default()));
        let costs = costs.and(of_mirror);
        Self {
            is_success: parsed.status == "success",
            reason: parsed.reason.map(|reason| reason.trim().to_owned()).filter(|reason| is_reason(reason)),
            message: cut(message.trim(), MAX_MESSAGE_LENGTH).to_owned(),
            spent: first,
            mirror_spent,
            details,
            exit_code,
            costs,
        }
    }

    /// Returns the details that are reported as data.
    pub fn data(&self) -> Map<String, Value> {
        let mut data = without_costs(&self.details);
        if let Some(mirror) = copy::mirror(&self.details) {
            data.insert(copy::MIRROR.to_owned(), Value::Object(without_costs(mirror)));
        }
        data
    }
}

fn without_costs(details: &Map<String, Value>) -> Map<String, Value> {
    let kept = details.iter().filter(|(name, _)| !COSTS.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the writes among the calls that a Pod reports; a Pod that reports no calls is silent.
fn spent(details: &Map<String, Value>, costs: &Costs) -> Spent {
    if !details.get("apiCalls").is_some_and(Value::is_array) {
        return SILENT;
    }
    let writes = costs.store_calls.iter().filter(|calls| STORE_WRITES.contains(&calls.operation.as_str()));
    Spent { writes: writes.fold(0, |sum, calls| sum.saturating_add(calls.count)), silent_pods: 0 }
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
            "apiCalls":[{"operation":"get_secret","statusCode":200,"count":1},
                {"operation":"update_secret","statusCode":409,"count":2,"ms":[1,2]},
                {"operation":"add_secret_version","statusCode":200,"count":1}],
            "durationMs":5,"versionsAdded":1}}"#;
        let outcome = Outcome::of(0, message);
        assert!(outcome.is_success);
        assert_eq!((outcome.reason.as_deref(), &*outcome.message), (Some("SecretStored"), "stored"));
        assert_eq!(Value::Object(outcome.data()), serde_json::json!({"secretVersion": 3}));
        assert_eq!(outcome.spent, Spent { writes: 3, silent_pods: 0 });
        assert_eq!((outcome.costs.versions_added, outcome.costs.store_calls.len()), (1, 3));
    }

    /// Each store has a quota of its own, and the report has no costs.
    #[test]
    fn the_mirror_s_calls_are_costs_and_writes_of_the_mirror() {
        let calls = |operation: &str| format!(r#"[{{"operation":"{operation}","statusCode":200,"count":1}}]"#);
        let message = format!(
            r#"{{"status":"success","details":{{"secretVersion":3,"versionsAdded":1,"apiCalls":{},"mirror":{{
                "secretVersion":2,"awsRegion":"r","versionsAdded":2,"versionsDestroyed":0,"apiCalls":{}}}}}}}"#,
            calls("add_secret_version"),
            calls("add_secret_version").replace("\"count\":1", "\"count\":2"),
        );
        let outcome = Outcome::of(0, &message);
        assert_eq!(outcome.spent, Spent { writes: 1, silent_pods: 0 });
        assert_eq!(outcome.mirror_spent, Spent { writes: 2, silent_pods: 0 });
        assert_eq!((outcome.costs.versions_added, outcome.costs.store_calls.len()), (3, 2));
        let expected = serde_json::json!({"secretVersion": 3, "mirror": {"secretVersion": 2, "awsRegion": "r"}});
        assert_eq!(Value::Object(outcome.data()), expected);
    }

    #[test]
    fn members_of_an_unknown_form_are_no_costs() {
        let message =
            r#"{"status":"success","details":{"apiCalls":{"getSecret":1},"retries":"two","versionsAdded":4}}"#;
        let outcome = Outcome::of(0, message);
        assert_eq!(outcome.spent, Spent { writes: 0, silent_pods: 1 });
        assert_eq!(outcome.costs, Costs { versions_added: 4, ..Costs::default() });
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
