//! Connections to RabbitMQ: address, publication with confirmation, and the mapping of errors.

use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use lapin::uri::AMQPUri;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Error, ErrorKind as LapinErrorKind,
};
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{BrokerError, ErrorKind, Operation};
use crate::message::Message;
use crate::rabbitmq::settings::Settings;
use fleet_model::names::message::{CONTENT_TYPE, WATERMILL_UUID};

/// Heartbeat of a connection; RabbitMQ's default would notice a silent one after two minutes only.
const HEARTBEAT_SECONDS: u16 = 10;

/// Vhost of a URL that names none.
const DEFAULT_VHOST: &str = "/";

/// Time after which another connection is attempted beside one that is still being opened, as its peer may be gone.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);

/// Delivery mode of a message that survives a restart of the broker.
const PERSISTENT: u8 = 2;

/// Parses the URL.
pub(super) fn address(settings: &Settings) -> Result<AMQPUri, BrokerError> {
    let parsed = settings.url.expose_secret().parse::<AMQPUri>();
    let mut address = parsed.map_err(|_quotes_the_password| {
        BrokerError::new(Operation::Connect, "RabbitMQ", ErrorKind::Incompatible)
            .with_detail("the URL must be like amqp://user:password@host:5672/%2f, or amqps://")
    })?;
    // By AMQP's rule for URLs, `…:5672/` names a vhost without a name, which no RabbitMQ has.
    if address.vhost.is_empty() {
        DEFAULT_VHOST.clone_into(&mut address.vhost);
    }
    address.query.heartbeat = address.query.heartbeat.or(Some(HEARTBEAT_SECONDS));
    Ok(address)
}

/// Opens one connection at a time: a caller that gives up leaves its attempt to the next caller.
///
/// A connection that is being opened is a thread of lapin and a socket, and neither ends before the peer answers. With a
/// silent broker, an attempt every few seconds would accumulate them.
#[derive(Debug, Default)]
pub(super) struct Connector(Mutex<Option<Attempt>>);

#[derive(Debug)]
struct Attempt {
    began: Instant,
    task: AbortOnDropHandle<Result<Connection, BrokerError>>,
}

/// Exchange and routing key of a publication.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'a> {
    pub(super) exchange: &'a str,
    pub(super) routing_key: &'a str,
}

/// Operation and resource of a call, for its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) operation: Operation,
    pub(super) resource: &'a str,
}

// === impl Route ===

impl<'a> Route<'a> {
    /// Returns the route to a queue by the default exchange.
    pub(super) fn to_queue(queue: &'a str) -> Self {
        Self { exchange: "", routing_key: queue }
    }
}

// === impl Connector ===

impl Connector {
    /// Returns a new connection, or the one of an attempt that was left.
    pub(super) async fn connect(&self, settings: &Settings, role: &str) -> Result<Connection, BrokerError> {
        let mut pending = self.0.lock().await;
        let begin = || {
            let (settings, role) = (settings.clone(), role.to_owned());
            let task = AbortOnDropHandle::new(tokio::spawn(async move { connect(&settings, &role).await }));
            Attempt { began: Instant::now(), task }
        };
        loop {
            let last = pending.take().filter(|attempt| attempt.began.elapsed() < ABANDONED_AFTER);
            let is_new = last.is_none();
            let attempt = pending.insert(last.unwrap_or_else(begin));
            let connected = (&mut attempt.task).await;
            *pending = None;
            match connected {
                // The attempt was left, and its connection has ended meanwhile.
                Ok(Ok(connection)) if !is_new && !connection.status().connected() => {}
                Ok(connected) => return connected,
                Err(_broken) => return Err(BrokerError::new(Operation::Connect, "RabbitMQ", ErrorKind::Internal)),
            }
        }
    }
}

/// Opens a connection without lapin's own recovery, which gives up after some attempts; the callers retry for ever.
async fn connect(settings: &Settings, role: &str) -> Result<Connection, BrokerError> {
    let address = address(settings)?;
    let server = format!("RabbitMQ at {}:{}", address.authority.host, address.authority.port);
    let name = format!("{} {role}", fleet_model::names::client::PULL_SECRET);
    let properties = ConnectionProperties::default().with_connection_name(LongString::from(name));
    let connected = Connection::connect_uri(address, properties).await;
    connected.map_err(|error| classify(Operation::Connect, &server, &error))
}

/// Publishes on a channel with confirmation, and waits for it. `mandatory` makes a message that no queue would receive an
/// error.
pub(super) async fn publish(
    channel: &Channel,
    route: Route<'_>,
    message: &Message,
    call: Call<'_>,
) -> Result<(), BrokerError> {
    let Call { operation, resource } = call;
    let failed = |error: &Error| classify(operation, resource, error);
    let (exchange, routing_key) = (route.exchange.into(), route.routing_key.into());
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let sent = channel.basic_publish(exchange, routing_key, options, &message.body, properties(message)).await;
    match sent.map_err(|error| failed(&error))?.await.map_err(|error| failed(&error))? {
        Confirmation::Ack(None) => Ok(()),
        Confirmation::Ack(Some(_returned)) => Err(BrokerError::new(operation, resource, ErrorKind::Unrouted)),
        Confirmation::Nack(_) => Err(BrokerError::new(operation, resource, ErrorKind::Unavailable)
            .with_detail("the broker rejected the message")),
        Confirmation::NotRequested => Err(BrokerError::new(operation, resource, ErrorKind::Internal)),
    }
}

/// Returns the properties of a message. Headers are strings only: HyperFleet's Go services cannot read a message with any
/// other, and would receive it again and again.
///
/// Properties and the names of headers are short strings of at most 255 bytes, and lapin panics if they are longer. A
/// message of another program may exceed that: a value too long for a property becomes a header, and a header with too
/// long a name is left out.
fn properties(message: &Message) -> BasicProperties {
    let content_type = message.content_type().and_then(short);
    let mut headers = FieldTable::default();
    for (name, value) in &message.attributes {
        if let Some(name) = short(name).filter(|name| name.as_str() != CONTENT_TYPE || content_type.is_none()) {
            headers.insert(name, AMQPValue::LongString(value.as_str().into()));
        }
    }
    let mut properties = BasicProperties::default().with_delivery_mode(PERSISTENT).with_headers(headers);
    if let Some(content_type) = content_type {
        properties = properties.with_content_type(content_type);
    }
    if let Some(id) = message.attribute(WATERMILL_UUID).and_then(short) {
        properties = properties.with_message_id(id);
    }
    properties
}

fn short(text: &str) -> Option<ShortString> {
    ShortString::try_new(text).ok()
}

/// Reads a message. Headers that are not strings are the broker's own, and are left out.
pub(super) fn message(body: Vec<u8>, properties: &BasicProperties) -> Message {
    let mut message = Message { body, ..Message::default() };
    let headers = properties.headers().as_ref().map(FieldTable::inner);
    for (name, value) in headers.into_iter().flatten() {
        let text = match value {
            AMQPValue::LongString(text) => String::from_utf8_lossy(text.as_bytes()).into_owned(),
            AMQPValue::ShortString(text) => text.to_string(),
            _ => continue,
        };
        // `x-first-death-queue` and the like would grow with every wait.
        if !name.as_str().starts_with("x-") {
            message.attributes.insert(name.to_string(), text);
        }
    }
    if let Some(content_type) = properties.content_type() {
        message.attributes.insert(CONTENT_TYPE.to_owned(), content_type.to_string());
    }
    if let Some(id) = properties.message_id().as_ref().map(ShortString::to_string) {
        message.attributes.entry(WATERMILL_UUID.to_owned()).or_insert(id);
    }
    message
}

/// Maps an error of lapin.
pub(super) fn classify(operation: Operation, resource: &str, error: &Error) -> BrokerError {
    let kind = match error.kind() {
        LapinErrorKind::ProtocolError(error) => match error.kind() {
            // RabbitMQ reports a wrong identity as a refused connection.
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) if operation == Operation::Connect => {
                ErrorKind::Unauthenticated
            }
            // A vhost that does not exist, or that the user may not use.
            AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED) if operation == Operation::Connect => {
                ErrorKind::PermissionDenied
            }
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) => ErrorKind::PermissionDenied,
            AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => ErrorKind::NotFound,
            AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED) => ErrorKind::Incompatible,
            AMQPErrorKind::Soft(AMQPSoftError::RESOURCELOCKED | _) | AMQPErrorKind::Hard(_) => ErrorKind::Unavailable,
        },
        _ => ErrorKind::Unavailable,
    };
    BrokerError::new(operation, resource, kind).with_detail(error)
}

#[cfg(test)]
mod tests {
    use lapin::types::FieldArray;
    use rstest::rstest;

    use super::*;
    use fleet_model::names::message::STRUCTURED;

    #[rstest]
    #[case("amqp://guest:guest@localhost:5672", "/")]
    #[case("amqp://guest:guest@localhost:5672/", "/")]
    #[case("amqp://guest:guest@localhost:5672/%2f", "/")]
    #[case("amqp://guest:guest@localhost:5672/%2F?heartbeat=5", "/")]
    #[case("amqps://rabbitmq.example.com/?heartbeat=5", "/")]
    #[case("amqp://guest:guest@localhost:5672/fleet", "fleet")]
    fn a_url_without_a_vhost_means_the_default_vhost(#[case] url: &str, #[case] vhost: &str) {
        assert_eq!(address(&Settings::new(url.into())).unwrap().vhost, vhost);
    }

    /// HyperFleet's Go services read no other headers.
    #[test]
    fn headers_are_strings_and_the_content_type_is_none_of_them() {
        let attributes = [(CONTENT_TYPE, STRUCTURED), (WATERMILL_UUID, "7"), ("traceparent", "00-1-2-01")];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let sent = Message { body: b"{}".to_vec(), attributes };
        let written = properties(&sent);
        let headers = written.headers().as_ref().unwrap().inner();
        assert!(headers.values().all(|value| matches!(value, AMQPValue::LongString(_))), "{headers:?}");
        assert_eq!(headers.keys().map(ShortString::as_str).collect::<Vec<_>>(), [WATERMILL_UUID, "traceparent"]);
        assert_eq!(written.content_type().as_ref().unwrap().as_str(), STRUCTURED);
        assert_eq!(message(b"{}".to_vec(), &written), sent);
    }

    /// Another program may have written it.
    #[test]
    fn a_value_too_long_for_a_property_becomes_a_header() {
        let long = "x".repeat(256);
        let attributes = [(CONTENT_TYPE, long.as_str()), (WATERMILL_UUID, long.as_str()), (long.as_str(), "7")];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let written = properties(&Message { body: Vec::new(), attributes });
        assert_eq!((written.content_type(), written.message_id()), (&None, &None));
        let read = message(Vec::new(), &written);
        assert_eq!(read.attribute(WATERMILL_UUID), Some(long.as_str()));
        assert_eq!(read.attribute(CONTENT_TYPE), Some(long.as_str()));
    }

    /// They describe a wait, and grow with each.
    #[test]
    fn headers_that_rabbitmq_has_added_are_dropped() {
        let mut headers = FieldTable::default();
        headers.insert("x-death".into(), AMQPValue::FieldArray(FieldArray::default()));
        headers.insert("x-first-death-queue".into(), AMQPValue::LongString("q".into()));
        headers.insert("number".into(), AMQPValue::LongInt(7));
        let read = message(Vec::new(), &BasicProperties::default().with_headers(headers));
        assert_eq!(read, Message::default());
    }
}
