//! Reads the whole fleet periodically, for changes that the change stream may have missed.

use std::time::Duration;

use daemon::retry::Budget;
use hyperfleet_client::{Client, Error, Health, ListQuery, Resource};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::settings::Plan;

/// Time limit for reading the whole fleet.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// The members of a resource that a sweep reads: all except the spec, which is the largest part.
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

/// A step of a sweep.
pub(crate) enum SweepEvent {
    Begin,
    Page(Vec<Resource>),
    /// The whole fleet was read in this time.
    End(Duration),
    Failed(Error),
}

/// The periodic sweeps.
pub(crate) struct Sweeps {
    events: mpsc::Receiver<SweepEvent>,
    _stop: DropGuard,
}

struct Sweeper {
    client: Client,
    plural: String,
    query: ListQuery,
    events: mpsc::Sender<SweepEvent>,
    stop: CancellationToken,
}

impl Sweeps {
    pub(crate) fn begin(client: Client, plan: &Plan, health: watch::Receiver<Health>, stop: CancellationToken) -> Self {
        let (sender, events) = mpsc::channel(1);
        let needs_spec = !plan.publish_when.is_empty() || plan.template.needs_spec();
        let fields = if needs_spec { Vec::new() } else { WITHOUT_SPEC.map(str::to_owned).to_vec() };
        let query = ListQuery { search: plan.search.clone(), fields, ..ListQuery::default() };
        let (plural, interval) = (plan.resource_type.clone(), plan.settings.sweep_interval);
        let mut sweeper = Sweeper { client, plural, query, events: sender, stop: stop.clone() };
        let guard = stop.clone().drop_guard();
        tokio::spawn(async move {
            stop.run_until_cancelled(async {
                loop {
                    sleep(interval).await;
                    // Polling reads the whole fleet each time.
                    let is_polling = matches!(*health.borrow(), Health::Polling);
                    if !is_polling && sweeper.sweep().await.is_none() {
                        return;
                    }
                }
            })
            .await;
        });
        Self { events, _stop: guard }
    }

    pub(crate) async fn next(&mut self) -> Option<SweepEvent> {
        self.events.recv().await
    }
}

impl Sweeper {
    /// Reads the whole fleet; returns `None` if the receiver was dropped.
    async fn sweep(&mut self) -> Option<()> {
        let begin = Instant::now();
        self.events.send(SweepEvent::Begin).await.ok()?;
        let budget = Budget::new(READ_TIMEOUT, self.stop.clone());
        let calls = self.client.within(&budget);
        let mut pages = calls.list_all(&self.plural, self.query.clone());
        loop {
            match pages.next().await {
                Ok(Some(resources)) => self.events.send(SweepEvent::Page(resources)).await.ok()?,
                Ok(None) => return self.events.send(SweepEvent::End(begin.elapsed())).await.ok(),
                Err(error) => {
                    if error.status() == Some(400) {
                        // An API that does not support one of the fields is asked for all of them.
                        self.query.fields.clear();
                    }
                    return self.events.send(SweepEvent::Failed(error)).await.ok();
                }
            }
        }
    }
}
