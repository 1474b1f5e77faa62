//! Decides about each resource as a Sentinel that starts now, without publishing.

use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_client::{Client, Error, ListQuery, Resource};
use precondition::Outcome;
use tokio_util::sync::CancellationToken;

use super::now;
use crate::decide::decide;
use crate::observation::Projector;
use crate::reason::Reason;
use crate::resync_slot;
use crate::settings::Checked;

/// Time limit for reading the whole fleet.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// The decision about a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The id of the resource.
    pub id: String,
    /// The reason of the decision.
    pub reason: Reason,
    /// The decision in a sentence.
    pub because: String,
    /// The result of each adapter's `publish_when`, with an explanation.
    pub conditions: Vec<(String, Outcome, String)>,
}

/// Decides about every selected resource, or about the one with this id. `each` receives them as they are read.
pub async fn dry_run(
    checked: &Checked,
    client: &Client,
    id: Option<&str>,
    mut each: impl FnMut(Explained) -> bool,
) -> Result<(), Error> {
    let budget = Budget::new(READ_TIMEOUT, CancellationToken::new());
    let calls = client.within(&budget);
    let mut projector = Projector::new(&checked.publish_when, checked.template.clone());
    let reads_reports = !checked.publish_when.is_empty();
    if let Some(id) = id {
        if let Some(resource) = calls.get(&checked.resource_type, id).await? {
            let resource =
                if reads_reports { calls.with_adapters(&checked.resource_type, resource).await? } else { resource };
            each(explain(checked, &mut projector, &resource));
        }
        return Ok(());
    }
    let query = ListQuery { search: checked.search.clone(), ..ListQuery::default() };
    let mut pages = calls.list_all(&checked.resource_type, query);
    while let Some(mut resources) = pages.next().await? {
        if reads_reports {
            resources = calls.all_with_adapters(&checked.resource_type, resources).await?;
        }
        for resource in resources {
            if !each(explain(checked, &mut projector, &resource)) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn explain(checked: &Checked, projector: &mut Projector, resource: &Resource) -> Explained {
    let (mut facts, now) = (projector.project(resource).facts, now());
    facts.is_inherited = true;
    let id = resource.id.clone();
    if !checked.shard.contains(&id) {
        let because = format!("{}: this Sentinel has shard {}", Reason::OtherShard, checked.shard);
        return Explained { id, reason: Reason::OtherShard, because, conditions: Vec::new() };
    }
    let decision = decide(&facts, None, resync_slot::number(&id), &checked.policy, now);
    let because = decision.explain(&facts, None, projector.adapters(), now);
    let conditions = projector
        .evaluations(resource)
        .into_iter()
        .map(|(adapter, evaluation)| (adapter.to_owned(), evaluation.outcome, evaluation.explanation.to_string()));
    Explained { id, reason: decision.reason, because, conditions: conditions.collect() }
}
