//! An event: CloudEvents 1.0, and the forms in which it is written and read.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use fleet_model::names::message::JSON;

/// An event of CloudEvents 1.0.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Id, unique among the events of the source. A retried publication keeps the id.
    pub id: String,
    /// Source of the event.
    pub source: String,
    /// Type of the event; `type` on the wire.
    pub kind: String,
    /// Subject of the event, such as a cluster's id.
    pub subject: Option<String>,
    /// Time of the event.
    pub time: Option<Timestamp>,
    /// Schema of the data.
    pub data_schema: Option<String>,
    /// Media type of the data; `None` is JSON. `datacontenttype` on the wire.
    pub data_content_type: Option<String>,
    /// Data of the event.
    pub data: Option<Data>,
    /// Extension attributes, such as `traceparent`. Numbers and booleans are read as text.
    pub extensions: BTreeMap<String, String>,
}

/// Data of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A JSON value.
    Json(Value),
    /// Anything else.
    Bytes(Vec<u8>),
}

/// Form in which an event is written. All are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// One JSON document with everything in it, and the attributes that HyperFleet's Go services and Google's binding
    /// expect.
    #[default]
    Structured,
    /// The data as body, everything else as `ce-` attributes: Google's CloudEvents attribute binding.
    Binary,
    /// The data alone.
    Bare,
}

/// Error for a message that is not an event. It does not quote the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an event: {0}")]
pub struct Malformed(pub(crate) String);

// === impl Event ===

impl Event {
    /// Returns an event with a new id.
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

    /// Returns the data, if it is JSON.
    pub fn json(&self) -> Option<&Value> {
        match &self.data {
            Some(Data::Json(value)) => Some(value),
            Some(Data::Bytes(_)) | None => None,
        }
    }
}
