//! Publishes dead letters again.

use std::collections::BTreeSet;
use std::time::Duration;

use daemon::retry::Budget;
use fleet_model::names::message::{ATTEMPT, DEAD_LETTER_REASON, DEAD_LETTER_SOURCE, PUBSUB_DEAD_LETTER_PREFIX};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::broker::Broker;
use crate::delivery::Delivery;
use crate::error::BrokerError;
use crate::message::{Message, starts_with};
use crate::name::Subscription;
use crate::settings::Consume;

/// Maximum number of dead letters that are held because they stay dead.
const HELD: u16 = 1_000;
/// Maximum time to publish one.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time to return the held ones.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The fate of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was published to the topic again.
    Replayed,
    /// It stays dead: it is no event, or was replayed a moment ago and is dead again.
    Kept,
}

/// Publishes the dead letters of a subscription to its topic, until none has arrived for `idle` or `stop`. Every subscription of the
/// topic receives them: events are about a state, so that a second one does no harm. `each` is called for each of them.
///
/// # Errors
///
/// The dead letters cannot be read, or one cannot be published; it and those behind it stay dead letters.
pub async fn replay(
    broker: &Broker,
    subscription: &Subscription,
    idle: Duration,
    stop: &CancellationToken,
    mut each: impl FnMut(&Delivery, Fate),
) -> Result<(), BrokerError> {
    let consume = Consume { concurrency: HELD, max_attempts: None, ..Consume::default() };
    let mut letters = broker.subscribe(&broker.dead_letters(subscription), consume, stop).await?;
    let (mut kept, mut replayed) = (Vec::new(), BTreeSet::new());
    while let Ok(Some(letter)) = timeout(idle, letters.next()).await {
        let is_new = letter.event().is_ok_and(|event| replayed.insert(event.id.clone()));
        if !is_new {
            each(&letter, Fate::Kept);
            kept.push(letter);
            continue;
        }
        let budget = Budget::new(PUBLISH_TIMEOUT, stop.clone());
        broker.send(&subscription.topic, &revived(letter.message()), &budget).await?;
        each(&letter, Fate::Replayed);
        letter.ack().await?;
    }
    drop(kept);
    // What is not returned in time is delivered again when the connection ends.
    let _undrained = letters.drain(DRAIN_TIMEOUT).await;
    Ok(())
}

/// Returns the message as it was before it was dead-lettered.
fn revived(letter: &Message) -> Message {
    let mut message = letter.clone();
    message.attributes.retain(|name, _| {
        ![ATTEMPT, DEAD_LETTER_REASON, DEAD_LETTER_SOURCE].contains(&name.as_str())
            && !starts_with(name, PUBSUB_DEAD_LETTER_PREFIX)
    });
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_death_is_left() {
        let names = [ATTEMPT, DEAD_LETTER_REASON, "CloudPubSubDeadLetterSourceDeliveryCount", "traceparent"];
        let attributes = names.map(|name| (name.to_owned(), "1".to_owned())).into();
        let revived = revived(&Message { body: b"{}".to_vec(), attributes });
        assert_eq!(revived.attributes.keys().collect::<Vec<_>>(), ["traceparent"]);
    }
}
