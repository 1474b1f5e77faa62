//! The causes for which clusters are not available: a row for each cause, that of most clusters first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use adapter::Reason;
use adapter::decide::REPAIRS;
use fleet_model::cause::{Cause, Causes, Grouping, Observed};
use fleet_model::condition::condition_type;
use fleet_model::{Condition, UNKNOWN_TIME, job, names};
use hyperfleet_client::{Calls, Error, ListQuery, Resource, View};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::decide::age;
use crate::decide::message::{failed_pods, operation};
use crate::page::moment;
use daemon::output::{plain, table};

/// The fields of a cluster from which its cause follows, where the API does not group clusters itself.
const FIELDS: [&str; 7] = ["id", "name", "generation", "created_time", "updated_time", "deleted_time", "status"];

/// The causes of a fleet.
#[derive(Debug, Serialize)]
pub struct Why {
    /// Number of clusters.
    pub clusters: u64,
    /// Number of clusters that are available at their generation.
    pub available: u64,
    /// The condition that has the reasons, as searches name it.
    pub condition: String,
    /// The causes: that of most clusters first, then the oldest.
    pub causes: Vec<Row>,
}

/// A cause.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The reason, with the explanation of one of the clusters.
    #[serde(flatten)]
    pub cause: Cause,
    /// The meaning of the reason, if it is one of this project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<&'static str>,
}

/// Reads the causes, grouped by the API, or else from a list of all clusters.
pub async fn read(calls: &Calls<'_>, search: Option<&str>) -> Result<Why, Error> {
    if let Some(causes) = calls.causes("clusters", names::ADAPTER, search).await? {
        return Ok(Why::of(causes));
    }
    let fields = FIELDS.map(str::to_owned).to_vec();
    let mut pages =
        calls.list_all("clusters", ListQuery { search: search.map(str::to_owned), fields, ..ListQuery::default() });
    let condition = condition_type(names::ADAPTER);
    let mut grouping = Grouping::default();
    while let Some(page) = pages.next().await? {
        for cluster in calls.all_with_adapters("clusters", page).await? {
            add(&mut grouping, &cluster, &condition);
        }
    }
    Ok(Why::of(grouping.causes(&condition)))
}

/// Adds a cluster with its condition, or with what the adapter reports where the API has no such condition.
fn add(grouping: &mut Grouping, cluster: &Resource, kind: &str) {
    let concluded = cluster.status.conditions.iter().find(|condition| condition.kind == kind).cloned();
    let condition = concluded.or_else(|| reported(cluster));
    grouping.add(&Observed {
        id: &cluster.id,
        name: &cluster.name,
        generation: cluster.generation,
        updated_time: cluster.updated_time.or(cluster.created_time).unwrap_or(UNKNOWN_TIME),
        is_terminating: cluster.is_deleting(),
        condition: condition.as_ref(),
    });
}

/// Returns the condition `Available` of the adapter's report.
fn reported(cluster: &Resource) -> Option<Condition> {
    let view = View::of(cluster);
    let report = view.report(names::ADAPTER)?;
    let available = report.condition(names::condition::AVAILABLE)?;
    let mut condition: Condition = serde_json::from_value(available.clone()).ok()?;
    condition.observed_generation = report.generation()?;
    if let Some(time) = report.time() {
        condition.last_updated_time = time;
    }
    Some(condition)
}

// === impl Why ===

impl Why {
    /// Joins what the reason and the failed operation tell apart, whatever places the messages name. What a precondition waits
    /// for is in its message, and why Pods have failed whose Job still runs.
    pub fn of(causes: Causes) -> Self {
        let Causes { condition, total, done, items } = causes;
        let mut merged: BTreeMap<_, Cause> = BTreeMap::new();
        for (index, cause) in items.into_iter().enumerate() {
            let is_waiting = cause.reason.as_deref() == Some(Reason::PreconditionsNotMet.as_str());
            let own = is_waiting.then_some(index);
            let message = cause.message.as_deref().unwrap_or_default();
            let operation = match failed_pods(message) {
                Some((_, reason, failed)) => (Some(reason.to_owned()), operation(failed).map(str::to_owned)),
                None if message.contains(REPAIRS) => (None, Some(REPAIRS.to_owned())),
                None => (None, operation(message).map(str::to_owned)),
            };
            let key = (cause.status, cause.reason.clone(), cause.outdated, cause.terminating, own, operation);
            match merged.entry(key) {
                std::collections::btree_map::Entry::Vacant(vacant) => drop(vacant.insert(cause)),
                std::collections::btree_map::Entry::Occupied(mut occupied) => occupied.get_mut().merge(cause),
            }
        }
        let mut causes: Vec<Cause> = merged.into_values().collect();
        causes.sort_by_key(Cause::rank);
        Self {
            clusters: total,
            available: done,
            condition,
            causes: causes.into_iter().map(|cause| Row { meaning: meaning(&cause), cause }).collect(),
        }
    }

    /// The causes as text for a terminal; ages are counted from `now`. Reports older than `stale_after` are pointed out.
    pub fn text(&self, now: Timestamp, stale_after: SignedDuration) -> String {
        let Self { clusters, available, condition, causes } = self;
        if *clusters == 0 {
            return "there is no cluster\n".to_owned();
        }
        let noun = if *clusters == 1 { "cluster" } else { "clusters" };
        let blocked = clusters.saturating_sub(*available);
        if causes.is_empty() {
            return format!("{clusters} {noun}: all available\n");
        }
        let mut text = String::new();
        let rows = causes.iter().map(|row| row.columns(now));
        let rows = table(["CLUSTERS", "CAUSE", "SINCE", "LAST REPORT", "FOR EXAMPLE"], rows);
        let mut lines = rows.lines();
        text.extend(lines.next().map(|heading| format!("{heading}\n")));
        for (line, row) in lines.zip(causes) {
            text += line;
            text.push('\n');
            text.extend(row.explanation().map(|explanation| format!("    {explanation}\n")));
        }
        let noun_of_causes = if causes.len() == 1 { "cause" } else { "causes" };
        // Writing to a String cannot fail, here and below.
        let _infallible = writeln!(
            text,
            "\n{clusters} {noun}: {available} available, {blocked} not, for {} {noun_of_causes}",
            causes.len()
        );
        let newest = causes.iter().filter_map(|row| row.cause.last_report_time).max();
        match newest.map(|time| now.duration_since(time)) {
            Some(old) if old >= stale_after => {
                let _infallible = writeln!(
                    text,
                    "the adapter has not reported about any of them for {}: see whether it runs; causes are as of then",
                    age(old)
                );
            }
            _ => {}
        }
        text + &format!(
            "one of them: pull-secret explain cluster ID; all of a reason: pull-secret status --search \
             \"status.conditions.{condition}.reason = 'REASON'\"\n"
        )
    }
}

// === impl Row ===

impl Row {
    fn columns(&self, now: Timestamp) -> [String; 5] {
        let cause = &self.cause;
        let mut reason = cause.reason.as_deref().map_or_else(|| self.unnamed().to_owned(), plain);
        if let Some((_, failed, _)) = cause.message.as_deref().and_then(failed_pods) {
            let _infallible = write!(reason, ": {}", plain(failed));
        }
        if cause.outdated {
            reason += " (older generation)";
        }
        if cause.terminating {
            reason += " (terminating)";
        }
        let report = cause.last_report_time.map(|time| format!("{} ago", age(now.duration_since(time))));
        let example = |(id, name): (&String, &String)| match name.as_str() {
            "" => plain(id),
            name => format!("{} ({})", plain(id), plain(name)),
        };
        let mut examples: Vec<String> =
            cause.examples.iter().map(|example_of| example((&example_of.id, &example_of.name))).collect();
        let more = cause.count.saturating_sub(examples.len() as u64);
        if more > 0 {
            examples.push(format!("{more} more"));
        }
        [
            cause.count.to_string(),
            reason,
            moment(cause.since_time, now),
            report.unwrap_or_else(|| "never".to_owned()),
            examples.join(", "),
        ]
    }

    /// The cause without a reason.
    fn unnamed(&self) -> &'static str {
        if self.cause.status.is_none() { "not reported" } else { "no reason given" }
    }

    /// The line below the row.
    fn explanation(&self) -> Option<String> {
        if self.cause.status.is_none() {
            return Some("the adapter has never reported: see whether the adapter and the Sentinel run".to_owned());
        }
        self.cause.message.as_deref().map(plain).or_else(|| self.meaning.map(str::to_owned))
    }
}

fn meaning(cause: &Cause) -> Option<&'static str> {
    let reason = cause.reason.as_deref()?;
    Reason::parse(reason).map(Reason::meaning).or_else(|| job::Reason::parse(reason).map(job::Reason::meaning))
}

#[cfg(test)]
mod tests {
    use hyperfleet_client::Resource;
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-01-01T03:00:00Z";

    fn cluster(id: &str, status: &Value) -> Resource {
        let cluster = json!({
            "id": id, "name": format!("name-of-{id}"), "generation": 1, "created_time": "2026-01-01T00:00:00Z",
            "updated_time": "2026-01-01T00:00:00Z", "status": status,
        });
        serde_json::from_value(cluster).unwrap()
    }

    /// The conclusion of the API from the adapter's report.
    fn concluded(reason: &str, message: &str) -> Value {
        json!({"conditions": [{
            "type": "PullsecretSuccessful", "status": "False", "observed_generation": 1, "reason": reason, "message": message,
            "last_updated_time": "2026-01-01T02:59:00Z", "last_transition_time": "2026-01-01T00:30:00Z",
            "reason_since_time": "2026-01-01T01:00:00Z",
        }]})
    }

    fn why(clusters: &[Resource]) -> Why {
        let mut grouping = Grouping::default();
        for cluster in clusters {
            add(&mut grouping, cluster, "PullsecretSuccessful");
        }
        Why::of(grouping.causes("PullsecretSuccessful"))
    }

    fn text(why: &Why) -> String {
        why.text(NOW.parse().unwrap(), SignedDuration::from_secs(90))
    }

    #[test]
    fn a_precondition_is_a_cause_and_so_is_any_other_reason() {
        let waiting = |adapter: &str| concluded("PreconditionsNotMet", &format!("waiting for {adapter}: not reported"));
        let denied = |project: &str| concluded("PermissionDenied", &format!("project {project}: denied"));
        let why = why(&[
            cluster("a", &waiting("dns")),
            cluster("b", &waiting("placement")),
            cluster("c", &denied("one")),
            cluster("d", &denied("two")),
            cluster("e", &denied("three")),
            cluster("f", &waiting("dns")),
        ]);
        let counts: Vec<_> = why.causes.iter().map(|row| (row.cause.count, row.cause.message.as_deref())).collect();
        let expected = [
            (3, Some("project one: denied")),
            (2, Some("waiting for dns: not reported")),
            (1, Some("waiting for placement: not reported")),
        ];
        assert_eq!(counts, expected);
        assert!(why.causes[0].meaning.is_some());
        let text = text(&why);
        let lines: Vec<&str> = text.lines().collect();
        let row = "3         PermissionDenied     2026-01-01T01:00:00Z (2 h ago)  60 s ago     c (name-of-c), \
                   e (name-of-e), d (name-of-d)";
        assert_eq!(lines[1], row);
        assert_eq!(lines[2], "    project one: denied");
        assert!(text.contains("\n6 clusters: 0 available, 6 not, for 3 causes\n"), "{text}");
    }

    #[test]
    fn the_failed_operation_and_the_reason_of_failed_pods_tell_causes_apart() {
        let running = |reason: &str, job: usize| {
            let about = format!("Job j{job} is running; {job} of its Pods failed (backoffLimit 3)");
            concluded("WorkloadInProgress", &format!("{about}: {reason}: Failed to create/update secret: no {job}"))
        };
        let conflict = |what: &str| concluded("NameConflict", &format!("Failed to create/update {what}: not managed"));
        let why = why(&[
            cluster("a", &running("QuotaExceeded", 1)),
            cluster("b", &running("StoreUnavailable", 1)),
            cluster("c", &running("QuotaExceeded", 2)),
            cluster("d", &concluded("WorkloadInProgress", "Job j is running")),
            cluster("e", &conflict("secret")),
            cluster("f", &conflict("Kubernetes secret")),
            cluster("g", &concluded("WorkloadInProgress", "Job j is running; repairing: secret a/b was deleted")),
        ]);
        let counts: Vec<_> = why.causes.iter().map(|row| row.cause.count).collect();
        assert_eq!(counts, [2, 1, 1, 1, 1, 1]);
        let text = text(&why);
        assert!(
            text.contains("WorkloadInProgress: QuotaExceeded ")
                && text.contains("WorkloadInProgress: StoreUnavailable ")
        );
    }

    #[test]
    fn what_the_adapter_reports_counts_where_the_api_concludes_nothing() {
        let report = |status: &str| {
            json!({"conditions": [], "adapters": {"pullsecret": {
                "available": status, "observed_generation": 1, "last_report_time": "2026-01-01T00:59:00Z",
                "conditions": [{"type": "Available", "status": status, "reason": "JobFailed",
                    "last_transition_time": "2026-01-01T00:30:00Z"}],
            }}})
        };
        let why = why(&[
            cluster("a", &report("True")),
            cluster("b", &report("False")),
            cluster("c", &json!({"conditions": [], "adapters": {}})),
        ]);
        assert_eq!((why.clusters, why.available, why.causes.len()), (3, 1, 2));
        let text = text(&why);
        assert!(text.contains("JobFailed") && text.contains("2026-01-01T00:30:00Z"), "{text}");
        assert!(text.contains("not reported") && text.contains("the adapter has never reported"), "{text}");
        assert!(text.contains("\nthe adapter has not reported about any of them for 2 h: "), "{text}");
    }

    #[test]
    fn a_fleet_without_causes_says_so() {
        assert_eq!(text(&Why::of(Causes::default())), "there is no cluster\n");
        assert_eq!(text(&Why::of(Causes { total: 2, done: 2, ..Causes::default() })), "2 clusters: all available\n");
    }
}
