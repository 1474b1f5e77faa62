//! The fleet at a glance: a row for each cluster, and a summary.

use fleet_model::names;
use hyperfleet_client::{Generation, Resource, View};
use serde::Serialize;
use serde_json::Value;

use daemon::output::plain;

/// The fields of a cluster that a row needs; its spec is not among them.
pub const FIELDS: [&str; 5] = ["id", "name", "generation", "deleted_time", "status"];

/// The heading above the rows.
pub const HEADING: &str =
    "CLUSTER                               GEN    AVAILABLE     SINCE                 VERSION  REASON\n";

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
    /// Terminating.
    pub deleting: u64,
}

// === impl Row ===

impl Row {
    /// The row of a cluster.
    pub fn of(cluster: &Resource) -> Self {
        let view = View::of(cluster);
        let report = view.adapter(names::ADAPTER);
        let condition = report.and_then(|report| {
            let conditions = report.get("conditions")?.as_array()?;
            conditions.iter().find(|condition| condition.get("type") == Some(&Value::from("Available")))
        });
        let of_condition = |name: &str| Some(condition?.get(name)?.as_str()?.to_owned());
        Self {
            cluster: cluster.id.clone(),
            name: cluster.name.clone(),
            generation: cluster.generation,
            available: report.and_then(|report| Some(report.get("available")?.as_str()?.to_owned())),
            reported_generation: report.and_then(|report| report.get("observed_generation")?.as_i64()?.try_into().ok()),
            reason: of_condition("reason"),
            since: of_condition("last_transition_time"),
            version: report.and_then(|report| number(report.pointer("/data/secretVersion")?)),
            deleting: cluster.is_deleting(),
        }
    }

    /// True if the report is of an older generation.
    fn is_behind(&self) -> bool {
        self.reported_generation.is_some_and(|reported| reported < self.generation)
    }

    /// The row as a line of the table.
    pub fn line(&self) -> String {
        let available = match (&self.available, self.reported_generation) {
            (None, _) => "-".to_owned(),
            (Some(available), Some(reported)) if self.is_behind() => format!("{available} (gen {reported})"),
            (Some(available), _) => available.clone(),
        };
        let since =
            self.since.as_deref().map(|since| since.get(..19).map_or(since.to_owned(), |text| format!("{text}Z")));
        let version = self.version.map_or_else(|| "-".to_owned(), |version| version.to_string());
        let reason = self.reason.as_deref().unwrap_or("-");
        let terminating = if self.deleting { "  (terminating)" } else { "" };
        let (cluster, since) = (plain(&self.cluster), since.unwrap_or_else(|| "-".to_owned()));
        format!(
            "{cluster:<36}  {:<5}  {:<12}  {:<20}  {version:<7}  {}{terminating}\n",
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
        let counter = match row.available.as_deref() {
            _ if row.deleting => &mut self.deleting,
            None => &mut self.not_reported,
            Some(_) if row.is_behind() => &mut self.behind,
            Some("True") => &mut self.available,
            Some(_) => &mut self.not_available,
        };
        *counter += 1;
    }

    /// The summary as a line below the table.
    pub fn line(&self) -> String {
        let Self { clusters, available, not_available, behind, not_reported, deleting } = self;
        if *clusters == 0 {
            return "there is no cluster\n".to_owned();
        }
        let noun = if *clusters == 1 { "cluster" } else { "clusters" };
        format!(
            "\n{clusters} {noun}: {available} available, {not_available} not available, {behind} behind, \
             {not_reported} not reported yet, {deleting} terminating\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn row(generation: i64, report: &Value) -> Row {
        let cluster = json!({"id": "cls-1", "generation": generation, "status": {"adapters": report}});
        Row::of(&serde_json::from_value(cluster).unwrap())
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
        let expect = format!("cls-1                                 2      {expect}");
        assert_eq!(row(2, &report).line(), expect);
    }

    #[test]
    fn a_summary_counts_each_cluster_once() {
        let mut summary = Summary::default();
        let available = |status: &str, generation: i64| json!({"pullsecret": {"available": status, "observed_generation": generation}});
        for report in [json!({}), available("True", 2), available("False", 2), available("True", 1)] {
            summary.count(&row(2, &report));
        }
        summary.count(&Row { deleting: true, ..row(2, &available("True", 2)) });
        let expect = Summary { clusters: 5, available: 1, not_available: 1, behind: 1, not_reported: 1, deleting: 1 };
        assert_eq!(summary, expect);
        assert!(Summary::default().line().contains("no cluster"));
    }
}
