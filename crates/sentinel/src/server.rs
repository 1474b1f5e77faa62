//! A running Sentinel: its parts put together, its probes, its election, its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use daemon::probes::{self, Readiness, ReadinessSender};
use daemon::serve::{self, Listener, Manners};
use hyperfleet_client::{Client, SetupError};
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::leader::Election;
use crate::metrics::{Identity, Metrics};
use crate::publisher::Publisher;
use crate::run::{Leader, Progress};
use crate::settings::{Address, Plan};

/// So often the broker is asked whether it is there.
const PROBE: Duration = Duration::from_secs(10);

/// A Sentinel whose addresses are taken and that does nothing yet.
#[derive(Debug)]
pub struct Sentinel<P> {
    plan: Plan,
    client: Client,
    publisher: P,
    election: Election,
    health: Listener,
    metrics: Listener,
    metered: Arc<Registry>,
    counts: Metrics,
    progress: watch::Sender<Progress>,
    readiness: ReadinessSender,
}

/// Why a Sentinel does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The client of the API could not be set up.
    #[error(transparent)]
    Client(#[from] SetupError),
    /// An address is taken or not ours.
    #[error("cannot listen at {what}.host and {what}.port: {kind}")]
    Listen {
        /// Which of the listeners.
        what: &'static str,
        /// Why not.
        kind: io::ErrorKind,
    },
}

impl<P: Publisher> Sentinel<P> {
    /// Puts a Sentinel together and takes its addresses. Neither API nor broker need be there.
    pub async fn prepare(
        plan: Plan,
        publisher: P,
        election: Election,
        version: &'static str,
    ) -> Result<Self, StartError> {
        let client = Client::new(plan.client.clone())?;
        let mut registry = Registry::default();
        let identity = Identity {
            version,
            resource_type: plan.resource_type.clone(),
            resource_selector: plan.selector.clone(),
            shard: plan.shard.to_string(),
        };
        let counts = Metrics::register(&mut registry, identity);
        let (readiness, _) = watch::channel(Readiness::NotReady("has not read the fleet yet".to_owned()));
        let (progress, _) = watch::channel(Progress::default());
        Ok(Self {
            health: listen("health", &plan.settings.health).await?,
            metrics: listen("metrics", &plan.settings.metrics).await?,
            metered: Arc::new(registry),
            plan,
            client,
            publisher,
            election,
            counts,
            progress,
            readiness,
        })
    }

    /// Where probes are answered.
    pub fn health_address(&self) -> SocketAddr {
        self.health.address()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> SocketAddr {
        self.metrics.address()
    }

    /// How it is doing.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Watches until `stop`. No outage of API, broker or election ends it.
    pub async fn run(self, stop: CancellationToken) {
        let Self { plan, client, publisher, mut election, health, metrics, metered, counts, progress, readiness } =
            self;
        let served = CancellationToken::new();
        let second = Duration::from_secs(1);
        let manners = Manners { head_timeout: second * 5, drain_timeout: second, tls: None };
        let probes = async {
            tokio::join!(
                health.serve(probes::health(readiness.subscribe()), manners.clone(), served.clone()),
                metrics.serve(probes::metrics(metered), manners.clone(), served.clone()),
            )
        };
        let work = async {
            let (plan, client, publisher, counts) = (&plan, &client, &publisher, &counts);
            let context = TermContext { plan, client, publisher, counts, progress: &progress };
            let housekeeping = async {
                tokio::join!(tell_readiness(&progress, &readiness), probe(publisher, &progress));
            };
            tokio::select! {
                () = context.lead_while_elected(&mut election, &stop) => {}
                () = housekeeping => {}
            }
            served.cancel();
        };
        let closing = async {
            stop.cancelled().await;
            readiness.send_replace(Readiness::ShuttingDown);
        };
        tokio::join!(probes, work, closing);
    }
}

/// What stays from term to term.
struct TermContext<'a, P> {
    plan: &'a Plan,
    client: &'a Client,
    publisher: &'a P,
    counts: &'a Metrics,
    progress: &'a watch::Sender<Progress>,
}

impl<P: Publisher> TermContext<'_, P> {
    async fn lead_while_elected(&self, election: &mut Election, stop: &CancellationToken) {
        while election.won(stop).await {
            let Self { plan, client, publisher, counts, progress } = self;
            tracing::info!(operation = "lead", resource_type = plan.resource_type, shard = %plan.shard, "leading");
            counts.show_leading(true);
            progress.send_replace(Progress { leads: true, ..Progress::default() });
            let term = stop.child_token();
            let leader = Leader::new(plan, (*client).clone(), (*publisher).clone(), (*counts).clone(), progress);
            let leading = leader.run(term.clone());
            tokio::pin!(leading);
            let is_over = tokio::select! {
                () = &mut leading => true,
                () = election.lost() => false,
            };
            if !is_over {
                tracing::warn!(operation = "lead", "another may lead now; standing by");
                // What is on the way may arrive: it may be told twice.
                term.cancel();
                leading.await;
            }
            counts.stand_by();
            progress.send_replace(Progress::default());
        }
        election.resign().await;
    }
}

async fn tell_readiness(progress: &watch::Sender<Progress>, readiness: &ReadinessSender) {
    let mut progress = progress.subscribe();
    loop {
        let now = progress.borrow_and_update().readiness();
        readiness.send_if_modified(|shown| {
            let changes = *shown != now && *shown != Readiness::ShuttingDown;
            if changes {
                tracing::info!(operation = "readiness", readiness = format!("{now:?}"), "readiness has changed");
                *shown = now;
            }
            changes
        });
        if progress.changed().await.is_err() {
            return;
        }
    }
}

/// Asks now and then whether the broker is there: a quiet fleet would not notice.
async fn probe<P: Publisher>(publisher: &P, progress: &watch::Sender<Progress>) {
    let mut failures = 0;
    loop {
        sleep(PROBE).await;
        let problem = publisher.health().await.err().map(|error| error.to_string());
        progress.send_if_modified(|progress| {
            // A broker may well be there and not take events, as its topic is not, or nobody listens.
            let refuses = std::mem::replace(&mut failures, progress.failures) != progress.failures;
            let changes = progress.leads && progress.broker != problem && !(refuses && problem.is_none());
            if changes {
                progress.broker = problem;
            }
            changes
        });
    }
}

impl Progress {
    /// A standby is ready: to take over.
    fn readiness(&self) -> Readiness {
        let problem = match (&self.api, &self.broker) {
            _ if !self.leads => return Readiness::Ready,
            (Some(api), _) => format!("the API cannot be read: {api}"),
            (None, Some(broker)) => format!("events cannot be published: {broker}"),
            (None, None) if !self.is_complete => "has not read the fleet yet".to_owned(),
            (None, None) => return Readiness::Ready,
        };
        Readiness::NotReady(problem)
    }
}

async fn listen(what: &'static str, address: &Address) -> Result<Listener, StartError> {
    serve::listen(&address.host, address.port).await.map_err(|error| StartError::Listen { what, kind: error.kind() })
}

#[cfg(test)]
mod tests {
    use message_broker::{BrokerError, Event};

    use super::*;

    /// A broker that is there.
    #[derive(Clone)]
    struct There;

    impl Publisher for There {
        fn publish(&self, _event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn health(&self) -> Result<(), BrokerError> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_is_there_and_refuses_is_no_reason_to_be_ready() {
        let broker = Some("nobody has subscribed".to_owned());
        let (progress, mut seen) = watch::channel(Progress { leads: true, broker, failures: 1, ..Progress::default() });
        seen.mark_unchanged();
        let refusing = async {
            // Between the probes.
            sleep(PROBE / 2).await;
            for _ in 0..5 {
                progress.send_if_modified(|progress| {
                    progress.failures += 1;
                    false
                });
                sleep(PROBE).await;
                assert!(!seen.has_changed().unwrap(), "probed away");
            }
            // Nothing is refused any more: there is nothing to be told.
            seen.changed().await.unwrap();
            assert_eq!(seen.borrow().broker, None);
        };
        tokio::select! {
            () = refusing => {}
            () = probe(&There, &progress) => {}
        }
    }
}
