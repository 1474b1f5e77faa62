//! Writes an event, member by member, so that equal events are equal bytes.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::event::{Data, Event, Format};
use crate::message::Message;
use fleet_model::names::message::{BINARY_PREFIX, CONTENT_TYPE, JSON, SPEC_VERSION, STRUCTURED, WATERMILL_UUID};

impl Event {
    /// Returns the message that carries the event.
    pub fn encode(&self, format: Format) -> Message {
        message(self, format)
    }
}

fn message(event: &Event, format: Format) -> Message {
    let mut attributes = BTreeMap::from([(WATERMILL_UUID.to_owned(), event.id.clone())]);
    let mut attribute = |name: &str, value: &str| attributes.insert(name.to_owned(), value.to_owned());
    let data_type = event.data_content_type.as_deref().unwrap_or(JSON);
    let body = match format {
        Format::Structured => {
            attribute(CONTENT_TYPE, STRUCTURED);
            structured(event)
        }
        Format::Binary => {
            attribute(CONTENT_TYPE, data_type);
            for (name, value) in context(event) {
                attribute(&format!("{BINARY_PREFIX}{name}"), &value);
            }
            for (name, value) in &event.extensions {
                attribute(&format!("{BINARY_PREFIX}{name}"), value);
            }
            bytes(event)
        }
        Format::Bare => {
            attribute(CONTENT_TYPE, data_type);
            bytes(event)
        }
    };
    Message { body, attributes }
}

/// Returns the context attributes of an event without its media type.
fn context(event: &Event) -> Vec<(&'static str, String)> {
    let mut context = vec![
        ("specversion", SPEC_VERSION.to_owned()),
        ("id", event.id.clone()),
        ("source", event.source.clone()),
        ("type", event.kind.clone()),
    ];
    context.extend(event.subject.clone().map(|subject| ("subject", subject)));
    context.extend(event.data_schema.clone().map(|schema| ("dataschema", schema)));
    context.extend(event.time.map(|time| ("time", time.to_string())));
    context
}

fn bytes(event: &Event) -> Vec<u8> {
    match &event.data {
        None => Vec::new(),
        Some(Data::Json(value)) => value.to_string().into_bytes(),
        Some(Data::Bytes(bytes)) => bytes.clone(),
    }
}

/// Writes the members in the order of CloudEvents' Go SDK.
fn structured(event: &Event) -> Vec<u8> {
    let mut text = String::from("{");
    let mut member = |name: &str, value: &str| {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&json_text(name));
        text.push(':');
        text.push_str(value);
    };
    for (name, value) in context(event) {
        // The media type follows the subject.
        if matches!(name, "dataschema" | "time") {
            continue;
        }
        member(name, &json_text(&value));
    }
    if let Some(content_type) = &event.data_content_type {
        member("datacontenttype", &json_text(content_type));
    }
    for (name, value) in context(event) {
        if matches!(name, "dataschema" | "time") {
            member(name, &json_text(&value));
        }
    }
    match &event.data {
        None => {}
        Some(Data::Json(value)) => member("data", &value.to_string()),
        Some(Data::Bytes(bytes)) => member("data_base64", &json_text(&STANDARD.encode(bytes))),
    }
    for (name, value) in &event.extensions {
        member(name, &json_text(value));
    }
    text.push('}');
    text.into_bytes()
}

fn json_text(text: &str) -> String {
    Value::from(text).to_string()
}
