//! Reading the whole fleet again, slowly, for what the change stream may have missed.

use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_client::{Client, Error, Health, ListQuery, Resource};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::settings::Plan;

/// Reading everything may take so long.
const PATIENCE: Duration = Duration::from_mins(5);

/// What a sweep needs of a resource: all but its spec, which is the long part.
const WITHOUT_SPEC: [&str; 12] = [
    "id",
    "kind",
    "name",
    "href",
    "generation",
    "labels",
    "status",
    "created_time",
    "updated_time",
    "deleted_time",
    "owner_references",
    "references",
];

/// A part of a sweep.
pub(crate) enum Part {
    Begin,
    Page(Vec<Resource>),
    /// Everything was read, in this time.
    End(Duration),
    Failed(Error),
}

/// Sweeps, one after the other.
pub(crate) struct Sweeps {
    parts: mpsc::Receiver<Part>,
    _stop: DropGuard,
}

struct Sweeper {
    client: Client,
    plural: String,
    query: ListQuery,
    parts: mpsc::Sender<Part>,
    stop: CancellationToken,
}

impl Sweeps {
    pub(crate) fn begin(client: Client, plan: &Plan, health: watch::Receiver<Health>, stop: CancellationToken) -> Self {
        let (sender, parts) = mpsc::channel(1);
        let wants_spec = !plan.publish_when.is_empty() || plan.template.needs_spec();
        let fields = if wants_spec { Vec::new() } else { WITHOUT_SPEC.map(str::to_owned).to_vec() };
        let query = ListQuery { search: plan.search.clone(), fields, ..ListQuery::default() };
        let (plural, interval) = (plan.resource_type.clone(), plan.settings.sweep_interval);
        let mut sweeper = Sweeper { client, plural, query, parts: sender, stop: stop.clone() };
        let guard = stop.clone().drop_guard();
        tokio::spawn(async move {
            stop.run_until_cancelled(async {
                loop {
                    sleep(interval).await;
                    // Polling compares the whole list each time.
                    let is_polling = matches!(*health.borrow(), Health::Polling);
                    if !is_polling && sweeper.sweep().await.is_none() {
                        return;
                    }
                }
            })
            .await;
        });
        Self { parts, _stop: guard }
    }

    pub(crate) async fn next(&mut self) -> Option<Part> {
        self.parts.recv().await
    }
}

impl Sweeper {
    /// Reads everything; `None` if nobody wants it any more.
    async fn sweep(&mut self) -> Option<()> {
        let begin = Instant::now();
        self.parts.send(Part::Begin).await.ok()?;
        let budget = Budget::new(PATIENCE, self.stop.clone());
        let calls = self.client.within(&budget);
        let mut pages = calls.list_all(&self.plural, self.query.clone());
        loop {
            match pages.next().await {
                Ok(Some(resources)) => self.parts.send(Part::Page(resources)).await.ok()?,
                Ok(None) => return self.parts.send(Part::End(begin.elapsed())).await.ok(),
                Err(error) => {
                    if error.status() == Some(400) {
                        // An API that does not know one of the fields gives them all.
                        self.query.fields.clear();
                    }
                    return self.parts.send(Part::Failed(error)).await.ok();
                }
            }
        }
    }
}
