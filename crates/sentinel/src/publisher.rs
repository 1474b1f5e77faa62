//! Where events go: a promise that the broker keeps, and in tests a script.

use std::time::Duration;

use daemon::retry::Budget;
use message_broker::{Broker, BrokerError, Event, Name};
use tokio_util::sync::CancellationToken;

/// One event may take so long; after that the resource is looked at anew, and its newest state published.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where events go.
pub trait Publisher: Clone + Send + Sync + 'static {
    /// Returns when the event is safe.
    fn publish(&self, event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static;

    /// Whether an event could be published now.
    fn health(&self) -> impl Future<Output = Result<(), BrokerError>> + Send;
}

/// A topic of a broker.
#[derive(Clone, Debug)]
pub struct ToTopic {
    /// Which broker.
    pub broker: Broker,
    /// Which topic.
    pub topic: Name,
}

impl Publisher for ToTopic {
    fn publish(&self, event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static {
        let Self { broker, topic } = self.clone();
        async move {
            let budget = Budget::new(PATIENCE, CancellationToken::new());
            broker.publish(&topic, &event, &budget).await
        }
    }

    async fn health(&self) -> Result<(), BrokerError> {
        self.broker.health().await.publisher
    }
}
