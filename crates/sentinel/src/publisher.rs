//! Where events go: a promise that the broker keeps, and in tests a script.

use std::time::Duration;

use daemon::retry::Budget;
use message_broker::{Action, Broker, BrokerError, Event, Fault, Name};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
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
        // The compiler cannot see that the broker's future may move between threads, so it stays on one.
        let runtime = Handle::current();
        let publishing = spawn_blocking(move || {
            let budget = Budget::new(PATIENCE, CancellationToken::new());
            runtime.block_on(broker.publish(&topic, &event, &budget))
        });
        let name = self.topic.clone();
        async move {
            let ended = publishing.await;
            ended.unwrap_or_else(|_panic| Err(BrokerError::new(Action::Publish, name, Fault::Internal)))
        }
    }

    async fn health(&self) -> Result<(), BrokerError> {
        self.broker.health().await.publisher
    }
}
