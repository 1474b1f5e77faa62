//! The consumer of RabbitMQ: one session after the other, through every outage.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, SelectAll, once, select_all};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, ConfirmSelectOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Connection};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use crate::deliveries::Source;
use crate::delivery::{Lease, Received, Settlement};
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::health::HealthReporter;
use crate::message::Message;
use crate::name::Subscription;
use crate::rabbitmq::link::{Call, Connector, Route};
use crate::rabbitmq::settings::Settings;
use crate::rabbitmq::{link, topology};
use crate::receiving::{Receiving, unless_outage};
use crate::settings::Consume;
use fleet_model::names::message::{ATTEMPT, DEAD_LETTER_REASON, DEAD_LETTER_SOURCE};

/// Delay before a message that could not be settled is requeued.
const UNSETTLED_DELAY: Duration = Duration::from_secs(1);

pub(super) struct Consumer {
    settings: Settings,
    subscription: Subscription,
    consume: Consume,
    receiving: Receiving,
    connector: Connector,
    session: Option<Session>,
}

struct Session {
    shared: Arc<Shared>,
    /// Both consumers' deliveries; `None` where one of them ends.
    consumers: SelectAll<BoxStream<'static, Option<lapin::Result<Delivery>>>>,
    tags: Vec<ShortString>,
}

/// Parts of a session that its deliveries share.
struct Shared {
    connection: Connection,
    /// Receives and acknowledges.
    channel: Channel,
    /// Publishes with confirmation.
    confirming: Channel,
    queue: String,
    subscription: Subscription,
    attempt_timeout: Duration,
    waits: Mutex<BTreeMap<Duration, String>>,
}

/// The broker's end of a delivery. A dropped one is delivered again when the session ends.
struct RabbitMqLease {
    shared: Arc<Shared>,
    delivery: Delivery,
    message: Message,
    attempt: u32,
}

// === impl Consumer ===

impl Consumer {
    pub(super) fn new(
        settings: Settings,
        subscription: Subscription,
        consume: Consume,
        reporter: HealthReporter,
    ) -> Self {
        let receiving = Receiving::new(subscription.clone(), reporter);
        Self { settings, subscription, consume, receiving, connector: Connector::default(), session: None }
    }

    /// Attempts to open the first session, so that a permanent problem is an error at once.
    pub(super) async fn try_to_begin(&mut self) -> Result<(), BrokerError> {
        unless_outage(self.begin().await)
    }

    async fn begin(&mut self) -> Result<(), BrokerError> {
        // All of it takes several round trips.
        let time_limit = self.settings.attempt_timeout * 2;
        let begin = async {
            let connection = self.connector.connect(&self.settings, self.subscription.id.as_str()).await?;
            Session::begin(connection, &self.settings, &self.subscription, self.consume).await
        };
        let begun = timeout(time_limit, begin).await;
        let begun = begun
            .unwrap_or_else(|_| Err(BrokerError::new(Operation::Connect, &self.subscription, ErrorKind::TimedOut)));
        match begun {
            Ok(session) => {
                self.session = Some(session);
                self.receiving.recovered();
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
            let Some(session) = &mut self.session else {
                self.receiving.back_off().await;
                let _reported_in_health = self.begin().await;
                continue;
            };
            match session.receive().await {
                Ok(received) => return received,
                Err(error) => {
                    self.session = None;
                    self.receiving.failed(&error);
                }
            }
        }
    }

    async fn stop(&mut self) {
        if let Some(session) = &mut self.session {
            session.stop().await;
        }
    }

    async fn close(self) {
        if let Some(session) = self.session {
            let closed = session.shared.connection.close(200, "".into());
            let _it_ends_anyway = timeout(self.settings.attempt_timeout, closed).await;
        }
    }
}

// === impl Session ===

impl Session {
    async fn begin(
        connection: Connection,
        settings: &Settings,
        subscription: &Subscription,
        consume: Consume,
    ) -> Result<Self, BrokerError> {
        let mut queue = topology::queue(settings, subscription);
        let name = queue.clone();
        let failed = |error: lapin::Error| link::classify(Operation::Prepare, &name, &error);
        let confirming = connection.create_channel().await.map_err(failed)?;
        confirming.confirm_select(ConfirmSelectOptions::default()).await.map_err(failed)?;
        topology::ensure_exchange(&connection, settings, &subscription.topic, Operation::Prepare).await?;
        let mut queues = vec![queue.clone(), topology::retry_queue(&queue)];
        if consume.is_temporary {
            // An exclusive queue belongs to its connection, so that nothing is delivered twice.
            queue = topology::declare_temporary(&confirming, settings, subscription).await?;
            queues = vec![queue.clone()];
        } else {
            topology::declare(&confirming, settings, subscription, consume.max_attempts.is_some()).await?;
        }
        let channel = connection.create_channel().await.map_err(failed)?;
        channel.basic_qos(consume.concurrency(), BasicQosOptions::default()).await.map_err(failed)?;
        let (mut consumers, mut tags) = (Vec::new(), Vec::new());
        for queue in &queues {
            let options = BasicConsumeOptions::default();
            let consumer = channel.basic_consume(queue.as_str().into(), "".into(), options, FieldTable::default());
            let consumer = consumer.await.map_err(failed)?;
            tags.push(consumer.tag());
            consumers.push(consumer.map(Some).chain(once(async { None })).boxed());
        }
        let shared = Arc::new(Shared {
            connection,
            channel,
            confirming,
            queue,
            subscription: subscription.clone(),
            attempt_timeout: settings.attempt_timeout,
            waits: Mutex::default(),
        });
        Ok(Self { shared, consumers: select_all(consumers), tags })
    }

    async fn receive(&mut self) -> Result<Received, BrokerError> {
        let gone = || BrokerError::new(Operation::Receive, &self.shared.subscription, ErrorKind::Unavailable);
        loop {
            let delivery = match self.consumers.next().await {
                Some(Some(Ok(delivery))) => delivery,
                Some(Some(Err(error))) => {
                    return Err(link::classify(Operation::Receive, self.shared.subscription.id.as_str(), &error));
                }
                Some(None) | None => return Err(gone().with_detail("the broker has ended the consumer")),
            };
            let lease = RabbitMqLease::new(Arc::clone(&self.shared), delivery);
            if lease.delivery.redelivered {
                lease.recount().await?;
                continue;
            }
            let (message, attempt) = (lease.message.clone(), lease.attempt);
            return Ok(Received { message, attempt, lease: Box::new(lease) });
        }
    }

    async fn stop(&mut self) {
        let release = async {
            for tag in &self.tags {
                let _it_ends_anyway =
                    self.shared.channel.basic_cancel(tag.clone(), BasicCancelOptions::default()).await;
            }
            // Messages that arrived before the broker processed the cancellation.
            let arrived = self.consumers.by_ref().filter_map(async |next| next.and_then(Result::ok));
            arrived
                .for_each_concurrent(None, async |delivery| {
                    RabbitMqLease::new(Arc::clone(&self.shared), delivery).release().await;
                })
                .await;
        };
        let _given_up = timeout(self.shared.attempt_timeout, release).await;
    }
}

// === impl RabbitMqLease ===

impl RabbitMqLease {
    fn new(shared: Arc<Shared>, mut delivery: Delivery) -> Self {
        let message = link::message(std::mem::take(&mut delivery.data), &delivery.properties);
        let counted = message.attribute(ATTEMPT).and_then(|attempt| attempt.parse().ok());
        Self { shared, delivery, message, attempt: counted.unwrap_or(1).max(1) }
    }

    async fn settle(self, settlement: Settlement) -> Result<(), BrokerError> {
        let settled = timeout(self.shared.attempt_timeout, async {
            match settlement {
                Settlement::Ack => {}
                Settlement::Retry(delay) => self.retry_after(delay, self.attempt + 1).await?,
                Settlement::Postpone(delay) => self.retry_after(delay, self.attempt).await?,
                Settlement::DeadLetter(reason) => self.dead_letter(reason).await?,
            }
            self.ack().await
        });
        let settled = settled.await.unwrap_or_else(|_elapsed| Err(self.error(ErrorKind::TimedOut)));
        if settled.is_err() && self.delivery.acker.usable() {
            // The session continues, so that the message must be requeued here; at once would be a hot loop.
            sleep(UNSETTLED_DELAY).await;
            let _redelivered_anyway = self.requeue().await;
        }
        settled
    }

    /// Returns a message that no consumer received to its queue unchanged. RabbitMQ would mark a requeued message as
    /// delivered.
    async fn release(self) {
        if self.delivery.redelivered {
            // This delivery was not counted yet.
            let _redelivered_anyway = self.requeue().await;
            return;
        }
        let message = if self.attempt > 1 { self.counted(self.attempt) } else { self.message.clone() };
        let released = timeout(self.shared.attempt_timeout, async {
            self.publish(Route::to_queue(&self.shared.queue), &message).await?;
            self.ack().await
        });
        if !matches!(released.await, Ok(Ok(()))) {
            let _redelivered_anyway = self.requeue().await;
        }
    }

    async fn requeue(&self) -> lapin::Result<bool> {
        self.delivery.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await
    }

    /// Counts a delivery that was never settled: the consumer or its connection has ended. RabbitMQ does not count it, so
    /// that a message that crashes its consumer would be delivered for ever.
    async fn recount(self) -> Result<(), BrokerError> {
        let retry_queue = topology::retry_queue(&self.shared.queue);
        let counted = timeout(self.shared.attempt_timeout, async {
            self.publish(Route::to_queue(&retry_queue), &self.counted(self.attempt + 1)).await?;
            self.ack().await
        });
        counted.await.unwrap_or_else(|_elapsed| Err(self.error(ErrorKind::TimedOut)))
    }

    async fn retry_after(&self, delay: Duration, attempt: u32) -> Result<(), BrokerError> {
        let wait = topology::wait(delay);
        let mut waits = self.shared.waits.lock().await;
        let queue = if let Some(queue) = waits.get(&wait) {
            queue.clone()
        } else {
            let declared = topology::declare_wait(&self.shared.confirming, &self.shared.queue, wait).await?;
            waits.insert(wait, declared.clone());
            declared
        };
        drop(waits);
        self.publish(Route::to_queue(&queue), &self.counted(attempt)).await
    }

    async fn dead_letter(&self, reason: String) -> Result<(), BrokerError> {
        let mut message = self.counted(self.attempt);
        message.attributes.insert(DEAD_LETTER_REASON.to_owned(), reason);
        message.attributes.insert(DEAD_LETTER_SOURCE.to_owned(), self.shared.subscription.id.to_string());
        let exchange = topology::dead_letter_exchange(&self.shared.queue);
        self.publish(Route { exchange: &exchange, routing_key: "" }, &message).await
    }

    fn counted(&self, attempt: u32) -> Message {
        let mut message = self.message.clone();
        message.attributes.insert(ATTEMPT.to_owned(), attempt.to_string());
        message
    }

    async fn publish(&self, route: Route<'_>, message: &Message) -> Result<(), BrokerError> {
        let call = Call { operation: Operation::Settle, resource: &self.shared.queue };
        link::publish(&self.shared.confirming, route, message, call).await
    }

    async fn ack(&self) -> Result<(), BrokerError> {
        match self.delivery.ack(BasicAckOptions::default()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.error(ErrorKind::Lost)),
            Err(error) => Err(self.error(ErrorKind::Lost).with_detail(error)),
        }
    }

    fn error(&self, kind: ErrorKind) -> BrokerError {
        BrokerError::new(Operation::Settle, &self.shared.subscription, kind)
    }
}

impl Lease for RabbitMqLease {
    fn release(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(Self::release(*self))
    }

    fn settle(self: Box<Self>, settlement: Settlement) -> BoxFuture<'static, Result<(), BrokerError>> {
        Box::pin(Self::settle(*self, settlement))
    }
}

impl std::fmt::Debug for RabbitMqLease {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RabbitMqLease").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}
