//! Names in the messages that Sentinel publishes and adapters consume.

names! {
    /// Attributes of a message.
    ATTRIBUTES:
    /// Watermill's id of the message; HyperFleet's Go services read and write it.
    WATERMILL_UUID = "_watermill_message_uuid";
    /// Media type of the body.
    CONTENT_TYPE = "content-type";
    /// Number of deliveries, where the broker does not count them.
    ATTEMPT = "hyperfleet-attempt";
    /// Reason why a message was dead-lettered.
    DEAD_LETTER_REASON = "hyperfleet-dead-letter-reason";
    /// Subscription that dead-lettered a message.
    DEAD_LETTER_SOURCE = "hyperfleet-dead-letter-source";
}

names! {
    /// Objects of RabbitMQ, all durable.
    RABBITMQ:
    /// Exchange of a topic; `broker.rabbitmq.exchange` (adapter: `spec.broker.exchange`) replaces its name.
    EXCHANGE = "{topic}";
    /// Queue of a subscription, without arguments, bound with an empty key; `spec.broker.queue` replaces `{topic}` in its name.
    QUEUE = "{topic}-{subscription}";
    /// Queue that messages return to after their wait.
    RETRY_QUEUE = "{queue}-again";
    /// Quorum queue that holds messages until their wait is over; declared when a message waits for that time, from 250 ms doubling to
    /// 1,024 s.
    WAIT_QUEUE = "{queue}-wait-{milliseconds}";
    /// Exchange (`fanout`) of a queue's dead letters.
    DEAD_LETTER_EXCHANGE = "{queue}-dlq";
    /// Queue that keeps a queue's dead letters.
    DEAD_LETTER_QUEUE = "{queue}-dlq-sub";
}

names! {
    /// Objects of Google Pub/Sub.
    PUBSUB:
    /// Topic.
    TOPIC = "{topic}";
    /// Subscription.
    SUBSCRIPTION = "{subscription}";
    /// Topic of a subscription's dead letters, also where the subscription itself names another one; Pub/Sub moves what is out of
    /// attempts to the one that the subscription names.
    DEAD_LETTER_TOPIC = "{subscription}-dlq";
    /// Subscription that keeps dead letters.
    DEAD_LETTER_SUBSCRIPTION = "{subscription}-dlq-sub";
    /// Topic that health checks ask for, as those of HyperFleet do; it need not exist.
    HEALTH_PROBE = "hyperfleet-health-probe";
}

/// Fills in the parts of a name with placeholders.
pub fn filled(pattern: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(pattern.to_owned(), |name, (part, value)| name.replace(&format!("{{{part}}}"), value))
}

/// Value of [`CONTENT_TYPE`] of an event in structured mode.
pub const STRUCTURED: &str = "application/cloudevents+json";
/// Value of [`CONTENT_TYPE`] of several events in one message, which no consumer of this project reads.
pub const BATCH: &str = "application/cloudevents-batch";
/// Value of [`CONTENT_TYPE`] of plain JSON.
pub const JSON: &str = "application/json";
/// Prefix of the attributes of an event in binary mode.
pub const BINARY_PREFIX: &str = "ce-";
/// Version of CloudEvents that is written.
pub const SPEC_VERSION: &str = "1.0";
/// Suffix of the name of a dead-letter topic, as in HyperFleet's broker library.
pub const DEAD_LETTER_SUFFIX: &str = "-dlq";
/// Prefix of the attributes that Pub/Sub adds to a message that it dead-letters.
pub const PUBSUB_DEAD_LETTER_PREFIX: &str = "CloudPubSubDeadLetter";
