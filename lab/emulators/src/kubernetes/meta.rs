//! An object's metadata, and the few values that the server makes up itself.

use jiff::Timestamp;
use serde_json::Value;

use super::value::{list, number, text};

/// The characters of generated name endings: none that spell words or look alike.
const ENDING: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Number of them that follow `generateName`.
const ENDING_CHARACTERS: usize = 5;

/// The longest generated name.
const GENERATED_NAME_MAXIMUM: usize = 63;

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(crate) fn revision(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or_default()
}

pub(crate) fn finalizers(object: &Value) -> &[Value] {
    list(object, "/metadata/finalizers")
}

pub(crate) fn has_finalizer(object: &Value, name: &str) -> bool {
    finalizers(object).iter().any(|finalizer| finalizer == name)
}

pub(crate) fn owners(object: &Value) -> &[Value] {
    list(object, "/metadata/ownerReferences")
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// True if nothing holds an object back any more whose deletion has begun.
pub(crate) fn may_go(object: &Value) -> bool {
    is_deleting(object)
        && finalizers(object).is_empty()
        && number(object, "/metadata/deletionGracePeriodSeconds").unwrap_or_default() == 0
}

/// A time as metadata writes it.
pub(crate) fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time as Leases write it, with microseconds.
pub(crate) fn micro_stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A time that metadata holds.
pub(crate) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

/// A new random UUID, version 4.
pub(crate) fn new_uid() -> String {
    let random: u128 = rand::random();
    let bits = random & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// A name that begins as wanted.
pub(crate) fn generated_name(prefix: &str) -> String {
    let kept: String = prefix.chars().take(GENERATED_NAME_MAXIMUM - ENDING_CHARACTERS).collect();
    let mut random: u64 = rand::random();
    let mut name = kept;
    for _ in 0..ENDING_CHARACTERS {
        let count = ENDING.len() as u64;
        let index = usize::try_from(random % count).unwrap_or_default();
        name.push(char::from(ENDING.get(index).copied().unwrap_or(b'x')));
        random /= count;
    }
    name
}
