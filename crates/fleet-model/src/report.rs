//! Reports: what an adapter has reported about a resource, as the API stores it.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::condition::{is_unknown, unknown_time};
use crate::{Generation, ReportedCondition, Status};

/// The last stored report of an adapter about a resource.
///
/// Reading is lenient, as other servers may leave members out: a missing generation is [`Generation::NONE`], a missing
/// time is [`UNKNOWN_TIME`](crate::UNKNOWN_TIME), `null` is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the adapter.
    pub adapter: String,
    /// Generation of the resource that the report describes.
    #[serde(default, alias = "observedGeneration")]
    pub observed_generation: Generation,
    /// Conditions; `Available`, `Applied` and `Health` at least.
    #[serde(default, deserialize_with = "null_is_default")]
    pub conditions: Vec<ReportedCondition>,
    /// Further data of the adapter's own.
    #[serde(default, deserialize_with = "null_is_default")]
    pub data: Map<String, Value>,
    /// The run behind the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ReportMetadata>,
    /// Time at which the adapter's first report was observed.
    #[serde(default = "unknown_time", skip_serializing_if = "is_unknown")]
    pub created_time: Timestamp,
    /// Time of this report, by the adapter's clock (`observed_time`).
    #[serde(default = "unknown_time", alias = "lastUpdated", skip_serializing_if = "is_unknown")]
    pub last_report_time: Timestamp,
}

/// The run behind a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportMetadata {
    /// Name of the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Namespace of the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_namespace: Option<String>,
    /// Number of the attempt at this generation, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i64>,
    /// Start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_time: Option<Timestamp>,
    /// End of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_time: Option<Timestamp>,
    /// Duration of the run, such as `1m30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

/// A change of the status of one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Name of the adapter that reported the condition, or of the API where it is the API's own conclusion.
    pub adapter: String,
    /// Type of the condition, such as `Available`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status before; `None` at the first report.
    #[serde(default)]
    pub from: Option<Status>,
    /// Status after.
    pub to: Status,
    /// Reason of the new status.
    #[serde(default)]
    pub reason: Option<String>,
    /// Message of the new status.
    #[serde(default)]
    pub message: Option<String>,
    /// Generation of the resource that the condition describes.
    #[serde(default)]
    pub observed_generation: Generation,
    /// Time of the change, by the observer's clock.
    #[serde(default = "unknown_time", skip_serializing_if = "is_unknown")]
    pub time: Timestamp,
}

// === impl Report ===

impl Report {
    /// Returns the status of the condition of that type; `Unknown` where the report has none.
    pub fn status(&self, kind: &str) -> Status {
        self.condition(kind).map_or(Status::Unknown, |condition| condition.status)
    }

    /// Returns the condition of that type.
    pub fn condition(&self, kind: &str) -> Option<&ReportedCondition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

/// Reads `null` as an absent member.
fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_complete_report_survives_reading_and_writing() {
        let time = "2026-01-01T00:00:00.000001Z";
        let json = json!({
            "adapter": "pullsecret", "observed_generation": 3,
            "conditions": [{"type": "Available", "status": "True", "last_transition_time": time}],
            "data": {"secretVersion": 7}, "metadata": {"job_name": "pullsecret-c-gen3", "attempt": 1},
            "created_time": time, "last_report_time": time,
        });
        let report: Report = serde_json::from_value(json.clone()).unwrap();
        assert_eq!((report.status("Available"), report.status("Health")), (Status::True, Status::Unknown));
        assert_eq!(serde_json::to_value(&report).unwrap(), json);
    }

    #[test]
    fn camel_case_null_and_absent_members_are_read() {
        let report: Report = serde_json::from_value(json!({
            "adapter": "dns", "observedGeneration": 4, "data": null, "lastUpdated": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        assert_eq!(report.observed_generation, Generation::from(4));
        assert_eq!(report.last_report_time, "2026-01-01T00:00:00Z".parse().unwrap());
        assert!(report.conditions.is_empty() && report.data.is_empty());
        let bare: Report = serde_json::from_value(json!({"adapter": "dns"})).unwrap();
        assert_eq!(bare.observed_generation, Generation::NONE);
    }
}
