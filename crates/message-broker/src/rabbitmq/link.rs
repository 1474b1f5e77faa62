//! Connections to RabbitMQ, what is sent over them, and what their errors mean.

use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use lapin::uri::AMQPUri;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Error, ErrorKind};
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{Action, BrokerError, Fault};
use crate::message::Message;
use crate::rabbitmq::Settings;
use fleet_model::names::message::{CONTENT_TYPE, WATERMILL_UUID};

/// Without it, a connection that has gone silent would be noticed after two minutes only.
const HEARTBEAT_SECONDS: u16 = 10;

/// After so long another connection is tried beside one that is still being opened: its other side may be gone for good.
const GIVEN_UP: Duration = Duration::from_mins(1);

/// Survives a restart of the broker.
const PERSISTENT: u8 = 2;

/// Where to connect to.
pub(super) fn address(settings: &Settings) -> Result<AMQPUri, BrokerError> {
    let parsed = settings.url.expose_secret().parse::<AMQPUri>();
    let mut address = parsed.map_err(|_quotes_the_password| {
        BrokerError::new(Action::Connect, "RabbitMQ", Fault::Misfit)
            .with_detail("the URL must be like amqp://user:password@host:5672/%2f, or amqps://")
    })?;
    address.query.heartbeat = address.query.heartbeat.or(Some(HEARTBEAT_SECONDS));
    Ok(address)
}

/// Connects, once at a time: whoever gives up leaves the attempt to whoever comes next.
///
/// A connection that is being opened is a thread of lapin's and a socket, and neither ends before the other side answers.
/// With a broker that is silent, an attempt every few seconds would fill the process with them.
#[derive(Debug, Default)]
pub(super) struct Connector(Mutex<Option<Attempt>>);

#[derive(Debug)]
struct Attempt {
    began: Instant,
    task: AbortOnDropHandle<Result<Connection, BrokerError>>,
}

// === impl Connector ===

impl Connector {
    /// A new connection, or the one that was begun before.
    pub(super) async fn connect(&self, settings: &Settings, role: &str) -> Result<Connection, BrokerError> {
        let mut turn = self.0.lock().await;
        let begin = || {
            let (settings, role) = (settings.clone(), role.to_owned());
            let task = AbortOnDropHandle::new(tokio::spawn(async move { connect(&settings, &role).await }));
            Attempt { began: Instant::now(), task }
        };
        loop {
            let last = turn.take().filter(|attempt| attempt.began.elapsed() < GIVEN_UP);
            let is_new = last.is_none();
            let attempt = turn.insert(last.unwrap_or_else(begin));
            let connected = (&mut attempt.task).await;
            *turn = None;
            match connected {
                // Nobody has waited for it, and it is gone again.
                Ok(Ok(connection)) if !is_new && !connection.status().connected() => {}
                Ok(connected) => return connected,
                Err(_broken) => return Err(BrokerError::new(Action::Connect, "RabbitMQ", Fault::Internal)),
            }
        }
    }
}

/// A new connection; lapin's own recovery gives up after some attempts, so that ours, which does not, stands alone.
async fn connect(settings: &Settings, role: &str) -> Result<Connection, BrokerError> {
    let address = address(settings)?;
    let place = format!("RabbitMQ at {}:{}", address.authority.host, address.authority.port);
    let name = format!("pull-secret {role}");
    let properties = ConnectionProperties::default().with_connection_name(LongString::from(name));
    let connected = Connection::connect_uri(address, properties).await;
    connected.map_err(|error| classify(Action::Connect, &place, &error))
}

/// Publishes on a channel that confirms, and waits until the broker has it. `mandatory` makes a message that nobody would
/// get an error.
pub(super) async fn publish(
    channel: &Channel,
    (exchange, key): (&str, &str),
    message: &Message,
    (action, resource): (Action, &str),
) -> Result<(), BrokerError> {
    let failed = |error: &Error| classify(action, resource, error);
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let sent = channel.basic_publish(exchange.into(), key.into(), options, &message.body, properties(message)).await;
    match sent.map_err(|error| failed(&error))?.await.map_err(|error| failed(&error))? {
        Confirmation::Ack(None) => Ok(()),
        Confirmation::Ack(Some(_returned)) => Err(BrokerError::new(action, resource, Fault::Unrouted)),
        Confirmation::Nack(_) => {
            Err(BrokerError::new(action, resource, Fault::Unavailable).with_detail("the broker did not take it"))
        }
        Confirmation::NotRequested => Err(BrokerError::new(action, resource, Fault::Internal)),
    }
}

/// Headers are strings only: HyperFleet's Go services cannot read a message with any other, and would have it delivered
/// to them again and again.
///
/// Properties and the names of headers are short strings, of at most 255 bytes, and lapin panics if they are not. Whoever
/// wrote a message that is passed on need not have kept to that: what is too long for a property is a header, and a header
/// with too long a name is left out.
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

/// What has come, as a message. Headers that are no strings are the broker's own.
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

/// The error in our words.
pub(super) fn classify(action: Action, resource: &str, error: &Error) -> BrokerError {
    let fault = match error.kind() {
        ErrorKind::ProtocolError(error) => match error.kind() {
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) => Fault::PermissionDenied,
            AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND) => Fault::NotFound,
            AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED) => Fault::Misfit,
            AMQPErrorKind::Soft(AMQPSoftError::RESOURCELOCKED | _) | AMQPErrorKind::Hard(_) => Fault::Unavailable,
        },
        _ => Fault::Unavailable,
    };
    // A connection that is refused for the identity is refused by the server's own words.
    let words = error.to_string();
    let fault =
        if action == Action::Connect && fault == Fault::PermissionDenied { Fault::Unauthenticated } else { fault };
    BrokerError::new(action, resource, fault).with_detail(words)
}

#[cfg(test)]
mod tests {
    use lapin::types::FieldArray;

    use super::*;
    use fleet_model::names::message::STRUCTURED;

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

    /// Whoever wrote it need not have kept to what a property can hold.
    #[test]
    fn what_is_too_long_for_a_property_is_a_header_all_the_same() {
        let long = "x".repeat(256);
        let attributes = [(CONTENT_TYPE, long.as_str()), (WATERMILL_UUID, long.as_str()), (long.as_str(), "7")];
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let written = properties(&Message { body: Vec::new(), attributes });
        assert_eq!((written.content_type(), written.message_id()), (&None, &None));
        let read = message(Vec::new(), &written);
        assert_eq!(read.attribute(WATERMILL_UUID), Some(long.as_str()));
        assert_eq!(read.attribute(CONTENT_TYPE), Some(long.as_str()));
    }

    /// They are the broker's notes about a wait, and grow with each.
    #[test]
    fn what_rabbitmq_has_added_goes_no_further() {
        let mut headers = FieldTable::default();
        headers.insert("x-death".into(), AMQPValue::FieldArray(FieldArray::default()));
        headers.insert("x-first-death-queue".into(), AMQPValue::LongString("q".into()));
        headers.insert("number".into(), AMQPValue::LongInt(7));
        let read = message(Vec::new(), &BasicProperties::default().with_headers(headers));
        assert_eq!(read, Message::default());
    }
}
