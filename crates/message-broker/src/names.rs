//! Every name that goes over the wire, declared once.

/// The attribute that Watermill gives a message its id in; HyperFleet's Go services read and write it.
pub const WATERMILL_UUID: &str = "_watermill_message_uuid";
/// The attribute that tells what the body is.
pub const CONTENT_TYPE: &str = "content-type";
/// The content type of an event in structured mode.
pub const STRUCTURED: &str = "application/cloudevents+json";
/// The content type of several events in one message; not read.
pub const BATCH: &str = "application/cloudevents-batch";
/// The content type of JSON.
pub const JSON: &str = "application/json";
/// What the attributes of an event in binary mode begin with.
pub const BINARY_PREFIX: &str = "ce-";
/// The edition of CloudEvents that is written.
pub const SPEC_VERSION: &str = "1.0";
/// The attribute that counts how often a message was delivered, where the broker does not count.
pub const ATTEMPT: &str = "hyperfleet-attempt";
/// The attribute that tells why a message is among the dead letters.
pub const DEAD_LETTER_REASON: &str = "hyperfleet-dead-letter-reason";
/// The attribute that tells which subscription has given a message up.
pub const DEAD_LETTER_SOURCE: &str = "hyperfleet-dead-letter-source";
/// What the name of a dead-letter topic ends with, as HyperFleet's broker library has it.
pub const DEAD_LETTER_SUFFIX: &str = "-dlq";
/// The topic that HyperFleet's probes ask for; it need not exist.
pub const HEALTH_PROBE: &str = "hyperfleet-health-probe";
