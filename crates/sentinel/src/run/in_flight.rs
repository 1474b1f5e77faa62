//! Publishes events concurrently, up to a limit.

use std::time::Duration;

use message_broker::{BrokerError, ErrorKind, Event, Operation};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument as _, Span};

use super::breaker::Breaker;
use crate::fleet::Due;
use crate::publisher::Publisher;

/// The events that are being published.
pub(crate) struct InFlight<P> {
    publisher: P,
    breaker: Breaker,
    tasks: JoinSet<PublishResult>,
}

/// The result of a publication.
pub(crate) struct PublishResult {
    pub(crate) due: Due,
    pub(crate) event_id: String,
    pub(crate) result: Result<(), BrokerError>,
    pub(crate) span: Span,
}

impl<P: Publisher> InFlight<P> {
    pub(crate) fn new(publisher: P, limit: usize) -> Self {
        Self { publisher, breaker: Breaker::new(limit), tasks: JoinSet::new() }
    }

    pub(crate) fn has_free_slot(&self) -> bool {
        self.next_slot_at().is_some_and(|at| at <= Instant::now())
    }

    /// Returns the time at which another event may be published; `None` if one in flight must finish first.
    pub(crate) fn next_slot_at(&self) -> Option<Instant> {
        self.breaker.next_slot_at(self.tasks.len(), Instant::now())
    }

    pub(crate) fn publish(&mut self, due: Due, event: Event, span: Span) {
        let publisher = self.publisher.clone();
        self.tasks.spawn(async move {
            let event_id = event.id.clone();
            // In a task of its own, so that a panic has a result too.
            let publishing = publisher.publish(event).instrument(span.clone());
            let publishing = AbortOnDropHandle::new(tokio::spawn(publishing));
            let result = publishing.await.unwrap_or_else(|_panic| {
                Err(BrokerError::new(Operation::Publish, "the broker", ErrorKind::Internal)
                    .with_detail("the publication has panicked"))
            });
            PublishResult { due, event_id, result, span }
        });
    }

    /// Returns the next result; `None` if no event is in flight.
    pub(crate) async fn next(&mut self) -> Option<PublishResult> {
        let result = self.tasks.join_next().await?.ok()?;
        match &result.result {
            Ok(()) => self.breaker.succeeded(),
            // An event that no broker accepts says nothing about the others.
            Err(error) if error.kind == ErrorKind::Incompatible => {}
            Err(error) if error.kind.is_refusal() => self.breaker.refused(Instant::now()),
            Err(_) => self.breaker.failed(Instant::now()),
        }
        Some(result)
    }

    /// Waits for the events in flight, at most for this time.
    pub(crate) async fn drain(&mut self, grace: Duration) -> Vec<PublishResult> {
        let deadline = Instant::now() + grace;
        let mut results = Vec::new();
        while let Ok(Some(result)) = tokio::time::timeout_at(deadline, self.next()).await {
            results.push(result);
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::decide::State;
    use crate::observation::EventContent;
    use crate::reason::Reason;

    #[derive(Clone)]
    struct Panicking;

    impl Publisher for Panicking {
        fn publish(&self, _event: Event) -> impl Future<Output = Result<(), BrokerError>> + Send + 'static {
            std::future::poll_fn(|_| panic!("a client's own defect"))
        }

        async fn health(&self) -> Result<(), BrokerError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_panicked_publication_has_a_result() {
        let content = EventContent { kind: "Cluster".into(), data: "{}".into(), trace: None };
        let due = Due { id: "a".into(), reason: Reason::New, state: State::default(), content, changed: None };
        let mut in_flight = InFlight::new(Panicking, 1);
        in_flight.publish(
            due.clone(),
            Event::new("source", "type", jiff::Timestamp::UNIX_EPOCH, Value::Null),
            Span::none(),
        );
        let result = in_flight.next().await.unwrap();
        assert_eq!((result.due, result.result.unwrap_err().kind), (due, ErrorKind::Internal));
    }
}
