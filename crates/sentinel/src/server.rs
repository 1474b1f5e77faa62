//! A running Sentinel: listeners, leader election, readiness, shutdown.

use std::net::SocketAddr;
use std::time::Duration;

use daemon::probes::Probes;
use daemon::readiness::{Readiness, ReadinessSender};
use daemon::serve::{Endpoint, ListenError};
use hyperfleet_client::{Client, SetupError};
use message_broker::BrokerError;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::leader::Election;
use crate::metrics::{Identity, Metrics};
use crate::position::PositionStore;
use crate::publisher::Publisher;
use crate::run::{Leader, Progress};
use crate::settings::{Checked, table};

/// Period of the broker's health check.
const HEALTH_CHECK_PERIOD: Duration = Duration::from_secs(10);

/// A Sentinel whose listeners are bound and that has not started yet.
#[derive(Debug)]
pub struct Sentinel<P> {
    checked: Checked,
    client: Client,
    publisher: P,
    election: Election,
    positions: Option<PositionStore>,
    probes: Probes,
    counts: Metrics,
    progress: watch::Sender<Progress>,
}

/// Errors that prevent a Sentinel from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The client of the API cannot be set up.
    #[error(transparent)]
    Client(#[from] SetupError),
    /// An address cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The broker refuses the identity.
    #[error("cannot publish: {error}; {hint}", error = .0, hint = .0.hint().unwrap_or_default())]
    Broker(BrokerError),
}

impl<P: Publisher> Sentinel<P> {
    /// Binds the listeners. API and broker may be unavailable; a broker that refuses the identity is an error.
    pub async fn prepare(
        checked: Checked,
        publisher: P,
        election: Election,
        version: &'static str,
    ) -> Result<Self, StartError> {
        let client = Client::new(checked.client.clone())?;
        if let Err(error) = publisher.health().await
            && error.kind.is_refusal()
        {
            return Err(StartError::Broker(error));
        }
        let mut registry = Registry::default();
        let identity = Identity {
            version,
            resource_type: checked.resource_type.clone(),
            resource_selector: checked.selector.clone(),
            shard: checked.shard.to_string(),
        };
        let counts = Metrics::register(&mut registry, identity);
        let readiness = ReadinessSender::not_ready("has not read the fleet yet");
        let (health, metrics) = (&checked.settings.health, &checked.settings.metrics);
        let health = Endpoint::new(&table::TABLE, "health", "probes", &health.host, health.port);
        let metrics = Endpoint::new(&table::TABLE, "metrics", "metrics", &metrics.host, metrics.port);
        let probes = Probes::listen(&health, &metrics, registry, readiness).await?;
        let (progress, _) = watch::channel(Progress::default());
        Ok(Self { checked, client, publisher, election, positions: None, probes, counts, progress })
    }

    /// Keeps the position for a successor in this store, and goes on from the one that is there.
    #[must_use]
    pub fn with_positions(self, positions: Option<PositionStore>) -> Self {
        Self { positions, ..self }
    }

    /// Bound address of the health listener.
    pub fn health_address(&self) -> SocketAddr {
        self.probes.health_address()
    }

    /// Bound address of the metrics listener.
    pub fn metrics_address(&self) -> SocketAddr {
        self.probes.metrics_address()
    }

    /// Progress of the current term.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Runs until `stop`. No outage of API, broker or election ends it.
    pub async fn run(self, stop: CancellationToken) {
        let Self { checked, client, publisher, mut election, positions, probes, counts, progress } = self;
        let readiness = probes.readiness();
        let work = async {
            let (checked, client, publisher, counts) = (&checked, &client, &publisher, &counts);
            let mut context = TermContext { checked, client, publisher, counts, progress: &progress, positions };
            tokio::select! {
                () = context.lead_while_elected(&mut election, &stop) => {}
                () = readiness.follow(progress.subscribe(), Progress::readiness) => {}
                () = check_broker(publisher, &progress) => {}
            }
        };
        Box::pin(probes.serve_during(stop.clone(), work)).await;
    }
}

/// Parts that every term shares.
struct TermContext<'a, P> {
    checked: &'a Checked,
    client: &'a Client,
    publisher: &'a P,
    counts: &'a Metrics,
    progress: &'a watch::Sender<Progress>,
    positions: Option<PositionStore>,
}

impl<P: Publisher> TermContext<'_, P> {
    async fn lead_while_elected(&mut self, election: &mut Election, stop: &CancellationToken) {
        while election.won(stop).await {
            let Self { checked, client, publisher, counts, progress, positions } = &mut *self;
            let progress = *progress;
            tracing::info!(operation = "lead", resource_type = checked.resource_type, shard = %checked.shard, "leading");
            counts.show_leading(true);
            progress.send_replace(Progress { leads: true, ..Progress::default() });
            let term = stop.child_token();
            let mut leader = Leader::new(checked, (*client).clone(), (*publisher).clone(), (*counts).clone(), progress);
            let records = match positions {
                Some(store) => Some(leader.inherit(store.load().await)),
                None => None,
            };
            let leading = async {
                let following = async {
                    if let (Some(store), Some(records)) = (positions, records) {
                        store.follow(records).await;
                    }
                };
                // It ends with the leader, whose last position it writes.
                tokio::join!(leader.run(term.clone()), following);
            };
            tokio::pin!(leading);
            let is_over = tokio::select! {
                () = &mut leading => true,
                () = election.lost() => false,
            };
            if !is_over {
                tracing::warn!(operation = "lead", "leadership lost; standing by");
                // Events in flight may still be published: duplicates are harmless.
                term.cancel();
                leading.await;
            }
            counts.stand_by();
            progress.send_replace(Progress::default());
        }
        election.resign().await;
    }
}

/// Checks the broker periodically: without events to publish an outage would go unnoticed.
async fn check_broker<P: Publisher>(publisher: &P, progress: &watch::Sender<Progress>) {
    let mut failures = 0;
    loop {
        sleep(HEALTH_CHECK_PERIOD).await;
        let problem = publisher.health().await.err().map(|error| error.to_string());
        progress.send_if_modified(|progress| {
            // A reachable broker may still refuse events: no topic, or no subscription.
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
    /// A standby is ready, as it can take over.
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

#[cfg(test)]
mod tests {
    use message_broker::{ErrorKind, Event, Operation};
    use rstest::rstest;

    use super::*;

    /// A reachable broker.
    #[derive(Clone)]
    struct Reachable;

    impl Publisher for Reachable {
        fn publish(&self, _event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn health(&self) -> Result<(), BrokerError> {
            Ok(())
        }
    }

    /// A broker that refuses everything.
    #[derive(Clone)]
    struct Refusing(ErrorKind);

    impl Publisher for Refusing {
        fn publish(&self, _event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static {
            std::future::ready(Err(BrokerError::new(Operation::Publish, "topic", self.0)))
        }

        async fn health(&self) -> Result<(), BrokerError> {
            Err(BrokerError::new(Operation::Connect, "RabbitMQ", self.0))
        }
    }

    fn checked() -> Checked {
        let flags = [
            ("resource-type", "clusters"),
            ("hyperfleet-api-base-url", "http://localhost:1"),
            ("broker-topic", "clusters"),
            ("health-port", "0"),
            ("metrics-port", "0"),
        ];
        let flags = flags.map(|(name, value)| (name, value.to_owned())).into();
        Checked::load(flags, &std::collections::BTreeMap::<&str, &str>::new()).unwrap()
    }

    /// An unavailable broker may recover; one that refuses the identity does not.
    #[rstest]
    #[case(ErrorKind::Unauthenticated, Some("check the credentials"))]
    #[case(ErrorKind::PermissionDenied, Some("check the vhost"))]
    #[case(ErrorKind::Unavailable, None)]
    #[case(ErrorKind::TimedOut, None)]
    #[tokio::test]
    async fn a_broker_that_refuses_the_identity_prevents_the_start(
        #[case] kind: ErrorKind,
        #[case] hint: Option<&str>,
    ) {
        let started = Sentinel::prepare(checked(), Refusing(kind), Election::Alone, "test").await;
        let message = started.err().map(|error| error.to_string());
        assert_eq!(message.is_some(), hint.is_some(), "{message:?}");
        assert!(message.unwrap_or_default().contains(hint.unwrap_or_default()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_health_check_does_not_hide_refused_events() {
        let broker = Some("no subscription".to_owned());
        let (progress, mut published) =
            watch::channel(Progress { leads: true, broker, failures: 1, ..Progress::default() });
        published.mark_unchanged();
        let refusing = async {
            // Between two health checks.
            sleep(HEALTH_CHECK_PERIOD / 2).await;
            for _ in 0..5 {
                progress.send_if_modified(|progress| {
                    progress.failures += 1;
                    false
                });
                sleep(HEALTH_CHECK_PERIOD).await;
                assert!(!published.has_changed().unwrap(), "the problem was cleared");
            }
            // Nothing is refused any more: the problem is cleared.
            published.changed().await.unwrap();
            assert_eq!(published.borrow().broker, None);
        };
        tokio::select! {
            () = refusing => {}
            () = check_broker(&Reachable, &progress) => {}
        }
    }
}
