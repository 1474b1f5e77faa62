//! The fleet at a glance: a row for each cluster, and a summary.

use adapter::Checked;
use adapter::decide::unmet;
use fleet_model::condition::known_time;
use fleet_model::{copy, names};
use hyperfleet_client::{Generation, Report, ReportView, Resource, View};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::cluster::{built_in_adapter, is_of_another_store};
use crate::decide::{age, unreported_since};
use crate::facts::Heartbeat;
use daemon::output::plain;

/// The fields of a cluster that a row needs; of its spec only those that the built-in preconditions read.
pub const FIELDS: [&str; 10] = [
    "id",
    "name",
    "generation",
    "created_time",
    "updated_time",
    "deleted_time",
    "status",
    "spec.provider",
    "spec.gcp.projectId",
    "spec.pullSecret",
];

/// The heading above the rows.
pub const HEADING: &str = "CLUSTER                               NAME                  GEN    AVAILABLE     SINCE                 VERSION  REASON\n";

/// The means to compare what is reported with what is.
#[derive(Debug)]
pub struct Judge {
    config: Option<Checked>,
    now: Timestamp,
    stale_after: SignedDuration,
}

/// A cluster at a glance.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The cluster's id.
    pub cluster: String,
    /// The cluster's name.
    pub name: String,
    /// The cluster's generation.
    pub generation: Generation,
    /// `True`, `False` or `Unknown`; `None` where the adapter has not reported.
    pub available: Option<String>,
    /// The generation that the report observed.
    pub reported_generation: Option<Generation>,
    /// The reason of the condition `Available`.
    pub reason: Option<String>,
    /// Time of the last transition of `Available`.
    pub since: Option<String>,
    /// Number of the stored version.
    pub version: Option<u64>,
    /// Time of the report.
    pub reported_time: Option<Timestamp>,
    /// Time since which nothing is missing, if the adapter has not reported that in time.
    pub stalled_since: Option<Timestamp>,
    /// True if the cluster is terminating.
    pub deleting: bool,
}

/// Number of clusters by state.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// All clusters.
    pub clusters: u64,
    /// Available at the current generation.
    pub available: u64,
    /// Not available.
    pub not_available: u64,
    /// Reported at an older generation.
    pub behind: u64,
    /// The adapter has not reported yet.
    pub not_reported: u64,
    /// Nothing is missing, and the adapter does not report it.
    pub stalled: u64,
    /// Terminating.
    pub deleting: u64,
    /// Time of the adapter's last report about any of the clusters.
    pub last_report: Option<Timestamp>,
}

// === impl Judge ===

impl Judge {
    /// Judges by the adapter's built-in preconditions; those that a fleet's own configuration adds are not known here. A cluster at
    /// another store than Google's is judged if the adapter has reported about its generation.
    pub fn new(now: Timestamp, stale_after: SignedDuration) -> Self {
        Self { config: built_in_adapter(), now, stale_after }
    }

    /// Returns since when nothing is missing for the cluster without a report of that; `None` if it may still come.
    fn stalled_since(&self, cluster: &Resource, view: &View) -> Option<Timestamp> {
        let config = self.config.as_ref()?;
        let reports: Vec<Report> = view.reports().filter_map(|(name, report)| report.to_report(name)).collect();
        let own = reports.iter().find(|report| report.adapter == names::ADAPTER);
        let heartbeats: Vec<Heartbeat> = reports.iter().map(Heartbeat::of).collect();
        let since = unreported_since(cluster, own, &heartbeats)?;
        let is_overdue = self.now.duration_since(since) >= self.stale_after;
        let current = own.filter(|own| own.observed_generation >= cluster.generation);
        let is_foreign = |line: &str| current.is_some_and(|report| is_of_another_store(line, report));
        let waits = || unmet(config, view).iter().any(|unmet| !is_foreign(&unmet.line));
        (is_overdue && !cluster.is_deleting() && !waits()).then_some(since)
    }
}

// === impl Row ===

impl Row {
    /// The row of a cluster.
    pub fn of(cluster: &Resource, judge: &Judge) -> Self {
        let view = View::of(cluster);
        let report = view.report(names::ADAPTER);
        let condition = report.and_then(|report| report.condition(names::condition::AVAILABLE));
        let of_condition = |name: &str| Some(condition?.get(name)?.as_str()?.to_owned());
        Self {
            cluster: cluster.id.clone(),
            name: cluster.name.clone(),
            generation: cluster.generation,
            available: report.and_then(|report| Some(report.available()?.to_owned())),
            reported_generation: report.and_then(ReportView::generation),
            reason: of_condition("reason"),
            since: of_condition("last_transition_time"),
            version: report.and_then(|report| number(report.data()?.get(copy::VERSION)?)),
            reported_time: report
                .and_then(|report| report.to_report(names::ADAPTER))
                .and_then(|report| known_time(report.last_report_time)),
            stalled_since: judge.stalled_since(cluster, &view),
            deleting: cluster.is_deleting(),
        }
    }

    /// True if the report is of an older generation.
    fn is_behind(&self) -> bool {
        self.reported_generation.is_some_and(|reported| reported < self.generation)
    }

    /// The row as a line of the table; ages are counted from `now`.
    pub fn line(&self, now: Timestamp) -> String {
        let available = match (&self.available, self.reported_generation) {
            (None, _) => "-".to_owned(),
            (Some(available), Some(reported)) if self.is_behind() => format!("{available} (gen {reported})"),
            (Some(available), _) => available.clone(),
        };
        let since =
            self.since.as_deref().map(|since| since.get(..19).map_or(since.to_owned(), |text| format!("{text}Z")));
        let version = self.version.map_or_else(|| "-".to_owned(), |version| version.to_string());
        let reason = self.reason.as_deref().unwrap_or("-");
        let stalled =
            |since: Timestamp| format!("  (stale: all preconditions are met for {})", age(now.duration_since(since)));
        let note = match self.stalled_since {
            _ if self.deleting => "  (terminating)".to_owned(),
            since => since.map(stalled).unwrap_or_default(),
        };
        let (cluster, name) = (plain(&self.cluster), plain(&self.name));
        let since = since.unwrap_or_else(|| "-".to_owned());
        format!(
            "{cluster:<36}  {name:<20}  {:<5}  {:<12}  {:<20}  {version:<7}  {}{note}\n",
            self.generation,
            plain(&available),
            plain(&since),
            plain(reason),
        )
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

// === impl Summary ===

impl Summary {
    /// Counts a row.
    pub fn count(&mut self, row: &Row) {
        self.clusters += 1;
        self.last_report = self.last_report.max(row.reported_time);
        let counter = match row.available.as_deref() {
            _ if row.deleting => &mut self.deleting,
            _ if row.stalled_since.is_some() => &mut self.stalled,
            None => &mut self.not_reported,
            Some(_) if row.is_behind() => &mut self.behind,
            Some("True") => &mut self.available,
            Some(_) => &mut self.not_available,
        };
        *counter += 1;
    }

    /// The summary below the table; ages are counted from `now`.
    pub fn text(&self, now: Timestamp) -> String {
        let Self { clusters, available, not_available, behind, not_reported, stalled, deleting, last_report } = self;
        if *clusters == 0 {
            return "there is no cluster\n".to_owned();
        }
        let noun = if *clusters == 1 { "cluster" } else { "clusters" };
        let last_report = match last_report {
            Some(time) => format!("the adapter's last report is {} old", age(now.duration_since(*time))),
            None => "the adapter has not reported about any of them".to_owned(),
        };
        format!(
            "\n{clusters} {noun}: {available} available, {not_available} not available, {behind} behind, \
             {not_reported} not reported yet, {stalled} stalled, {deleting} terminating; {last_report}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T01:00:00Z";

    fn judge() -> Judge {
        Judge::new(NOW.parse().unwrap(), SignedDuration::from_secs(30))
    }

    fn row(generation: i64, report: &Value) -> Row {
        let cluster = json!({"id": "cls-1", "name": "prod", "generation": generation, "status": {"adapters": report}});
        Row::of(&serde_json::from_value(cluster).unwrap(), &judge())
    }

    /// The row of a cluster whose preconditions were met at that time, with this report of the adapter.
    fn ready(met: &str, report: &Value) -> Row {
        ready_at("gcp", met, report)
    }

    fn ready_at(provider: &str, met: &str, report: &Value) -> Row {
        let done = json!({"available": "True", "observed_generation": 2, "conditions": [
            {"type": "Available", "status": "True", "last_transition_time": met}]});
        let mut adapters = json!({"validation": done, "dns": done, "placement": done});
        if !report.is_null() {
            adapters["pullsecret"] = report.clone();
        }
        let cluster = json!({
            "id": "cls-1", "generation": 2, "created_time": "2026-01-01T00:00:00Z", "status": {"adapters": adapters},
            "spec": {"provider": provider, "gcp": {"projectId": "p"}, "pullSecret": {"data": {"redacted": true}}},
        });
        Row::of(&serde_json::from_value(cluster).unwrap(), &judge())
    }

    fn said(generation: i64, reason: &str, time: &str) -> Value {
        json!({"available": "False", "observed_generation": generation, "last_report_time": time, "conditions": [
            {"type": "Available", "status": "False", "reason": reason, "last_transition_time": time}]})
    }

    #[rstest]
    #[case::never_reported("2026-01-01T00:58:00Z", Value::Null, true)]
    #[case::still_waiting("2026-01-01T00:58:00Z", said(2, "PreconditionsNotMet", "2026-01-01T00:57:00Z"), true)]
    #[case::of_an_older_generation("2026-01-01T00:58:00Z", said(1, "JobFailed", "2026-01-01T00:59:00Z"), true)]
    #[case::reported_since("2026-01-01T00:58:00Z", said(2, "PreconditionsNotMet", "2026-01-01T00:58:30Z"), false)]
    #[case::in_time("2026-01-01T00:59:50Z", Value::Null, false)]
    fn a_report_that_does_not_come_is_shown(#[case] met: &str, #[case] report: Value, #[case] is_stalled: bool) {
        let row = ready(met, &report);
        assert_eq!(row.stalled_since.is_some(), is_stalled);
        let line = row.line(NOW.parse().unwrap());
        assert_eq!(line.ends_with("  (stale: all preconditions are met for 2 min)\n"), is_stalled, "{line}");
        let mut summary = Summary::default();
        summary.count(&row);
        assert_eq!(summary.stalled, u64::from(is_stalled));
    }

    #[rstest]
    #[case::it_waited_for_another_adapter(2, "waiting for dns: not reported yet", true)]
    #[case::it_stores_at_google_only(2, "`spec.provider == \"gcp\"` is false: left side is \"aws\"", false)]
    #[case::of_an_older_generation(1, "waiting for dns: not reported yet", false)]
    fn a_cluster_at_another_store_is_judged_by_what_the_adapter_names(
        #[case] generation: i64,
        #[case] message: &str,
        #[case] is_stalled: bool,
    ) {
        let mut report = said(generation, "PreconditionsNotMet", "2026-01-01T00:57:00Z");
        report["conditions"][0]["message"] = json!(message);
        assert_eq!(ready_at("aws", "2026-01-01T00:58:00Z", &report).stalled_since.is_some(), is_stalled);
    }

    #[rstest]
    #[case(json!({}), "-             -                     -        -\n")]
    #[case(
        json!({"pullsecret": {"available": "True", "observed_generation": 2, "data": {"secretVersion": 7}, "conditions": [
            {"type": "Available", "reason": "SecretStored", "last_transition_time": "2026-01-01T00:00:00.123456Z"}]}}),
        "True          2026-01-01T00:00:00Z  7        SecretStored\n"
    )]
    #[case(
        json!({"pullsecret": {"available": "True", "observed_generation": 1, "data": {"secretVersion": "7"}}}),
        "True (gen 1)  -                     7        -\n"
    )]
    fn a_row_shows_the_reported_state(#[case] report: Value, #[case] expect: &str) {
        let expect = format!("cls-1                                 prod                  2      {expect}");
        assert_eq!(row(2, &report).line(NOW.parse().unwrap()), expect);
    }

    #[test]
    fn a_summary_counts_each_cluster_once() {
        let mut summary = Summary::default();
        let available = |status: &str, generation: i64| json!({"pullsecret": {"available": status, "observed_generation": generation}});
        for report in [json!({}), available("True", 2), available("False", 2), available("True", 1)] {
            summary.count(&row(2, &report));
        }
        summary.count(&Row { deleting: true, ..row(2, &available("True", 2)) });
        let expect = Summary {
            clusters: 5,
            available: 1,
            not_available: 1,
            behind: 1,
            not_reported: 1,
            deleting: 1,
            ..Summary::default()
        };
        assert_eq!(summary, expect);
        assert!(Summary::default().text(Timestamp::UNIX_EPOCH).contains("no cluster"));
    }
}
