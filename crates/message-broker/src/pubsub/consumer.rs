//! The consumer of Pub/Sub: one stream after the other, through every outage.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use google_cloud_pubsub::model::Message as Wire;
use google_cloud_pubsub::subscriber::MessageStream;
use google_cloud_pubsub::subscriber::handler::Handler;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::deliveries::Source;
use crate::delivery::{Lease, Received, Settlement};
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::health::HealthReporter;
use crate::message::Message;
use crate::name::Subscription;
use crate::pubsub::client::PubSub;
use crate::pubsub::errors;
use crate::receiving::{Receiving, unless_outage};
use crate::settings::Consume;
use fleet_model::names::message::{DEAD_LETTER_REASON, DEAD_LETTER_SOURCE};

/// Maximum lease of the client library, whose default is an hour; the lease of the delivery decides.
const LONGEST_LEASE: Duration = Duration::from_hours(24 * 365);

/// Delay before a message that could not be dead-lettered is returned.
const UNSETTLED_DELAY: Duration = Duration::from_secs(30);

/// Time after which Pub/Sub delivers a message to another consumer when this one has crashed.
const LEASE_EXTENSION: Duration = Duration::from_secs(20);

pub(super) struct Consumer {
    pubsub: PubSub,
    subscription: Subscription,
    consume: Consume,
    receiving: Receiving,
    stream: Option<MessageStream>,
    delayed: Delayed,
}

/// Messages that are to be delivered later. Pub/Sub has no delay for a single message, so that they are held here and
/// returned when it is over. Those beyond the capacity are returned at once, for Pub/Sub's own back-off.
#[derive(Clone, Debug)]
struct Delayed {
    capacity: Arc<Semaphore>,
    closed: CancellationToken,
}

/// The broker's end of a delivery. Dropping it releases the message.
#[derive(Debug)]
struct PubSubLease {
    pubsub: PubSub,
    subscription: Subscription,
    handler: Handler,
    message: Message,
    delayed: Delayed,
}

// === impl Consumer ===

impl Consumer {
    pub(super) fn new(pubsub: PubSub, subscription: Subscription, consume: Consume, reporter: HealthReporter) -> Self {
        let delayed = Delayed {
            capacity: Arc::new(Semaphore::new(consume.concurrency().into())),
            closed: CancellationToken::new(),
        };
        let receiving = Receiving::new(subscription.clone(), reporter);
        Self { pubsub, subscription, consume, receiving, stream: None, delayed }
    }

    /// Attempts to open the first stream, so that a permanent problem is an error at once.
    pub(super) async fn try_to_begin(&mut self) -> Result<(), BrokerError> {
        unless_outage(self.begin().await)
    }

    async fn begin(&mut self) -> Result<(), BrokerError> {
        // All of it takes several calls.
        let time_limit = self.pubsub.settings().attempt_timeout * 2;
        let begun = timeout(time_limit, async {
            self.pubsub.prepare(&self.subscription, self.consume).await?;
            // One half is in flight, the other half is delayed.
            let outstanding = i64::from(self.consume.concurrency()) * 2;
            let subscriber = &self.pubsub.clients().await?.subscriber;
            let subscribe = subscriber.subscribe(self.pubsub.subscription_path(&self.subscription.id));
            let subscribe = subscribe.set_max_lease(LONGEST_LEASE).set_max_lease_extension(LEASE_EXTENSION);
            Ok(subscribe.set_max_outstanding_messages(outstanding).build())
        });
        let begun = begun.await;
        match begun
            .unwrap_or_else(|_| Err(BrokerError::new(Operation::Connect, &self.subscription, ErrorKind::TimedOut)))
        {
            Ok(stream) => {
                self.stream = Some(stream);
                self.receiving.began();
                Ok(())
            }
            Err(error) => {
                self.receiving.failed(&error);
                Err(error)
            }
        }
    }
}

impl Source for Consumer {
    async fn receive(&mut self) -> Received {
        loop {
            let Some(stream) = &mut self.stream else {
                self.receiving.back_off().await;
                let _reported_in_health = self.begin().await;
                continue;
            };
            match stream.next().await {
                Some(Ok((wire, handler))) => {
                    self.receiving.recovered();
                    // Pub/Sub counts only with a dead-letter topic.
                    let attempt = handler.delivery_attempt().and_then(|attempt| u32::try_from(attempt).ok());
                    let message = message(wire);
                    let (pubsub, subscription) = (self.pubsub.clone(), self.subscription.clone());
                    let (delayed, copy) = (self.delayed.clone(), message.clone());
                    let lease = Box::new(PubSubLease { pubsub, subscription, handler, message: copy, delayed });
                    return Received { message, attempt: attempt.unwrap_or(1).max(1), lease };
                }
                Some(Err(error)) => {
                    let error = errors::classify(Operation::Receive, self.subscription.id.as_str(), &error);
                    self.stream = None;
                    self.receiving.failed(&error);
                }
                None => {
                    let error = BrokerError::new(Operation::Receive, &self.subscription, ErrorKind::Unavailable);
                    self.stream = None;
                    self.receiving.failed(&error.with_detail("the stream has ended"));
                }
            }
        }
    }

    async fn stop(&mut self) {
        self.delayed.closed.cancel();
        if let Some(stream) = &mut self.stream {
            // Releases messages that were not received; the client would hold them until the end of their lease.
            while let Some(Some(Ok(_released))) = stream.next().now_or_never() {}
            // Deliveries in flight can still be settled. The stream must end now, or it would receive the released ones
            // again.
            let shutdown = stream.shutdown_token();
            tokio::spawn(async move { shutdown.shutdown().await });
            while let Some(Ok(_released)) = stream.next().await {}
        }
    }

    async fn close(self) {
        if let Some(stream) = self.stream {
            let shutdown = stream.shutdown_token();
            drop(stream);
            // Acknowledgements are sent in batches: this waits for the last.
            let _it_ends_anyway = timeout(self.pubsub.settings().attempt_timeout, shutdown.shutdown()).await;
        }
        let end = self.pubsub.end(&self.subscription, self.consume);
        let _it_expires_anyway = timeout(self.pubsub.settings().attempt_timeout, end).await;
    }
}

fn message(wire: Wire) -> Message {
    Message { body: wire.data.to_vec(), attributes: wire.attributes.into_iter().collect() }
}

// === impl PubSubLease ===

impl PubSubLease {
    async fn settle(self, settlement: Settlement) -> Result<(), BrokerError> {
        match settlement {
            Settlement::Ack => self.ack().await,
            Settlement::Retry(delay) | Settlement::Postpone(delay) => {
                self.delayed.clone().add(self.handler, delay);
                Ok(())
            }
            Settlement::DeadLetter(reason) => {
                let mut message = self.message.clone();
                message.attributes.insert(DEAD_LETTER_REASON.to_owned(), reason);
                message.attributes.insert(DEAD_LETTER_SOURCE.to_owned(), self.subscription.id.to_string());
                let dead_letter_subscription = self.pubsub.dead_letters(&self.subscription);
                let sent = self.pubsub.send(&dead_letter_subscription.topic, &message).await;
                if sent.is_err() {
                    // Pub/Sub delivers it again, and dead-letters it itself after the last attempt, if it has a dead-letter topic. At
                    // once would be a hot loop.
                    self.delayed.clone().add(self.handler, UNSETTLED_DELAY);
                    return sent;
                }
                self.ack().await
            }
        }
    }

    async fn ack(self) -> Result<(), BrokerError> {
        match self.handler {
            Handler::ExactlyOnce(handler) => {
                let lost =
                    |error| BrokerError::new(Operation::Settle, &self.subscription, ErrorKind::Lost).with_detail(error);
                handler.confirmed_ack().await.map_err(lost)
            }
            handler => {
                handler.ack();
                Ok(())
            }
        }
    }
}

impl Lease for PubSubLease {
    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        drop(self);
        Box::pin(ready(()))
    }

    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, Result<(), BrokerError>> {
        Box::pin(Self::settle(*self, settlement))
    }

    fn is_counted_by_broker(&self) -> bool {
        true
    }
}

// === impl Delayed ===

impl Delayed {
    fn add(self, handler: Handler, delay: Duration) {
        let Ok(permit) = Arc::clone(&self.capacity).try_acquire_owned() else {
            handler.nack();
            return;
        };
        tokio::spawn(async move {
            tokio::select! {
                () = sleep(delay) => {}
                () = self.closed.cancelled() => {}
            }
            handler.nack();
            drop(permit);
        });
    }
}
