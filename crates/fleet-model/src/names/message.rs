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
/// Topic that HyperFleet's health checks ask for; it need not exist.
pub const HEALTH_PROBE: &str = "hyperfleet-health-probe";
