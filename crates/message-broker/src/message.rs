//! A message as it is on the wire, whatever the broker: bytes and named texts.

use std::collections::BTreeMap;

use fleet_model::names::message::{BATCH, CONTENT_TYPE};

/// A message. On Pub/Sub the attributes are its attributes; on RabbitMQ they are headers, all strings, as HyperFleet's Go
/// services read no others, and `content-type` is the property of that name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Message {
    /// What it says.
    pub body: Vec<u8>,
    /// What is said about it.
    pub attributes: BTreeMap<String, String>,
}

impl Message {
    /// An attribute, whatever the case of its name.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let exact = self.attributes.get(name);
        let found = exact
            .or_else(|| self.attributes.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value));
        found.map(String::as_str)
    }

    /// What the body is, if that is said.
    pub(crate) fn content_type(&self) -> Option<&str> {
        self.attribute(CONTENT_TYPE)
    }

    /// Whether it says that it holds several events.
    pub(crate) fn is_batch(&self) -> bool {
        self.content_type().is_some_and(|content| starts_with(content, BATCH))
    }
}

/// Whether a text begins with another, whatever the case.
pub(crate) fn starts_with(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}
