//! The view of each adapter's report, where the API's resources do not have it: HyperFleet's own server serves reports apart.

use fleet_model::names::condition::AVAILABLE;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Map, Value};

use crate::Report;
use crate::calls::Calls;
use crate::error::Error;
use crate::wire::Resource;

/// Maximum number of resources whose reports are read at once.
pub(crate) const CONCURRENCY: usize = 16;

// === impl Calls ===

impl Calls<'_> {
    /// Returns the resource with `status.adapters`: as it is if the API gave them, otherwise made of the resource's reports, which
    /// is a further request.
    pub async fn with_adapters(&self, plural: &str, mut resource: Resource) -> Result<Resource, Error> {
        if resource.status.adapters.is_some() {
            return Ok(resource);
        }
        let reports = match self.statuses(plural, &resource.id).await {
            // It was deleted since it was read.
            Err(error) if error.is_absent() => Vec::new(),
            other => other?,
        };
        resource.status.adapters = Some(adapters(reports));
        Ok(resource)
    }

    /// Returns each resource with `status.adapters`, as [`with_adapters`](Self::with_adapters) does, in the same order.
    pub async fn all_with_adapters(&self, plural: &str, resources: Vec<Resource>) -> Result<Vec<Resource>, Error> {
        if resources.iter().all(|resource| resource.status.adapters.is_some()) {
            return Ok(resources);
        }
        let completed = resources.into_iter().map(|resource| self.with_adapters(plural, resource));
        stream::iter(completed).buffered(CONCURRENCY).try_collect().await
    }
}

/// Returns the reports as the specification's expressions read them.
fn adapters(reports: Vec<Report>) -> Map<String, Value> {
    reports.into_iter().filter_map(view).collect()
}

fn view(report: Report) -> Option<(String, Value)> {
    let available = report.status(AVAILABLE);
    let mut members = serde_json::to_value(&report).ok()?;
    let object = members.as_object_mut()?;
    object.remove("adapter");
    object.insert("available".to_owned(), Value::from(available.as_str()));
    Some((report.adapter, members))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_is_seen_as_our_own_server_shows_it() {
        let report = serde_json::from_value(json!({
            "adapter": "placement", "observed_generation": 2, "data": {"namespace": "clusters-a"},
            "conditions": [{"type": "Available", "status": "True", "last_transition_time": "2026-01-01T00:00:00Z"}],
            "created_time": "2026-01-01T00:00:00Z", "last_report_time": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let view = &adapters(vec![report])["placement"];
        assert_eq!((&view["available"], &view["observed_generation"]), (&json!("True"), &json!(2)));
        assert_eq!(view["data"]["namespace"], "clusters-a");
        assert_eq!(view["conditions"][0]["last_transition_time"], "2026-01-01T00:00:00Z");
        assert_eq!((view.get("adapter"), &view["last_report_time"]), (None, &json!("2026-01-01T00:00:00Z")));
    }
}
