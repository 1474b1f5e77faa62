//! Dead letters of a subscription: looked at, published again, deleted.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use daemon::retry::Budget;
use fleet_model::names::message::{ATTEMPT, DEAD_LETTER_REASON, DEAD_LETTER_SOURCE, PUBSUB_DEAD_LETTER_PREFIX};
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::broker::Broker;
use crate::delivery::Delivery;
use crate::error::BrokerError;
use crate::message::{Message, starts_with};
use crate::name::Subscription;
use crate::settings::Consume;

/// Maximum number of dead letters that are held because they stay dead; those behind them are not seen.
pub const HELD: u16 = 1_000;
/// Maximum time to publish one.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time to return the held ones.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Members of an event's data that are shown. Everything else may be anything.
const SHOWN: [&str; 6] = ["id", "kind", "href", "generation", "owner_references", "reason"];

/// The decision about a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It stays dead.
    Keep,
    /// It is published to the topic again, if it is an event.
    Replay,
    /// It is deleted.
    Drop,
}

/// The fate of a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was published to the topic again.
    Replayed,
    /// It was deleted.
    Dropped,
    /// It stays dead: as wished, or since it is no event, or was replayed a moment ago and is dead again.
    Kept,
}

/// The dead letters of a subscription, for as long as they are looked at.
#[derive(Clone, Copy, Debug)]
pub struct Letters<'a> {
    /// The broker.
    pub broker: &'a Broker,
    /// The subscription whose dead letters they are.
    pub subscription: &'a Subscription,
    /// Time without a dead letter after which there are no more.
    pub idle: Duration,
    /// Ends it.
    pub stop: &'a CancellationToken,
}

impl Letters<'_> {
    /// Receives the dead letters and does with each what is wished, until none has arrived for the idle time or it is stopped; those
    /// that are kept are returned to the broker at the end. `each` is called for each of them. Returns true if it has seen all.
    ///
    /// One that is replayed reaches every subscription of the topic: events are about a state, so that a second one does no harm.
    ///
    /// # Errors
    ///
    /// The broker cannot be reached, or a dead letter cannot be published or deleted; it and those behind it stay dead letters.
    pub async fn walk(
        &self,
        mut disposition: impl FnMut(&Delivery) -> Disposition,
        mut each: impl FnMut(&Delivery, Fate),
    ) -> Result<bool, BrokerError> {
        let Self { broker, subscription, idle, stop } = *self;
        // A subscription waits for a broker that is unavailable, and would look like one without dead letters.
        broker.health().await.publisher?;
        let consume = Consume { concurrency: HELD, max_attempts: None, ..Consume::default() };
        let mut letters = broker.subscribe(&broker.dead_letters(subscription), consume, stop).await?;
        let (mut kept, mut replayed) = (Vec::new(), BTreeSet::new());
        while let Ok(Some(letter)) = timeout(idle, letters.next()).await {
            match disposition(&letter) {
                Disposition::Replay if letter.event().is_ok_and(|event| replayed.insert(event.id.clone())) => {
                    let budget = Budget::new(PUBLISH_TIMEOUT, stop.clone());
                    broker.send(&subscription.topic, &revived(letter.message()), &budget).await?;
                    each(&letter, Fate::Replayed);
                    letter.ack().await?;
                }
                Disposition::Drop => {
                    each(&letter, Fate::Dropped);
                    letter.ack().await?;
                }
                Disposition::Keep | Disposition::Replay => {
                    each(&letter, Fate::Kept);
                    kept.push(letter);
                }
            }
        }
        let is_whole = kept.len() < usize::from(HELD);
        // Reading it is no delivery: a back-off would grow with each. What cannot be returned is delivered again anyway.
        let returned = kept.into_iter().map(|letter| letter.postpone(Duration::ZERO));
        let _results = timeout(DRAIN_TIMEOUT, join_all(returned)).await;
        let _undrained = letters.drain(DRAIN_TIMEOUT).await;
        Ok(is_whole)
    }
}

/// Returns the id of a dead letter: that of the event, or for what is no event one of its bytes.
pub fn id(letter: &Delivery) -> String {
    match letter.event() {
        Ok(event) => event.id.clone(),
        Err(_malformed) => {
            let mut hasher = DefaultHasher::new();
            letter.message().body.hash(&mut hasher);
            format!("malformed-{:016x}", hasher.finish())
        }
    }
}

/// Returns the reason of a dead letter's death.
pub fn reason(letter: &Delivery) -> &str {
    letter.message().attribute(DEAD_LETTER_REASON).unwrap_or("out of attempts")
}

/// Describes a dead letter without anything that could be a credential: of the data of an event the members that this project's
/// Sentinel writes by default, and the names and sizes of all others; of what is no event its size.
pub fn describe(letter: &Delivery) -> Value {
    let message = letter.message();
    let mut described = json!({
        "id": id(letter),
        "reason": reason(letter),
        "subscription": message.attribute(DEAD_LETTER_SOURCE),
        "deliveries": message.attribute(ATTEMPT).and_then(|attempt| attempt.parse::<u32>().ok()),
        "bytes": message.body.len(),
    });
    let more = match letter.event() {
        Ok(event) => json!({
            "type": event.kind,
            "source": event.source,
            "subject": event.subject,
            "time": event.time.map(|time| time.to_string()),
            "data": event.json().map_or(Value::Null, redacted),
        }),
        Err(malformed) => json!({ "malformed": malformed.to_string() }),
    };
    if let (Some(described), Value::Object(more)) = (described.as_object_mut(), more) {
        described.extend(more);
    }
    described
}

/// The data of an event with only the members that are shown.
fn redacted(data: &Value) -> Value {
    let hidden = |value: &Value| Value::from(format!("(not shown: {} bytes)", value.to_string().len()));
    let Value::Object(members) = data else { return hidden(data) };
    let member = |(name, value): (&String, &Value)| {
        let is_shown = SHOWN.contains(&name.as_str());
        (name.clone(), if is_shown { value.clone() } else { hidden(value) })
    };
    Value::Object(members.iter().map(member).collect::<Map<_, _>>())
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

    #[test]
    fn only_known_members_are_shown() {
        let data = json!({"id": "cls-1", "generation": 3, "pullSecret": {"auth": "word"}, "note": "word"});
        let expected = json!({
            "id": "cls-1", "generation": 3, "pullSecret": "(not shown: 15 bytes)", "note": "(not shown: 6 bytes)",
        });
        assert_eq!(redacted(&data), expected);
        assert_eq!(redacted(&json!("word")), "(not shown: 6 bytes)");
    }
}
