//! Consuming from Pub/Sub: streams, one after the other for as long as it takes.

use std::sync::Arc;
use std::time::Duration;

use daemon::backoff::Backoff;
use futures_util::FutureExt as _;
use google_cloud_pubsub::model::Message as Wire;
use google_cloud_pubsub::subscriber::MessageStream;
use google_cloud_pubsub::subscriber::handler::Handler;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::deliveries::Source;
use crate::delivery::{Handle as AnyHandle, Received, Verdict};
use crate::error::{Action, BrokerError, Fault};
use crate::health::Teller;
use crate::message::Message;
use crate::name::Subscription;
use crate::pubsub::{PubSub, fault};
use crate::settings::Consume;
use fleet_model::names::message::{DEAD_LETTER_REASON, DEAD_LETTER_SOURCE};

/// The waits between attempts at a stream.
const RECONNECT: Backoff = Backoff::doubling(Duration::from_millis(200), Duration::from_secs(5));

/// The client would keep a message for an hour; how long is for the delivery's lease to say.
const LONGEST_LEASE: Duration = Duration::from_hours(24 * 365);

/// How soon Pub/Sub gives a message to another consumer when this one has died.
const LEASE_EXTENSION: Duration = Duration::from_secs(20);

pub(super) struct Consumer {
    pubsub: PubSub,
    subscription: Subscription,
    consume: Consume,
    teller: Teller,
    stream: Option<MessageStream>,
    failures: u32,
    shelf: Shelf,
}

/// Where messages lie that are to be delivered later: Pub/Sub knows no wait, so that they are kept here and handed back
/// when it is over. What does not fit is handed back at once, for Pub/Sub's own back-off.
#[derive(Clone, Debug)]
struct Shelf {
    room: Arc<Semaphore>,
    closed: CancellationToken,
}

/// A delivery's other end. Dropping it hands the message back.
#[derive(Debug)]
pub(crate) struct Handle {
    pubsub: PubSub,
    subscription: Subscription,
    handler: Handler,
    message: Message,
    shelf: Shelf,
}

// === impl Consumer ===

impl Consumer {
    pub(super) fn new(pubsub: PubSub, subscription: Subscription, consume: Consume, teller: Teller) -> Self {
        let shelf =
            Shelf { room: Arc::new(Semaphore::new(consume.concurrency().into())), closed: CancellationToken::new() };
        Self { pubsub, subscription, consume, teller, stream: None, failures: 0, shelf }
    }

    /// The first attempt at a stream, so that what is wrong for good is told at once.
    pub(super) async fn try_to_begin(&mut self) -> Result<(), BrokerError> {
        match self.begin().await {
            Err(error) if !matches!(error.fault, Fault::Unavailable | Fault::TimedOut) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    async fn begin(&mut self) -> Result<(), BrokerError> {
        // All of it takes several calls.
        let patience = self.pubsub.0.settings.attempt_timeout * 2;
        let begun = timeout(patience, async {
            self.pubsub.prepare(&self.subscription, self.consume).await?;
            // One half is worked on, the other lies on the shelf.
            let outstanding = i64::from(self.consume.concurrency()) * 2;
            let subscriber = &self.pubsub.clients().await?.subscriber;
            let subscribe = subscriber.subscribe(self.pubsub.subscription_path(&self.subscription.id));
            let subscribe = subscribe.set_max_lease(LONGEST_LEASE).set_max_lease_extension(LEASE_EXTENSION);
            Ok(subscribe.set_max_outstanding_messages(outstanding).build())
        });
        let begun = begun.await;
        match begun.unwrap_or_else(|_| Err(BrokerError::new(Action::Connect, &self.subscription, Fault::TimedOut))) {
            Ok(stream) => {
                self.stream = Some(stream);
                self.teller.tell(Ok(()));
                Ok(())
            }
            Err(error) => {
                self.failed(&error);
                Err(error)
            }
        }
    }

    fn failed(&mut self, error: &BrokerError) {
        self.stream = None;
        self.failures = self.failures.saturating_add(1);
        tracing::warn!(subscription = %self.subscription, %error, "not receiving; trying again");
        self.teller.tell(Err(error.clone()));
    }
}

impl Source for Consumer {
    async fn receive(&mut self) -> Received {
        loop {
            let Some(stream) = &mut self.stream else {
                if self.failures > 0 {
                    sleep(RECONNECT.nominal(self.failures)).await;
                }
                let _told_in_health = self.begin().await;
                continue;
            };
            let gone = || BrokerError::new(Action::Receive, &self.subscription, Fault::Unavailable);
            match stream.next().await {
                Some(Ok((wire, handler))) => {
                    self.failures = 0;
                    // Pub/Sub counts only with a dead-letter topic.
                    let attempt = handler.delivery_attempt().and_then(|attempt| u32::try_from(attempt).ok());
                    let message = message(wire);
                    let (pubsub, subscription) = (self.pubsub.clone(), self.subscription.clone());
                    let (shelf, copy) = (self.shelf.clone(), message.clone());
                    let handle = Handle { pubsub, subscription, handler, message: copy, shelf };
                    let handle = AnyHandle::PubSub(Box::new(handle));
                    return Received { message, attempt: attempt.unwrap_or(1).max(1), handle };
                }
                Some(Err(error)) => {
                    let error = fault::classify(Action::Receive, self.subscription.id.as_str(), &error);
                    self.failed(&error);
                }
                None => self.failed(&gone().with_detail("the stream has ended")),
            }
        }
    }

    async fn stop(&mut self) {
        self.shelf.closed.cancel();
        if let Some(stream) = &mut self.stream {
            // What has come and was not received: the client would keep it until its lease ends.
            while let Some(Some(Ok(_handed_back))) = stream.next().now_or_never() {}
            // What is out can still be settled. The stream must end now, or what was handed back would come to it again.
            let ending = stream.shutdown_token();
            tokio::spawn(async move { ending.shutdown().await });
            while let Some(Ok(_handed_back)) = stream.next().await {}
        }
    }

    async fn close(self) {
        if let Some(stream) = self.stream {
            let ending = stream.shutdown_token();
            drop(stream);
            // Acknowledgements are sent in batches: this waits for the last.
            let _it_ends_anyway = timeout(self.pubsub.0.settings.attempt_timeout, ending.shutdown()).await;
        }
    }
}

fn message(wire: Wire) -> Message {
    Message { body: wire.data.to_vec(), attributes: wire.attributes.into_iter().collect() }
}

// === impl Handle ===

impl Handle {
    pub(crate) async fn settle(self, verdict: Verdict) -> Result<(), BrokerError> {
        match verdict {
            Verdict::Ack => self.ack().await,
            Verdict::Retry(delay) => {
                self.shelf.clone().put(self.handler, delay);
                Ok(())
            }
            Verdict::Bury(reason) => {
                let mut message = self.message.clone();
                message.attributes.insert(DEAD_LETTER_REASON.to_owned(), reason);
                message.attributes.insert(DEAD_LETTER_SOURCE.to_owned(), self.subscription.id.to_string());
                let grave = self.pubsub.dead_letters(&self.subscription);
                // If that fails, Pub/Sub delivers it again, and buries it itself after the last attempt.
                self.pubsub.send(&grave.topic, &message).await?;
                self.ack().await
            }
        }
    }

    async fn ack(self) -> Result<(), BrokerError> {
        match self.handler {
            Handler::ExactlyOnce(handler) => {
                let lost = |error| BrokerError::new(Action::Settle, &self.subscription, Fault::Lost).with_detail(error);
                handler.confirmed_ack().await.map_err(lost)
            }
            handler => {
                handler.ack();
                Ok(())
            }
        }
    }
}

// === impl Shelf ===

impl Shelf {
    fn put(self, handler: Handler, delay: Duration) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            handler.nack();
            return;
        };
        tokio::spawn(async move {
            tokio::select! {
                () = sleep(delay) => {}
                () = self.closed.cancelled() => {}
            }
            handler.nack();
            drop(room);
        });
    }
}
