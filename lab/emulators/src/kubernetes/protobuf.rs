//! Bodies in protobuf, as kubectl's `create` commands and controllers send them; answers are JSON, which they read as well.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::meta::{micro_stamp, stamp};
use super::value::{number, object, object_at, set, text};

mod kinds;

use kinds::{Field, Form};

/// The prefix of every protobuf body of Kubernetes.
const MAGIC: &[u8] = b"k8s\0";

/// A field's content on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl Wire<'_> {
    /// True if there is nothing in it, nor in anything inside it.
    fn is_empty(&self) -> bool {
        match self {
            Self::Number(number) => *number == 0,
            Self::Bytes(bytes) => fields(bytes).is_some_and(|fields| fields.iter().all(|(_, wire)| wire.is_empty())),
        }
    }
}

/// Reads a body; none if it is damaged, or holds something that is not known here and must not be lost.
pub(crate) fn read(body: &[u8]) -> Option<Value> {
    let mut raw = &[][..];
    let mut kind = json!({});
    for (number, wire) in fields(body.strip_prefix(MAGIC)?)? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => kind = message(kinds::TYPE, bytes)?,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let fields = kinds::of(text(&kind, "/kind"))?;
    let mut value = message(fields, raw)?;
    object(&mut value).extend(object(&mut kind).clone());
    Some(value)
}

/// A message's fields in their order.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let wire = match key & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (content, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Wire::Bytes(content)
            }
            _ => return None,
        };
        fields.push((key >> 3, wire));
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn message(known: &[Field], bytes: &[u8]) -> Option<Value> {
    let mut value = Value::Object(Map::new());
    for (number, wire) in fields(bytes)? {
        let Some(Field(_, name, form, repeated)) = known.iter().find(|field| field.0 == number) else {
            // Go writes empty fields too; anything else must not be lost.
            if wire.is_empty() {
                continue;
            }
            return None;
        };
        if let Form::Map(form) = form {
            let (key, entry) = entry(form, &wire)?;
            object_at(&mut value, &[name]).insert(key, entry);
            continue;
        }
        let content = content(*form, &wire)?;
        if content.is_null() {
            continue;
        }
        if *repeated {
            match object(&mut value).entry(*name).or_insert_with(|| json!([])) {
                Value::Array(items) => items.push(content),
                other => *other = json!([content]),
            }
        } else {
            set(&mut value, &[name], content);
        }
    }
    Some(value)
}

/// One entry of a map: a message with the key as its field 1 and the value as its field 2.
fn entry(form: &Form, wire: &Wire<'_>) -> Option<(String, Value)> {
    let Wire::Bytes(bytes) = wire else { return None };
    let (mut key, mut value) = (String::new(), Value::String(String::new()));
    for (number, wire) in fields(bytes)? {
        match (number, &wire) {
            (1, Wire::Bytes(bytes)) => std::str::from_utf8(bytes).ok()?.clone_into(&mut key),
            (2, _) => value = Some(content(*form, &wire)?).filter(|value| !value.is_null()).unwrap_or(value),
            _ => return None,
        }
    }
    Some((key, value))
}

/// A field's content; null if Go would leave it out of JSON.
fn content(form: Form, wire: &Wire<'_>) -> Option<Value> {
    Some(match (form, wire) {
        (Form::Text, Wire::Bytes([])) => Value::Null,
        (Form::Text | Form::Group, Wire::Bytes(bytes)) => json!(std::str::from_utf8(bytes).ok()?),
        (Form::Bytes, Wire::Bytes(bytes)) => json!(BASE64_STANDARD.encode(bytes)),
        (Form::Number, Wire::Number(number)) => json!(number.cast_signed()),
        (Form::Truth, Wire::Number(number)) => json!(*number != 0),
        (Form::Time, Wire::Bytes(bytes)) => time(bytes, stamp)?,
        (Form::MicroTime, Wire::Bytes(bytes)) => time(bytes, micro_stamp)?,
        (Form::Quantity, Wire::Bytes(bytes)) => {
            json!(text(&message(&[Field(1, "text", Form::Text, false)], bytes)?, "/text"))
        }
        (Form::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes)?,
        (Form::Json, Wire::Bytes(bytes)) => match fields(bytes)?.as_slice() {
            [] => Value::Null,
            [(1, Wire::Bytes(raw))] => serde_json::from_slice(raw).ok()?,
            _ => return None,
        },
        (Form::Message(known), Wire::Bytes(bytes)) => match message(known, bytes)? {
            value if value == json!({}) => Value::Null,
            value => value,
        },
        _ => return None,
    })
}

/// A number, or a text if the type says so.
fn int_or_string(bytes: &[u8]) -> Option<Value> {
    const FIELDS: &[Field] = &[
        Field(1, "type", Form::Number, false),
        Field(2, "number", Form::Number, false),
        Field(3, "text", Form::Text, false),
    ];
    let value = message(FIELDS, bytes)?;
    let is_text = number(&value, "/type") == Some(1);
    Some(if is_text { json!(text(&value, "/text")) } else { json!(number(&value, "/number").unwrap_or_default()) })
}

/// A message of seconds and nanoseconds. Go's zero time is no time.
fn time(bytes: &[u8], written: fn(Timestamp) -> String) -> Option<Value> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    for (number, wire) in fields(bytes)? {
        match (number, wire) {
            (1, Wire::Number(number)) => seconds = number.cast_signed(),
            (2, Wire::Number(number)) => nanoseconds = i32::try_from(number).ok()?,
            _ => return None,
        }
    }
    let time = Timestamp::new(seconds, nanoseconds).ok().filter(|time| time.as_second() > 0);
    Some(time.map_or(Value::Null, |time| json!(written(time))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field with bytes in it.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let key = number << 3 | 2;
        let key = if number < 16 { vec![key] } else { vec![key | 0x80, number >> 4] };
        [&key[..], &[u8::try_from(content.len()).unwrap()], content].concat()
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &types), &field(2, raw), &field(3, b"")].concat()
    }

    #[test]
    fn reads_a_secret() {
        let metadata =
            [field(1, b"s"), field(2, b""), field(8, b""), field(11, &[field(1, b"a"), field(2, b"1")].concat())];
        let data = [field(1, b"key"), field(2, b"value")].concat();
        let raw = [field(1, &metadata.concat()), field(2, &data), field(3, b"Opaque"), vec![5 << 3, 1]].concat();
        let wanted = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "1"}}, "type": "Opaque",
            "data": {"key": "dmFsdWU="}, "immutable": true,
        });
        assert_eq!(read(&body("Secret", &raw)), Some(wanted));
    }

    #[test]
    fn reads_a_lease_as_it_was_answered() {
        let set = field(1, br#"{"f:spec":{}}"#);
        let managed = [field(1, b"one"), field(2, b"Update"), field(6, b"FieldsV1"), field(7, &set)].concat();
        let metadata = [field(1, b"leader"), field(17, &managed)].concat();
        let time = [vec![1 << 3, 60], vec![2 << 3, 0x88, 0x27]].concat();
        let spec = [field(1, b"one"), field(4, &time), vec![5 << 3, 1]].concat();
        let wanted = json!({
            "apiVersion": "v1", "kind": "Lease",
            "metadata": {"name": "leader", "managedFields": [{
                "manager": "one", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}},
            }]},
            "spec": {"holderIdentity": "one", "renewTime": "1970-01-01T00:01:00.000005Z", "leaseTransitions": 1},
        });
        assert_eq!(read(&body("Lease", &[field(1, &metadata), field(2, &spec)].concat())), Some(wanted));
    }

    #[test]
    fn reads_quantities_and_ports() {
        let hard = [field(1, b"pods"), field(2, &field(1, b"2"))].concat();
        let quota = read(&body("ResourceQuota", &field(2, &field(1, &hard))));
        assert_eq!(quota.unwrap()["spec"], json!({"hard": {"pods": "2"}}));
        let numbered = [vec![3 << 3, 80], field(4, &[1 << 3, 0, 2 << 3, 81])].concat();
        let named = [vec![3 << 3, 90], field(4, &[vec![1 << 3, 1, 2 << 3, 0], field(3, b"web")].concat())].concat();
        let service = read(&body("Service", &field(2, &[field(1, &numbered), field(1, &named)].concat())));
        let ports = json!([{"port": 80, "targetPort": 81}, {"port": 90, "targetPort": "web"}]);
        assert_eq!(service.unwrap()["spec"], json!({"ports": ports}));
    }

    #[test]
    fn refuses_what_it_would_lose() {
        assert_eq!(read(&body("Secret", &field(9, b"x"))), None);
        assert_eq!(read(&body("Widget", b"")), None);
        assert_eq!(read(b"k8s"), None);
        assert_eq!(read(&[MAGIC, &[0x0a, 0x7f]].concat()), None);
    }
}
