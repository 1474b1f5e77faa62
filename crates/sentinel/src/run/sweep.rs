//! Reads the whole fleet periodically, for changes that the change stream may have missed.

use std::time::Duration;

use daemon::retry::Budget;
use fleet_model::names::condition::RECONCILED;
use hyperfleet_client::{Client, Error, Health, ListQuery, Resource};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::settings::Checked;

/// Time limit for reading the whole fleet.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// Time until a first sweep that has failed is repeated.
const RETRY: Duration = Duration::from_secs(2);

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
    /// Resources that need an event: a new leader reads them before the rest of the fleet.
    Unreconciled(Vec<Resource>),
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
    reads_reports: bool,
    events: mpsc::Sender<SweepEvent>,
    stop: CancellationToken,
}

impl Sweeps {
    pub(crate) fn begin(
        client: Client,
        checked: &Checked,
        is_resumed: bool,
        health: watch::Receiver<Health>,
        stop: CancellationToken,
    ) -> Self {
        let (sender, events) = mpsc::channel(1);
        let needs_spec = !checked.publish_when.is_empty() || checked.template.needs_spec();
        let fields = if needs_spec { Vec::new() } else { WITHOUT_SPEC.map(str::to_owned).to_vec() };
        let query = ListQuery { search: checked.search.clone(), fields, ..ListQuery::default() };
        let (plural, interval) = (checked.resource_type.clone(), checked.settings.sweep_interval);
        let reads_reports = !checked.publish_when.is_empty();
        let mut sweeper = Sweeper { client, plural, query, reads_reports, events: sender, stop: stop.clone() };
        let guard = stop.clone().drop_guard();
        tokio::spawn(async move {
            stop.run_until_cancelled(async {
                let begun = if is_resumed { sweeper.read_inherited().await } else { sweeper.read_unreconciled().await };
                if begun.is_none() {
                    return;
                }
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
    /// Reads the fleet that a leader has inherited, until that succeeds; returns `None` if the receiver was dropped.
    async fn read_inherited(&mut self) -> Option<()> {
        while !self.sweep().await? {
            sleep(RETRY).await;
        }
        Some(())
    }

    /// Reads the resources that are not reconciled; returns `None` if the receiver was dropped. A failure is no more than a delay: the
    /// change stream delivers them too, among all others.
    async fn read_unreconciled(&self) -> Option<()> {
        let unreconciled = format!("status.conditions.{RECONCILED} = 'False'");
        let search = match &self.query.search {
            Some(search) => format!("({search}) and {unreconciled}"),
            None => unreconciled,
        };
        let budget = Budget::new(READ_TIMEOUT, self.stop.clone());
        let calls = self.client.within(&budget);
        let query = ListQuery { search: Some(search), ..self.query.clone() };
        let mut pages = calls.list_all(&self.plural, query);
        loop {
            let next = async {
                match pages.next().await? {
                    Some(page) if self.reads_reports => calls.all_with_adapters(&self.plural, page).await.map(Some),
                    other => Ok(other),
                }
            };
            match next.await {
                Ok(Some(resources)) => self.events.send(SweepEvent::Unreconciled(resources)).await.ok()?,
                Ok(None) => return Some(()),
                Err(error) => {
                    tracing::debug!(operation = "read", %error, "could not read the resources that are not reconciled first");
                    return Some(());
                }
            }
        }
    }

    /// Reads the whole fleet; returns true if that has succeeded, and `None` if the receiver was dropped.
    async fn sweep(&mut self) -> Option<bool> {
        let begin = Instant::now();
        self.events.send(SweepEvent::Begin).await.ok()?;
        let budget = Budget::new(READ_TIMEOUT, self.stop.clone());
        let calls = self.client.within(&budget);
        let mut pages = calls.list_all(&self.plural, self.query.clone());
        loop {
            match pages.next().await {
                Ok(Some(resources)) => self.events.send(SweepEvent::Page(resources)).await.ok()?,
                Ok(None) => return self.events.send(SweepEvent::End(begin.elapsed())).await.ok().map(|()| true),
                Err(error) => {
                    if error.status() == Some(400) {
                        // An API that does not support one of the fields is asked for all of them.
                        self.query.fields.clear();
                    }
                    return self.events.send(SweepEvent::Failed(error)).await.ok().map(|()| false);
                }
            }
        }
    }
}
