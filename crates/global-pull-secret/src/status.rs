//! The status for the hosted cluster's admin: conditions in a ConfigMap.

use std::collections::BTreeMap;

use docker_config::merge::Decision;
use fleet_model::{CamelCase, ReportedCondition, names};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::finding::ReportedFinding;
use crate::policy::ReportedPolicy;
use crate::reason::Reason;

/// The keys of the ConfigMap.
pub mod key {
    /// The conditions, as JSON.
    pub const CONDITIONS: &str = "conditions";
    /// The findings of probes, as JSON; absent without probes.
    pub const CREDENTIALS: &str = "credentials";
    /// The policy of merges, as JSON.
    pub const POLICY: &str = "policy";
    /// The merge decisions, a line for each registry.
    pub const REGISTRIES: &str = "registries";
    /// The revision of the merged Secret that the conditions are about; absent if there is none.
    pub const REVISION: &str = "revision";
    /// The conditions, a line each.
    pub const SUMMARY: &str = "summary";
}

/// A condition as of `now`.
pub fn condition(
    kind: &str,
    holds: Option<bool>,
    reason: Reason,
    message: String,
    now: Timestamp,
) -> ReportedCondition {
    ReportedCondition {
        kind: kind.to_owned(),
        status: holds.into(),
        reason: Some(reason.as_str().to_owned()),
        message: Some(message),
        last_transition_time: now,
    }
}

/// Returns true if both conditions are equal apart from their transition times.
pub fn is_same(one: &ReportedCondition, other: &ReportedCondition) -> bool {
    let ReportedCondition { kind, status, reason, message, last_transition_time: _ } = one;
    (kind, status, reason, message) == (&other.kind, &other.status, &other.reason, &other.message)
}

/// Returns true if the condition has this reason.
pub fn has_reason(condition: &ReportedCondition, reason: Reason) -> bool {
    condition.reason.as_deref() == Some(reason.as_str())
}

/// The condition on one line, such as `Merged=True (Merged): 3 registries, 1 from additional Secrets`.
pub fn line(condition: &ReportedCondition) -> String {
    let ReportedCondition { kind, status, reason, message, .. } = condition;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{kind}={status} ({}): {}", text(reason), text(message))
}

/// The conditions of the last status.
pub fn conditions_of(status: &ConfigMap) -> Vec<ReportedCondition> {
    let text = status.data.as_ref().and_then(|data| data.get(key::CONDITIONS));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The findings of the last status.
pub fn findings_of(status: &ConfigMap) -> Vec<ReportedFinding> {
    let text = status.data.as_ref().and_then(|data| data.get(key::CREDENTIALS));
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The revision that the status is about.
pub fn revision_of(status: &ConfigMap) -> Option<&str> {
    status.data.as_ref()?.get(key::REVISION).map(String::as_str)
}

/// The policy of the controller that has written the status.
pub fn policy_of(status: &ConfigMap) -> Option<ReportedPolicy> {
    serde_json::from_str(status.data.as_ref()?.get(key::POLICY)?).ok()
}

/// Time at which the status was written.
pub fn written_at(status: &ConfigMap) -> Option<Timestamp> {
    status.metadata.annotations.as_ref()?.get(names::ANNOTATION_WRITTEN_AT)?.parse().ok()
}

/// The data of the ConfigMap.
pub fn data(
    conditions: &[ReportedCondition],
    decisions: &[Decision],
    reported: &[ReportedFinding],
    revision: Option<&str>,
    policy: &ReportedPolicy,
) -> BTreeMap<String, String> {
    let lines = |lines: Vec<String>| lines.into_iter().map(|line| line + "\n").collect::<String>();
    let revision = revision.map(|revision| (key::REVISION.to_owned(), revision.to_owned()));
    let credentials = (!reported.is_empty())
        .then(|| (key::CREDENTIALS.to_owned(), serde_json::to_string(reported).unwrap_or_default()));
    let all = [
        (key::CONDITIONS.to_owned(), serde_json::to_string(&CamelCase(conditions)).unwrap_or_default()),
        (key::POLICY.to_owned(), serde_json::to_string(policy).unwrap_or_default()),
        (key::SUMMARY.to_owned(), lines(conditions.iter().map(line).collect())),
        (key::REGISTRIES.to_owned(), lines(decisions.iter().map(ToString::to_string).collect())),
    ];
    all.into_iter().chain(revision).chain(credentials).collect()
}
