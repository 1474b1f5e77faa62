//! Events on their way to the broker, so many at once.

use std::time::Duration;

use message_broker::{BrokerError, ErrorKind, Event, Operation};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::breaker::Breaker;
use crate::fleet::Due;
use crate::publisher::Publisher;

/// Events on their way.
pub(crate) struct Flights<P> {
    publisher: P,
    breaker: Breaker,
    tasks: JoinSet<Landing>,
}

/// How an event's way ended.
pub(crate) struct Landing {
    pub(crate) due: Due,
    pub(crate) event_id: String,
    pub(crate) result: Result<(), BrokerError>,
}

impl<P: Publisher> Flights<P> {
    pub(crate) fn new(publisher: P, limit: usize) -> Self {
        Self { publisher, breaker: Breaker::new(limit), tasks: JoinSet::new() }
    }

    pub(crate) fn have_room(&self) -> bool {
        self.room_at().is_some_and(|at| at <= Instant::now())
    }

    /// When there is room, if nothing lands; `None`: not before something does.
    pub(crate) fn room_at(&self) -> Option<Instant> {
        self.breaker.room_at(self.tasks.len(), Instant::now())
    }

    pub(crate) fn begin(&mut self, due: Due, event: Event) {
        let publisher = self.publisher.clone();
        self.tasks.spawn(async move {
            let event_id = event.id.clone();
            // In a task of its own: whatever breaks there, the event lands.
            let publishing = AbortOnDropHandle::new(tokio::spawn(publisher.publish(event)));
            let result = publishing.await.unwrap_or_else(|_broken| {
                Err(BrokerError::new(Operation::Publish, "the broker", ErrorKind::Internal)
                    .with_detail("publishing broke off"))
            });
            Landing { due, event_id, result }
        });
    }

    /// The next that ends; `None` if none is on its way.
    pub(crate) async fn next(&mut self) -> Option<Landing> {
        let landing = self.tasks.join_next().await?.ok()?;
        match &landing.result {
            Ok(()) => self.breaker.accepted(),
            // One event that no broker would take says nothing about the others.
            Err(error) if error.kind == ErrorKind::Incompatible => {}
            Err(_) => self.breaker.refused(Instant::now()),
        }
        Some(landing)
    }

    /// Waits for those that are on their way.
    pub(crate) async fn drain(&mut self, patience: Duration) -> Vec<Landing> {
        let deadline = Instant::now() + patience;
        let mut landed = Vec::new();
        while let Ok(Some(landing)) = tokio::time::timeout_at(deadline, self.next()).await {
            landed.push(landing);
        }
        landed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::decide::State;
    use crate::reason::Reason;
    use crate::sighting::Content;

    #[derive(Clone)]
    struct Broken;

    impl Publisher for Broken {
        fn publish(&self, _event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static {
            std::future::poll_fn(|_| panic!("a client's own defect"))
        }

        async fn health(&self) -> Result<(), BrokerError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_breaks_on_the_way_lands_all_the_same() {
        let content = Content { kind: "Cluster".into(), data: "{}".into() };
        let due = Due { id: "a".into(), reason: Reason::New, state: State::default(), content, changed: None };
        let mut flights = Flights::new(Broken, 1);
        flights.begin(due.clone(), Event::new("source", "type", jiff::Timestamp::UNIX_EPOCH, Value::Null));
        let landing = flights.next().await.unwrap();
        assert_eq!((landing.due, landing.result.unwrap_err().kind), (due, ErrorKind::Internal));
    }
}
