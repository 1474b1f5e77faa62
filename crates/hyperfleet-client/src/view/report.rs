//! An adapter's report, as `status.adapters` of a resource has it.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{Generation, Report, Status};

/// An adapter's report, as `status.adapters` of a resource has it. A member that is absent or malformed is `None`.
#[derive(Clone, Copy, Debug)]
pub struct ReportView<'a>(&'a Value);

// === impl ReportView ===

impl<'a> ReportView<'a> {
    /// Returns the view of a value of `status.adapters`.
    pub(crate) const fn of(report: &'a Value) -> Self {
        Self(report)
    }

    /// Returns the status of the condition `Available`, as the API writes it.
    pub fn available(self) -> Option<&'a str> {
        self.text("available")
    }

    /// Returns true if the adapter reports that its work for the observed generation is done.
    pub fn is_available(self) -> bool {
        self.available() == Some(Status::True.as_str())
    }

    /// Returns the generation that the report observed.
    pub fn generation(self) -> Option<Generation> {
        self.0.get("observed_generation")?.as_i64()?.try_into().ok()
    }

    /// Returns the time of the report, by the adapter's clock.
    pub fn time(self) -> Option<Timestamp> {
        self.text("last_report_time")?.parse().ok()
    }

    /// Returns the condition of that type.
    pub fn condition(self, kind: &str) -> Option<&'a Value> {
        let conditions = self.0.get("conditions")?.as_array()?;
        conditions.iter().find(|condition| condition.get("type").is_some_and(|given| given == kind))
    }

    /// Returns the adapter's data.
    pub fn data(self) -> Option<&'a Map<String, Value>> {
        self.0.get("data")?.as_object()
    }

    /// Returns the report of that adapter; `None` if it is not of the contract's form.
    pub fn to_report(self, adapter: &str) -> Option<Report> {
        let mut members = self.0.as_object()?.clone();
        members.insert("adapter".to_owned(), Value::from(adapter));
        serde_json::from_value(Value::Object(members)).ok()
    }

    fn text(self, member: &str) -> Option<&'a str> {
        self.0.get(member)?.as_str()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_read() {
        let value = json!({
            "available": "True", "observed_generation": 2, "last_report_time": "2026-01-01T00:00:00Z", "data": {"a": 1},
            "conditions": [{"type": "Health"}, {"type": "Available", "reason": "first"}, {"type": "Available"}],
        });
        let report = ReportView::of(&value);
        assert_eq!((report.available(), report.is_available()), (Some("True"), true));
        assert_eq!(report.generation(), Some(Generation::from(2)));
        assert_eq!(report.time(), "2026-01-01T00:00:00Z".parse().ok());
        assert_eq!(report.condition("Available").unwrap()["reason"], "first");
        assert_eq!(report.data().unwrap()["a"], 1);
    }

    #[rstest]
    #[case::empty(json!({}))]
    #[case::not_an_object(json!("True"))]
    #[case::null(json!({"available": null, "observed_generation": null, "conditions": null, "data": null}))]
    #[case::of_another_type(json!({
        "available": true, "observed_generation": "2", "last_report_time": "now", "conditions": {}, "data": [],
    }))]
    #[case::not_a_generation(json!({"observed_generation": -1, "conditions": [{"type": 1}, "Available"]}))]
    #[case::too_great_a_number(json!({"observed_generation": u64::MAX}))]
    fn a_member_that_is_absent_or_malformed_is_none(#[case] value: Value) {
        let report = ReportView::of(&value);
        assert_eq!((report.available(), report.is_available(), report.generation()), (None, false, None));
        assert_eq!((report.time(), report.condition("Available"), report.data()), (None, None, None));
    }

    #[test]
    fn a_report_of_the_contracts_form_is_made_whole() {
        let report = |value: Value| ReportView::of(&value).to_report("dns");
        let whole = report(json!({"available": "True", "observed_generation": 0, "conditions": null})).unwrap();
        assert_eq!((whole.adapter.as_str(), whole.observed_generation), ("dns", Generation::NONE));
        assert_eq!(report(json!({"observed_generation": -1})), None);
        assert_eq!(report(json!(null)), None);
    }
}
