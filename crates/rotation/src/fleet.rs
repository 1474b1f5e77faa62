//! The parts of clusters that a rotation needs.

use fleet_model::names;
use hyperfleet_client::{Calls, Error, Generation, ListQuery, ReportView, Resource, Status, View};
use jiff::Timestamp;
use serde_json::Value;

/// The fields of a cluster that a rotation needs.
const FIELDS: [&str; 7] =
    ["id", "generation", "created_time", "deleted_time", "status", "spec.gcp.projectId", "spec.pullSecret"];

/// Number of ids in one search, which has at most 4,096 characters.
const IDS: usize = 50;

/// A cluster as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its id.
    pub id: String,
    /// Its generation.
    pub generation: Generation,
    /// Its creation time, which tells it from an earlier cluster with the id.
    pub created: Option<Timestamp>,
    /// True if it is terminating.
    pub is_deleting: bool,
    /// Its pull secret.
    pub content: Content,
    /// The Google Cloud project that its pull secret is stored in.
    pub project: Option<String>,
    /// The adapter's report.
    pub report: Option<SeenReport>,
}

/// The pull secret of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// It has none.
    None,
    /// It is in this Secret of Kubernetes, `NAMESPACE/NAME`.
    Referenced(String),
    /// It is inline, and the API does not show its digest to the caller.
    Hidden,
    /// It is inline, with this digest.
    Shown(String),
}

/// The adapter's report about a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenReport {
    /// The generation that it observed.
    pub generation: Generation,
    /// The condition `Available`.
    pub available: Status,
    /// Its reason; empty if there is none.
    pub reason: String,
    /// The first line of its message.
    pub message: String,
}

// === impl Seen ===

impl Seen {
    /// Returns the parts of a cluster that a rotation needs.
    pub fn of(cluster: &Resource) -> Self {
        let view = View::of(cluster);
        Self {
            id: cluster.id.clone(),
            generation: cluster.generation,
            created: cluster.created_time,
            is_deleting: cluster.is_deleting(),
            content: Content::of(&cluster.spec),
            project: cluster.spec.pointer("/gcp/projectId").and_then(Value::as_str).map(str::to_owned),
            report: view.report(names::ADAPTER).map(SeenReport::of),
        }
    }

    /// True if the adapter reports the pull secret of the present generation as available.
    pub fn is_available(&self) -> bool {
        let current = self.report.as_ref().filter(|report| report.generation == self.generation);
        current.is_some_and(|report| report.available == Status::True)
    }
}

// === impl Content ===

impl Content {
    fn of(spec: &Value) -> Self {
        let member = |path: &str| spec.pointer(path).filter(|value| !value.is_null());
        let text = |path: &str| member(path).and_then(Value::as_str).unwrap_or("?");
        if member("/pullSecret/secretRef").is_some() {
            let (namespace, name) = (text("/pullSecret/secretRef/namespace"), text("/pullSecret/secretRef/name"));
            return Self::Referenced(format!("{namespace}/{name}"));
        }
        match (member("/pullSecret/data"), member("/pullSecret/data/digest").and_then(Value::as_str)) {
            (None, _) => Self::None,
            (Some(_), None) => Self::Hidden,
            (Some(_), Some(digest)) => Self::Shown(digest.to_owned()),
        }
    }
}

// === impl SeenReport ===

impl SeenReport {
    fn of(report: ReportView<'_>) -> Self {
        let condition = report.condition(names::condition::AVAILABLE);
        let text = |name: &str| condition.and_then(|condition| condition.get(name)?.as_str()).unwrap_or_default();
        Self {
            generation: report.generation().unwrap_or(Generation::NONE),
            available: report.available().and_then(Status::parse).unwrap_or(Status::Unknown),
            reason: text("reason").to_owned(),
            message: text("message").lines().next().unwrap_or_default().to_owned(),
        }
    }
}

/// Reads the clusters that a search finds.
pub async fn search(calls: &Calls<'_>, search: &str) -> Result<Vec<Seen>, Error> {
    let query = ListQuery {
        search: Some(search.to_owned()),
        fields: FIELDS.map(str::to_owned).to_vec(),
        ..ListQuery::default()
    };
    let mut pages = calls.list_all("clusters", query);
    let mut found = Vec::new();
    while let Some(page) = pages.next().await? {
        found.extend(calls.all_with_adapters("clusters", page).await?.iter().map(Seen::of));
    }
    Ok(found)
}

/// Reads the clusters with these ids, many in one request.
pub async fn with_ids(calls: &Calls<'_>, ids: &[&str]) -> Result<Vec<Seen>, Error> {
    let mut found = Vec::new();
    for ids in ids.chunks(IDS) {
        // Ids are DNS labels, which need no escape.
        let list: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
        found.extend(search(calls, &format!("id in ({})", list.join(", "))).await?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::none(json!({}), Content::None)]
    #[case::null(json!({"pullSecret": {"data": null}}), Content::None)]
    #[case::hidden(json!({"pullSecret": {"data": {"redacted": true, "digest": null}}}), Content::Hidden)]
    #[case::shown(
        json!({"pullSecret": {"data": {"redacted": true, "digest": "hmac-sha256:0a"}}}),
        Content::Shown("hmac-sha256:0a".to_owned())
    )]
    #[case::referenced(
        json!({"pullSecret": {"secretRef": {"namespace": "tenants", "name": "acme"}}}),
        Content::Referenced("tenants/acme".to_owned())
    )]
    fn the_kind_of_a_pull_secret_is_read(#[case] spec: Value, #[case] expect: Content) {
        assert_eq!(Content::of(&spec), expect);
    }

    #[rstest]
    #[case::at_this_generation(2, "True", true)]
    #[case::at_an_older_one(1, "True", false)]
    #[case::not(2, "False", false)]
    fn only_a_report_of_the_present_generation_counts(
        #[case] generation: i64,
        #[case] status: &str,
        #[case] expect: bool,
    ) {
        let report = json!({"available": status, "observed_generation": generation, "conditions": [
            {"type": "Available", "status": status, "reason": "SecretStored", "message": "one\ntwo"}]});
        let cluster = json!({"id": "a", "generation": 2, "status": {"adapters": {"pullsecret": report}}});
        let seen = Seen::of(&serde_json::from_value(cluster).unwrap());
        assert_eq!(seen.is_available(), expect);
        let report = seen.report.unwrap();
        assert_eq!((report.reason.as_str(), report.message.as_str()), ("SecretStored", "one"));
    }
}
