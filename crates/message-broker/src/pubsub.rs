//! Google Pub/Sub and its emulator, by Google's client library.

mod client;
mod consumer;
mod errors;
mod inspect;
mod provision;
mod settings;

use tokio_util::sync::CancellationToken;

pub use self::client::PubSub;
use self::consumer::Consumer;
pub use self::settings::{Endpoint, Provision, Settings};
use crate::deliveries::Deliveries;
use crate::error::{BrokerError, ErrorKind, Operation};
use crate::name::Subscription;
use crate::settings::Consume;

impl PubSub {
    pub(crate) async fn subscribe(
        &self,
        subscription: &Subscription,
        consume: Consume,
        stop: &CancellationToken,
    ) -> Result<Deliveries, BrokerError> {
        if consume.max_attempts.is_some_and(|attempts| !(5..=100).contains(&attempts)) {
            return Err(BrokerError::new(Operation::Prepare, subscription, ErrorKind::Incompatible)
                .with_detail("Pub/Sub dead-letters a message after 5 to 100 deliveries; set the maximum number of deliveries accordingly"));
        }
        let (entry, reporter) = self.register(
            subscription,
            Err(BrokerError::new(Operation::Connect, subscription, ErrorKind::Unavailable)
                .with_detail("not connected yet")),
        );
        let mut consumer = Consumer::new(self.clone(), subscription.clone(), consume, reporter);
        consumer.try_to_begin().await?;
        Ok(Deliveries::begin(consumer, subscription, consume, stop, entry))
    }
}
