//! The destination of events: a broker's topic, or a script in tests.

use std::time::Duration;

use daemon::retry::Budget;
use message_broker::{Broker, BrokerError, Event, Name};
use tokio_util::sync::CancellationToken;

/// Time limit of one publication. Afterwards the resource is decided about again, and its newest state is published.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);

/// The destination of events.
pub trait Publisher: Clone + Send + Sync + 'static {
    /// Publishes an event; returns when the broker has confirmed it.
    fn publish(&self, event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static;

    /// Checks that events can be published at the moment.
    fn health(&self) -> impl Future<Output = Result<(), BrokerError>> + Send;
}

/// A topic of a broker.
#[derive(Clone, Debug)]
pub struct TopicPublisher {
    /// The broker.
    pub broker: Broker,
    /// The topic.
    pub topic: Name,
}

impl Publisher for TopicPublisher {
    fn publish(&self, event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static {
        let Self { broker, topic } = self.clone();
        async move {
            let budget = Budget::new(PUBLISH_TIMEOUT, CancellationToken::new());
            broker.publish(&topic, &event, &budget).await
        }
    }

    async fn health(&self) -> Result<(), BrokerError> {
        self.broker.health().await.publisher
    }
}
