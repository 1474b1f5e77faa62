//! Labels and annotations as custom metadata.
//!
//! A label is an entry as it is. The annotations are one JSON object, in ASCII, in the entries `annotations`, `annotations-2`
//! and so on. Other entries belong to people and are kept.

use std::collections::BTreeMap;

use super::wire::{Custom, SecretInfo};
use crate::contract::Metadata;
use crate::encoding::{self, piece_key};
use crate::label;

/// The first entry of the annotations.
const ANNOTATIONS: &str = "annotations";
/// The largest value of an entry, in bytes.
const MAX_VALUE: usize = 512;
/// The value of an empty label: the server refuses empty values.
const EMPTY: &str = "\"\"";

/// Returns labels, annotations and etag of a secret.
pub(super) fn read(info: SecretInfo) -> Metadata {
    let etag = etag(&info);
    let custom = info.custom_metadata.unwrap_or_default();
    let annotations: String =
        (1..).map_while(|part| custom.get(&piece_key(ANNOTATIONS, part)).map(String::as_str)).collect();
    // Whatever people have made of them: the caller writes them anew.
    let annotations = serde_json::from_str(&annotations).unwrap_or_default();
    let is_empty = |value: &str| value == EMPTY;
    let labels = custom
        .into_iter()
        .filter(|(key, _)| is_label(key))
        .map(|(key, value)| if is_empty(&value) { (key, String::new()) } else { (key, value) });
    Metadata { labels: labels.collect(), annotations, etag }
}

/// Returns the custom metadata of a secret with these labels and annotations. The entries of `former` that belong to people
/// are kept. Fails with the key of a label that cannot be written.
pub(super) fn write<'a>(
    labels: &'a BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    former: &Custom,
) -> Result<Custom, &'a str> {
    if let Some(key) = labels.keys().find(|key| !is_label(key)) {
        return Err(key);
    }
    let kept = former.iter().filter(|(key, _)| !is_label(key) && !is_part(key));
    let mut custom: Custom = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    let value_of = |value: &String| if value.is_empty() { EMPTY.to_owned() } else { value.clone() };
    custom.extend(labels.iter().map(|(key, value)| (key.clone(), value_of(value))));
    if !annotations.is_empty() {
        let json = encoding::ascii(&serde_json::to_string(annotations).unwrap_or_default());
        custom.extend(encoding::pieces(ANNOTATIONS, &json, MAX_VALUE));
    }
    Ok(custom)
}

/// Returns the etag of a secret: its creation with the number of its metadata's version, or with a digest of its custom
/// metadata at a server that has no such number (its `updated_time` changes with every version that is added).
pub(super) fn etag(info: &SecretInfo) -> String {
    match info.current_metadata_version {
        Some(version) => numbered(&info.created_time, version),
        None => digested(&info.created_time, info.custom_metadata.as_ref().unwrap_or(&Custom::new())),
    }
}

/// Returns the etag of the metadata after a change that was made to `before`.
pub(super) fn etag_after(before: &SecretInfo, written: &Custom) -> String {
    match before.current_metadata_version {
        Some(version) => numbered(&before.created_time, version + 1),
        None => digested(&before.created_time, written),
    }
}

fn numbered(created: &str, version: u64) -> String {
    format!("{created}/{version}")
}

fn digested(created: &str, custom: &Custom) -> String {
    format!("{created}/{}", encoding::digest(&serde_json::to_vec(custom).unwrap_or_default()))
}

fn is_part(key: &str) -> bool {
    let number = key.strip_prefix(ANNOTATIONS);
    number.is_some_and(|number| {
        number.is_empty() || number.strip_prefix('-').is_some_and(|part| part.parse::<u32>().is_ok())
    })
}

fn is_label(key: &str) -> bool {
    label::is_key(key) && !is_part(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn info(custom_metadata: &Custom, current_metadata_version: Option<u64>) -> SecretInfo {
        let document = serde_json::json!({
            "created_time": "2026-11-25T12:00:00Z",
            "current_metadata_version": current_metadata_version,
            "custom_metadata": custom_metadata,
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let labels = texts(&[("team", "größe"), ("empty", "")]);
        let annotations =
            texts(&[("hyperfleet.io", "Größe: 1/2\n\"x\"\u{7f}\u{1f600}"), ("long", &"é".repeat(1000)), ("", "")]);
        let custom = write(&labels, &annotations, &Custom::new()).unwrap();
        assert!(custom.values().all(|value| (1..=MAX_VALUE).contains(&value.len())), "{custom:?}");
        assert!(custom.values().all(|value| !value.chars().any(char::is_control)), "{custom:?}");
        assert!(custom.contains_key("annotations-2"));
        let read = read(info(&custom, Some(3)));
        assert_eq!((read.labels, read.annotations), (labels, annotations));
        assert_eq!(read.etag, "2026-11-25T12:00:00Z/3");
    }

    #[test]
    fn entries_of_people_are_kept_and_former_parts_are_not() {
        let former = texts(&[
            ("Owner", "Fleet team"),
            ("annotations-x", "label"),
            ("annotations", "{}"),
            ("annotations-7", "x"),
            ("old", "1"),
        ]);
        let custom = write(&texts(&[("new", "1")]), &BTreeMap::new(), &former).unwrap();
        assert_eq!(custom, texts(&[("Owner", "Fleet team"), ("new", "1")]));
    }

    #[test]
    fn a_label_with_the_key_of_the_annotations_is_refused() {
        let labels = texts(&[("annotations-2", "1")]);
        assert_eq!(write(&labels, &BTreeMap::new(), &Custom::new()), Err("annotations-2"));
        let labels = texts(&[("No label", "1")]);
        assert_eq!(write(&labels, &BTreeMap::new(), &Custom::new()), Err("No label"));
    }

    #[test]
    fn damaged_annotations_are_none() {
        for damaged in ["", "{", "[]", "{\"a\":1}"] {
            assert!(read(info(&texts(&[("annotations", damaged)]), None)).annotations.is_empty(), "{damaged}");
        }
    }

    #[test]
    fn an_etag_follows_each_change_and_no_version() {
        for version in [Some(1), None] {
            let before = info(&texts(&[("a", "1")]), version);
            let written = texts(&[("a", "2")]);
            let after = info(&written, version.map(|version| version + 1));
            assert_ne!(etag(&before), etag(&after));
            assert_eq!(etag_after(&before, &written), etag(&after));
        }
    }
}
