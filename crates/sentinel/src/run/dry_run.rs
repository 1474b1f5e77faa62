//! What would be decided about each resource if a Sentinel began now; nothing is published.

use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_client::{Client, Error, ListQuery, Resource};
use precondition::Outcome;
use tokio_util::sync::CancellationToken;

use super::now;
use crate::decide::decide;
use crate::reason::Reason;
use crate::settings::Plan;
use crate::sighting::Lens;
use crate::spread;

/// Reading everything may take so long.
const PATIENCE: Duration = Duration::from_mins(5);

/// What would be decided about a resource, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Which resource.
    pub id: String,
    /// The decision.
    pub reason: Reason,
    /// The decision in a sentence.
    pub because: String,
    /// What each adapter's `publish_when` says, and why.
    pub conditions: Vec<(String, Outcome, String)>,
}

/// Explains every resource of ours, or the one with that id. `each` gets them as they are read.
pub async fn dry_run(
    plan: &Plan,
    client: &Client,
    id: Option<&str>,
    mut each: impl FnMut(Explained) -> bool,
) -> Result<(), Error> {
    let budget = Budget::new(PATIENCE, CancellationToken::new());
    let calls = client.within(&budget);
    let mut lens = Lens::new(&plan.publish_when, plan.template.clone());
    if let Some(id) = id {
        if let Some(resource) = calls.get(&plan.resource_type, id).await? {
            each(explain(plan, &mut lens, &resource));
        }
        return Ok(());
    }
    let query = ListQuery { search: plan.search.clone(), ..ListQuery::default() };
    let mut pages = calls.list_all(&plan.resource_type, query);
    while let Some(resources) = pages.next().await? {
        for resource in resources {
            if !each(explain(plan, &mut lens, &resource)) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn explain(plan: &Plan, lens: &mut Lens, resource: &Resource) -> Explained {
    let (facts, now) = (lens.see(resource).facts, now());
    let id = resource.id.clone();
    if !plan.shard.has(&id) {
        let because = format!("{}: ours is {}", Reason::OtherShard, plan.shard);
        return Explained { id, reason: Reason::OtherShard, because, conditions: Vec::new() };
    }
    let decision = decide(&facts, None, spread::number(&id), &plan.policy, now);
    let because = decision.explain(&facts, None, lens.adapters(), now);
    let conditions = lens
        .verdicts(resource)
        .into_iter()
        .map(|(adapter, verdict)| (adapter.to_owned(), verdict.outcome, verdict.explanation.to_string()));
    Explained { id, reason: decision.reason, because, conditions: conditions.collect() }
}
