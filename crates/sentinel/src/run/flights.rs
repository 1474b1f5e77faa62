//! Events on their way to the broker, so many at once.

use std::time::Duration;

use message_broker::{BrokerError, Event, Fault};
use tokio::task::JoinSet;
use tokio::time::Instant;

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
            let result = publisher.publish(event).await;
            Landing { due, event_id, result }
        });
    }

    /// The next that ends; `None` if none is on its way.
    pub(crate) async fn next(&mut self) -> Option<Landing> {
        // A task that panicked has no more to say; its resource is looked at again by the next sweep.
        let landing = self.tasks.join_next().await?.ok()?;
        match &landing.result {
            Ok(()) => self.breaker.accepted(),
            // One event that no broker would take says nothing about the others.
            Err(error) if error.fault == Fault::Misfit => {}
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
