//! What travels: a `CloudEvent` 1.0, and the forms it is written in and read from.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::Message;
use fleet_model::names::message::JSON;

/// An event, as CloudEvents 1.0 has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Tells it from every other event of its source. A repeated publication has the id of the first.
    pub id: String,
    /// Who tells.
    pub source: String,
    /// What has happened; `type` on the wire.
    pub kind: String,
    /// What it has happened to.
    pub subject: Option<String>,
    /// When.
    pub time: Option<Timestamp>,
    /// The schema of the data.
    pub data_schema: Option<String>,
    /// What the data is, if not JSON without further words; `datacontenttype` on the wire.
    pub data_content_type: Option<String>,
    /// The particulars.
    pub data: Option<Data>,
    /// Extension attributes, `traceparent` for one. Numbers and truth values are read as the texts that they are in
    /// attributes.
    pub extensions: BTreeMap<String, String>,
}

/// An event's particulars.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A JSON value.
    Json(Value),
    /// Anything else.
    Bytes(Vec<u8>),
}

/// How an event is written. All are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// One JSON document with everything in it, and the attributes that HyperFleet's Go services and Google's binding
    /// look for.
    #[default]
    Structured,
    /// The data as body, everything else as `ce-` attributes: Google's CloudEvents attribute binding.
    Binary,
    /// The data alone.
    Bare,
}

/// A message that is no event. Its words do not quote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an event: {0}")]
pub struct Malformed(pub(crate) String);

// === impl Event ===

impl Event {
    /// An event with a new id, as of `time`.
    pub fn new(source: &str, kind: &str, time: Timestamp, data: Value) -> Self {
        Self {
            id: Uuid::now_v7().to_string(),
            source: source.to_owned(),
            kind: kind.to_owned(),
            subject: None,
            time: Some(time),
            data_schema: None,
            data_content_type: Some(JSON.to_owned()),
            data: Some(Data::Json(data)),
            extensions: BTreeMap::new(),
        }
    }

    /// The data, if it is JSON.
    pub fn json(&self) -> Option<&Value> {
        match &self.data {
            Some(Data::Json(value)) => Some(value),
            Some(Data::Bytes(_)) | None => None,
        }
    }

    /// The message that carries the event.
    pub fn encode(&self, format: Format) -> Message {
        write::message(self, format)
    }

    /// The event that a message carries: structured or binary CloudEvents, or JSON without an envelope.
    pub fn decode(message: &Message) -> Result<Self, Malformed> {
        read::event(message)
    }
}

/// Whether a content type is JSON's: `application/json`, `text/json`, `…+json`, with or without parameters. None is.
fn is_json(content_type: Option<&str>) -> bool {
    let Some(content_type) = content_type else { return true };
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.is_empty() || kind.ends_with("/json") || kind.ends_with("+json")
}
