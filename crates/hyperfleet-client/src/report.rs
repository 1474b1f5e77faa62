//! Reports of an adapter about a resource, in the two forms that APIs accept.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{Generation, Report, ReportMetadata, Status};

/// The report of an adapter about a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct NewReport {
    /// The adapter.
    pub adapter: String,
    /// The generation that it observed.
    pub observed_generation: Generation,
    /// Its conditions; at least `Available`, `Applied` and `Health`.
    pub conditions: Vec<NewCondition>,
    /// Further data.
    pub data: Map<String, Value>,
    /// The time of the observation, by [`Client::observe`](crate::Client::observe): the API discards a report that was observed
    /// before the one it has. Without it the client gives the time of sending.
    pub observed_time: Option<Timestamp>,
    /// About the run behind the report.
    pub metadata: Option<ReportMetadata>,
}

/// One finding of an adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// Such as `Available`.
    pub kind: String,
    /// The status.
    pub status: Status,
    /// One word, for programs.
    pub reason: Option<String>,
    /// A sentence, for people.
    pub message: Option<String>,
    /// The time of the last change of its status, if known; only the specification's form has it.
    pub last_transition_time: Option<Timestamp>,
}

/// The result of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Reported {
    /// It is stored; with what the API now knows from this adapter, where it says so.
    Stored(Option<Box<Report>>),
    /// The API knows better already (a newer generation or a newer report), or has nothing to learn from it.
    Discarded,
    /// There is no such resource any more.
    Gone,
}

// === impl NewReport ===

impl NewReport {
    /// The report as today's contract writes it.
    pub(crate) fn snake_case(&self, observed: Timestamp) -> Value {
        let mut body = json!({
            "adapter": self.adapter,
            "observed_generation": self.observed_generation,
            "observed_time": shown(observed),
            "conditions": self.conditions.iter().map(NewCondition::common).collect::<Vec<_>>(),
        });
        self.complete(&mut body);
        body
    }

    /// The report as the specification writes it.
    pub(crate) fn camel_case(&self, observed: Timestamp) -> Value {
        let conditions = self.conditions.iter().map(|condition| {
            let mut members = condition.common();
            let changed = shown(condition.last_transition_time.unwrap_or(observed));
            members.insert("lastTransitionTime".to_owned(), Value::String(changed));
            members
        });
        let mut body = json!({
            "adapter": self.adapter,
            "observedGeneration": self.observed_generation,
            "conditions": conditions.collect::<Vec<_>>(),
            "lastUpdated": shown(observed),
        });
        self.complete(&mut body);
        body
    }

    /// The members that are equal in both forms.
    fn complete(&self, body: &mut Value) {
        let Some(body) = body.as_object_mut() else { return };
        if !self.data.is_empty() {
            body.insert("data".to_owned(), Value::Object(self.data.clone()));
        }
        if let Some(metadata) = &self.metadata {
            body.insert("metadata".to_owned(), json!(metadata));
        }
    }
}

// === impl NewCondition ===

impl NewCondition {
    fn common(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("type".to_owned(), json!(self.kind));
        members.insert("status".to_owned(), json!(self.status));
        for (name, text) in [("reason", &self.reason), ("message", &self.message)] {
            if let Some(text) = text {
                members.insert(name.to_owned(), json!(text));
            }
        }
        members
    }
}

/// A time with all six digits: two reports within a second must differ.
fn shown(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dns() -> NewReport {
        let condition = |kind: &str, reason: &str, changed: Option<&str>| NewCondition {
            kind: kind.to_owned(),
            status: Status::True,
            reason: Some(reason.to_owned()),
            message: None,
            last_transition_time: changed.map(|time| time.parse().unwrap()),
        };
        NewReport {
            adapter: "dns".to_owned(),
            observed_generation: Generation::FIRST,
            conditions: vec![
                condition("Available", "AllRecordsCreated", Some("2025-10-21T14:33:00Z")),
                condition("Health", "NoErrors", None),
            ],
            data: json!({"recordsCreated": ["api.cluster.example.com"]}).as_object().unwrap().clone(),
            observed_time: None,
            metadata: Some(ReportMetadata { job_name: Some("dns-1".to_owned()), ..ReportMetadata::default() }),
        }
    }

    #[test]
    fn today_s_contract_is_written_in_snake_case() {
        let body = dns().snake_case("2025-10-21T14:35:00Z".parse().unwrap());
        let expect = json!({
            "adapter": "dns", "observed_generation": 1, "observed_time": "2025-10-21T14:35:00.000000Z",
            "conditions": [
                {"type": "Available", "status": "True", "reason": "AllRecordsCreated"},
                {"type": "Health", "status": "True", "reason": "NoErrors"},
            ],
            "data": {"recordsCreated": ["api.cluster.example.com"]}, "metadata": {"job_name": "dns-1"},
        });
        assert_eq!(body, expect);
    }

    #[test]
    fn the_specification_is_written_in_camel_case() {
        let body = dns().camel_case("2025-10-21T14:35:00Z".parse().unwrap());
        let (given, now) = ("2025-10-21T14:33:00.000000Z", "2025-10-21T14:35:00.000000Z");
        let expect = json!({
            "adapter": "dns", "observedGeneration": 1, "lastUpdated": now,
            "conditions": [
                {"type": "Available", "status": "True", "reason": "AllRecordsCreated", "lastTransitionTime": given},
                {"type": "Health", "status": "True", "reason": "NoErrors", "lastTransitionTime": now},
            ],
            "data": {"recordsCreated": ["api.cluster.example.com"]}, "metadata": {"job_name": "dns-1"},
        });
        assert_eq!(body, expect);
    }
}
