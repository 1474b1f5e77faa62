//! Reads an event: lenient where HyperFleet's own services are, and without quoting what cannot be read.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::event::{Data, Event, Malformed};
use crate::message::{Message, starts_with};
use fleet_model::names::message::{BINARY_PREFIX, STRUCTURED, WATERMILL_UUID};

/// Prefixes of the attributes in binary mode: Google's binding, and AMQP's in its two spellings.
const PREFIXES: [&str; 3] = [BINARY_PREFIX, "cloudEvents:", "cloudEvents_"];

impl Event {
    /// Reads the event from a message: structured or binary CloudEvents, or JSON without an envelope.
    pub fn decode(message: &Message) -> Result<Self, Malformed> {
        event(message)
    }
}

fn event(message: &Message) -> Result<Event, Malformed> {
    if message.is_batch() {
        return Err(malformed("it is a batch of events"));
    }
    if message.content_type().is_some_and(|content| starts_with(content, STRUCTURED)) {
        return structured(message, object(&message.body)?);
    }
    if let Some(prefix) = PREFIXES.into_iter().find(|prefix| has_context(message, prefix)) {
        return binary(message, prefix);
    }
    // HyperFleet writes structured mode without its content type.
    let object = object(&message.body)?;
    if object.contains_key("specversion") || is_envelope(&object) {
        structured(message, object)
    } else {
        Ok(bare(message, object))
    }
}

/// Returns true for an object that has the members of an envelope, so that a missing `specversion` is a fault of it: read as bare
/// data, the event's id would be taken for a resource's.
fn is_envelope(object: &Map<String, Value>) -> bool {
    let has = |names: &[&str]| names.iter().filter(|name| object.contains_key(**name)).count();
    let (context, data) = (has(&["type", "source", "datacontenttype", "dataschema"]), has(&["data", "data_base64"]));
    context >= 2 || (context >= 1 && data >= 1)
}

fn has_context(message: &Message, prefix: &str) -> bool {
    ["specversion", "id", "source", "type"].iter().any(|name| message.attribute(&format!("{prefix}{name}")).is_some())
}

fn object(body: &[u8]) -> Result<Map<String, Value>, Malformed> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(malformed("the body is JSON, but no object")),
        // serde's message may quote the body.
        Err(error) => Err(Malformed(format!("the body is no JSON: line {}, column {}", error.line(), error.column()))),
    }
}

fn structured(message: &Message, mut object: Map<String, Value>) -> Result<Event, Malformed> {
    check_version(object.remove("specversion").as_ref().and_then(Value::as_str))?;
    let mut text = |name: &str| match object.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Malformed(format!("{name} is no string"))),
    };
    let (id, source, kind) = (text("id")?, text("source")?, text("type")?);
    let (subject, time) = (text("subject")?, text("time")?);
    let (data_schema, data_content_type) = (text("dataschema")?, text("datacontenttype")?);
    let encoded = text("data_base64")?;
    let plain = object.remove("data").filter(|data| !data.is_null());
    let json = is_json(data_content_type.as_deref());
    let data = match (plain, encoded) {
        (Some(_), Some(_)) => return Err(malformed("it has both data and data_base64")),
        (Some(Value::String(text)), None) if !json => Some(Data::Bytes(text.into_bytes())),
        (Some(value), None) => Some(Data::Json(value)),
        (None, Some(encoded)) => {
            let bytes = STANDARD.decode(encoded).map_err(|_quotes| malformed("data_base64 is not base64"))?;
            Some(payload(bytes, json)?)
        }
        (None, None) => None,
    };
    Ok(Event {
        id: id_of(message, id),
        source: source.unwrap_or_default(),
        kind: kind.unwrap_or_default(),
        subject,
        time: time_of(time)?,
        data_schema,
        data_content_type,
        data,
        extensions: object.into_iter().filter_map(|(name, value)| Some((name, scalar(value)?))).collect(),
    })
}

fn binary(message: &Message, prefix: &str) -> Result<Event, Malformed> {
    let mut context: BTreeMap<String, String> = message
        .attributes
        .iter()
        .filter(|(name, _)| starts_with(name, prefix))
        .map(|(name, value)| (name.get(prefix.len()..).unwrap_or_default().to_ascii_lowercase(), value.clone()))
        .collect();
    check_version(context.remove("specversion").as_deref())?;
    // In the binding it is the content type of the message.
    let data_content_type = context.remove("datacontenttype").or_else(|| message.content_type().map(str::to_owned));
    let json = is_json(data_content_type.as_deref());
    let data = if message.body.is_empty() { None } else { Some(payload(message.body.clone(), json)?) };
    Ok(Event {
        id: id_of(message, context.remove("id")),
        source: context.remove("source").unwrap_or_default(),
        kind: context.remove("type").unwrap_or_default(),
        subject: context.remove("subject"),
        time: time_of(context.remove("time"))?,
        data_schema: context.remove("dataschema"),
        data_content_type,
        data,
        extensions: context,
    })
}

/// Reads JSON without an envelope: source and type are unknown, the document is the data.
fn bare(message: &Message, object: Map<String, Value>) -> Event {
    Event {
        id: id_of(message, None),
        source: String::new(),
        kind: String::new(),
        subject: None,
        time: None,
        data_schema: None,
        data_content_type: message.content_type().map(str::to_owned),
        data: Some(Data::Json(Value::Object(object))),
        extensions: BTreeMap::new(),
    }
}

fn payload(bytes: Vec<u8>, json: bool) -> Result<Data, Malformed> {
    if !json {
        return Ok(Data::Bytes(bytes));
    }
    let parsed = serde_json::from_slice(&bytes);
    parsed
        .map(Data::Json)
        .map_err(|error| Malformed(format!("the data is no JSON: line {}, column {}", error.line(), error.column())))
}

fn check_version(version: Option<&str>) -> Result<(), Malformed> {
    match version {
        Some(version) if version.starts_with("1.") => Ok(()),
        Some(_) => Err(malformed("specversion is not 1.0")),
        None => Err(malformed("specversion is missing")),
    }
}

fn id_of(message: &Message, id: Option<String>) -> String {
    let watermill = message.attribute(WATERMILL_UUID).map(str::to_owned);
    let id = id.filter(|id| !id.is_empty()).or(watermill).filter(|id| !id.is_empty());
    id.unwrap_or_else(|| Uuid::now_v7().to_string())
}

fn time_of(time: Option<String>) -> Result<Option<Timestamp>, Malformed> {
    let Some(time) = time.filter(|time| !time.is_empty()) else { return Ok(None) };
    time.parse().map(Some).map_err(|_quotes| malformed("time is not in the form of RFC 3339"))
}

/// Returns an extension attribute as text; `None` for values without one.
fn scalar(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn malformed(why: &str) -> Malformed {
    Malformed(why.to_owned())
}

/// Returns true for a media type of JSON (`application/json`, `text/json`, `…+json`, with or without parameters) and for
/// none.
fn is_json(content_type: Option<&str>) -> bool {
    let Some(content_type) = content_type else { return true };
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.is_empty() || kind.ends_with("/json") || kind.ends_with("+json")
}
