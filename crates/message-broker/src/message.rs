//! A message as it is on the wire of every broker: a body and attributes.

use std::collections::BTreeMap;

use fleet_model::names::message::{BATCH, CONTENT_TYPE};

/// A message. On Pub/Sub the attributes are its attributes; on RabbitMQ they are headers, all strings, as HyperFleet's Go
/// services read no others, and `content-type` is the property of that name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Message {
    /// Body.
    pub body: Vec<u8>,
    /// Attributes.
    pub attributes: BTreeMap<String, String>,
}

impl Message {
    /// Returns an attribute; the case of its name does not matter.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let exact = self.attributes.get(name);
        let found = exact
            .or_else(|| self.attributes.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value));
        found.map(String::as_str)
    }

    /// Returns the media type of the body, if the message has one.
    pub(crate) fn content_type(&self) -> Option<&str> {
        self.attribute(CONTENT_TYPE)
    }

    /// Returns true if the message holds a batch of events.
    pub(crate) fn is_batch(&self) -> bool {
        self.content_type().is_some_and(|content| starts_with(content, BATCH))
    }
}

/// Returns true if `text` begins with `beginning`, ignoring case.
pub(crate) fn starts_with(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}
