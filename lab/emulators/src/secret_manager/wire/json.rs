//! JSON forms of protobuf's special types, and the conversion of a JSON body into a message.

use std::str::FromStr;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost_types::{Duration, Timestamp};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::values::duration_text;
use crate::secret_manager::status::Status;

/// Prefix of messages of the readers in this file; only those may be shown, because serde's quote the value.
const SHOWABLE: &str = "Invalid value";

/// Members whose keys are the caller's, not the message's.
const MAPS: [&str; 6] = ["labels", "annotations", "tags", "versionAliases", "version_aliases", "metadata"];

/// True if a member has its default, which proto3 JSON leaves out.
pub(crate) fn unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads a message out of a body; `root` is the message's place in the request, such as `secret`.
///
/// No value of the body appears in the refusal: it may be a payload.
pub(crate) fn read<T: DeserializeOwned + Default>(body: &[u8], root: &str) -> Result<T, Status> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(T::default());
    }
    let mut value: Value = serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Status::bad_field(
            "",
            format!("Invalid JSON payload received. Parsing stopped at line {line}, column {column}."),
        )
    })?;
    if !value.is_object() {
        let message = "Invalid JSON payload received. Unexpected root value: an object is expected.";
        return Err(Status::bad_field(root, message));
    }
    without_nulls(&mut value);
    T::deserialize(&value).map_err(|error| refusal(&error.to_string(), &value, root))
}

/// A refusal for a body that does not fit its message.
fn refusal(error: &str, value: &Value, root: &str) -> Status {
    if error.starts_with(SHOWABLE) {
        return Status::bad_field(root, error);
    }
    let unknown = error.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    let Some((name, _)) = unknown else {
        let message = format!("{SHOWABLE} at '{root}': a member has another type than its field.");
        return Status::bad_field(root, message);
    };
    let place = place_of(value, name, root).unwrap_or_else(|| root.to_owned());
    let at = if place.is_empty() { String::new() } else { format!(" at '{place}'") };
    let message = format!("Invalid JSON payload received. Unknown name \"{name}\"{at}: Cannot find field.");
    Status::bad_field(&place, message)
}

/// The dotted path of the object that holds `name`.
fn place_of(value: &Value, name: &str, path: &str) -> Option<String> {
    let members = value.as_object()?;
    if members.contains_key(name) {
        return Some(path.to_owned());
    }
    let dot = if path.is_empty() { "" } else { "." };
    let nested = members.iter().filter(|(key, _)| !MAPS.contains(&key.as_str()));
    nested.into_iter().find_map(|(key, value)| match value {
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| place_of(item, name, &format!("{path}{dot}{key}[{index}]")))
        }
        _ => place_of(value, name, &format!("{path}{dot}{key}")),
    })
}

/// JSON `null` means "not set" in proto3.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn duration_of(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (seconds, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds.strip_prefix('-').unwrap_or(seconds)) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanos: i32 = format!("{fraction:0<9}").parse().ok()?;
    let nanos = if seconds.starts_with('-') { -nanos } else { nanos };
    Some(Duration { seconds: seconds.parse().ok()?, nanos })
}

/// An instant with as many groups of three decimals as it needs.
fn timestamp_text(timestamp: &Timestamp) -> Option<String> {
    let instant = jiff::Timestamp::new(timestamp.seconds, timestamp.nanos).ok()?;
    Some(match timestamp.nanos {
        0 => format!("{instant:.0}"),
        nanos if nanos % 1_000_000 == 0 => format!("{instant:.3}"),
        nanos if nanos % 1_000 == 0 => format!("{instant:.6}"),
        _ => format!("{instant:.9}"),
    })
}

/// Reads bytes in either alphabet, padded or not.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let url_safe = text.contains(['-', '_']);
    let alphabet = if url_safe { &alphabet::URL_SAFE } else { &alphabet::STANDARD };
    GeneralPurpose::new(alphabet, lenient).decode(text).ok()
}

fn text_or<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    kind: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    let wrong = || D::Error::custom(format!("{SHOWABLE} ({kind}): the text cannot be read."));
    let Value::String(text) = Value::deserialize(deserializer)? else { return Err(wrong()) };
    parse(&text).ok_or_else(wrong)
}

/// `google.protobuf.Timestamp` as RFC 3339.
pub(crate) mod timestamp {
    use serde::Serializer;

    use super::{Deserializer, FromStr as _, Timestamp, text_or, timestamp_text};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(value: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        match value.as_ref().and_then(timestamp_text) {
            Some(text) => serializer.serialize_str(&text),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        let parse = |text: &str| jiff::Timestamp::from_str(text).ok();
        let instant = text_or(deserializer, "type.googleapis.com/google.protobuf.Timestamp", parse)?;
        Ok(Some(super::super::values::timestamp(instant)))
    }
}

/// `google.protobuf.Duration` as decimal seconds.
pub(crate) mod duration {
    use serde::Serializer;

    use super::{Deserializer, Duration, duration_of, duration_text, text_or};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.serialize_str(&duration_text(duration)),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        text_or(deserializer, "type.googleapis.com/google.protobuf.Duration", duration_of).map(Some)
    }
}

/// `bytes` as base64.
pub(crate) mod bytes {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use serde::Serializer;

    use super::{Deserializer, bytes_of, text_or};

    pub(crate) fn serialize<S: Serializer>(value: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(value))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        text_or(deserializer, "TYPE_BYTES", bytes_of)
    }
}

/// `int64` as a decimal string; a JSON number is accepted too.
pub(crate) mod int64 {
    use serde::Serializer;

    use super::{Deserialize as _, Deserializer, SHOWABLE, Value};

    pub(crate) fn of(value: &Value) -> Option<i64> {
        match value {
            Value::String(text) => text.parse().ok(),
            number => number.as_i64(),
        }
    }

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(value: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(number) => serializer.collect_str(number),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom(format!("{SHOWABLE} (TYPE_INT64): a whole number is expected."));
        of(&value).map(Some).ok_or_else(wrong)
    }
}

/// `map<string, int64>`.
pub(crate) mod int64_map {
    use std::collections::BTreeMap;

    use serde::Serializer;

    use super::{Deserialize as _, Deserializer, SHOWABLE, Value, int64};

    pub(crate) fn serialize<S: Serializer>(map: &BTreeMap<String, i64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(key, number)| (key, number.to_string())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, i64>, D::Error> {
        let wrong = || serde::de::Error::custom(format!("{SHOWABLE} (TYPE_INT64): a whole number is expected."));
        let map = BTreeMap::<String, Value>::deserialize(deserializer)?;
        map.into_iter().map(|(key, value)| Ok((key, int64::of(&value).ok_or_else(wrong)?))).collect()
    }
}

/// The state of a version, by name on the way out, by name or number on the way in.
pub(crate) mod state {
    use serde::Serializer;

    use super::super::values::VersionState;
    use super::{Deserialize as _, Deserializer, SHOWABLE, Value};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(crate) fn serialize<S: Serializer>(value: &i32, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(VersionState::try_from(*value).unwrap_or_default().name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
        let found = match Value::deserialize(deserializer)? {
            Value::String(name) => VersionState::named(&name),
            number => number.as_i64().and_then(|number| VersionState::try_from(i32::try_from(number).ok()?).ok()),
        };
        let wrong = || serde::de::Error::custom(format!("{SHOWABLE} (SecretVersion.State): no such state."));
        found.map(|state| state as i32).ok_or_else(wrong)
    }
}
