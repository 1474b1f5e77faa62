//! `pull-secret status`: the fleet as a table, page by page as the API gives it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use daemon::retry::Budget;
use fleet_model::names;
use hyperfleet_client::{ListQuery, Resource, View};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::cli::{OutputFormat, StatusArguments};
use crate::output::plain;
use crate::{client, output};

/// A page may take so long.
const PAGE: Duration = Duration::from_secs(20);

/// What is asked of each cluster: not its spec.
const FIELDS: [&str; 5] = ["id", "name", "generation", "deleted_time", "status"];

/// A cluster at a glance.
#[derive(Debug, Serialize)]
struct Row {
    cluster: String,
    name: String,
    generation: i64,
    /// `True`, `False` or `Unknown`; `None` where the adapter has not reported.
    available: Option<String>,
    /// The generation that this is about.
    reported_generation: Option<i64>,
    reason: Option<String>,
    since: Option<String>,
    version: Option<u64>,
    deleting: bool,
}

/// How many clusters are how.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Summary {
    clusters: u64,
    available: u64,
    not_available: u64,
    /// Reported about an older generation.
    behind: u64,
    not_reported: u64,
    deleting: u64,
}

/// Lists the fleet.
pub(crate) fn status(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    let client = client::client(&arguments.api)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start tokio")?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        // A budget is for one run through the list; a fleet of any size is read in pages, each in good time.
        let budget = Budget::new(Duration::from_hours(1), stop);
        let fields = FIELDS.map(str::to_owned).to_vec();
        let query = ListQuery { search: arguments.search.clone(), fields, ..ListQuery::default() };
        let mut pages = client.within(&budget).list_all("clusters", query);
        let mut summary = Summary::default();
        let is_table = arguments.output == OutputFormat::Table;
        let mut begun = false;
        loop {
            let page = match tokio::time::timeout(PAGE, pages.next()).await {
                Ok(Ok(Some(page))) => page,
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Ok(client::refused(&error)),
                Err(_elapsed) => {
                    output::tell("error: the API gives no answer in time; try again later");
                    return Ok(ExitCode::from(75));
                }
            };
            let rows: Vec<Row> = page.iter().map(Row::of).collect();
            for row in &rows {
                summary.count(row);
            }
            let head = if is_table && !begun { HEAD } else { "" };
            begun = true;
            let lines = rows.iter().map(|row| row.line(arguments.output)).collect::<Vec<_>>();
            output::print(format!("{head}{}", lines.concat()))?;
        }
        output::print(summary.line(arguments.output))
    })
}

const HEAD: &str = "CLUSTER                               GEN    AVAILABLE     SINCE                 VERSION  REASON\n";

// === impl Row ===

impl Row {
    fn of(cluster: &Resource) -> Self {
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
            reported_generation: report.and_then(|report| report.get("observed_generation")?.as_i64()),
            reason: of_condition("reason"),
            since: of_condition("last_transition_time"),
            version: report.and_then(|report| number(report.pointer("/data/secretVersion")?)),
            deleting: cluster.is_deleting(),
        }
    }

    /// Whether the report is about an older generation.
    fn is_behind(&self) -> bool {
        self.reported_generation.is_some_and(|reported| reported < self.generation)
    }

    fn line(&self, output: OutputFormat) -> String {
        if output == OutputFormat::Json {
            return serde_json::to_string(self).unwrap_or_default() + "\n";
        }
        let available = match (&self.available, self.reported_generation) {
            (None, _) => "-".to_owned(),
            (Some(available), Some(reported)) if self.is_behind() => format!("{available} (gen {reported})"),
            (Some(available), _) => available.clone(),
        };
        let since =
            self.since.as_deref().map(|since| since.get(..19).map_or(since.to_owned(), |text| format!("{text}Z")));
        let version = self.version.map_or_else(|| "-".to_owned(), |version| version.to_string());
        let reason = self.reason.as_deref().unwrap_or("-");
        let mark = if self.deleting { "  (being deleted)" } else { "" };
        let (cluster, since) = (plain(&self.cluster), since.unwrap_or_else(|| "-".to_owned()));
        format!(
            "{cluster:<36}  {:<5}  {:<12}  {:<20}  {version:<7}  {}{mark}\n",
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
    fn count(&mut self, row: &Row) {
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

    fn line(&self, output: OutputFormat) -> String {
        let Self { clusters, available, not_available, behind, not_reported, deleting } = self;
        match output {
            OutputFormat::Json => serde_json::json!({ "summary": self }).to_string() + "\n",
            OutputFormat::Table if *clusters == 0 => "there is no cluster\n".to_owned(),
            OutputFormat::Table => format!(
                "\n{clusters} {}: {available} available, {not_available} not available, {behind} behind, \
                 {not_reported} not reported yet, {deleting} being deleted\n",
                if *clusters == 1 { "cluster" } else { "clusters" }
            ),
        }
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
    fn a_row_says_how_it_is(#[case] report: Value, #[case] expect: &str) {
        let expect = format!("cls-1                                 2      {expect}");
        assert_eq!(row(2, &report).line(OutputFormat::Table), expect);
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
        assert!(Summary::default().line(OutputFormat::Table).contains("no cluster"));
    }
}
