//! Ids of versions, and the record of a version in its staging labels.
//!
//! A version's id is chosen by its writer: it holds the number, so a number is given once. The record is in labels that are
//! set by the same request; they name the number, as a label is on one version only.

use std::collections::BTreeMap;

use super::text;
use crate::VersionNumber;

/// The label of the version that readers get.
pub(super) const CURRENT: &str = "AWSCURRENT";

/// Number of labels that AWS allows a secret, over all its versions.
pub(super) const MAX_LABELS: usize = 20;
/// Number of labels of a version's record.
pub(super) const LABELS_OF_RECORD: usize = 2;
/// The longest label.
const MAX_LABEL: usize = 256;

/// The beginning of a version's id; its number follows with twenty digits.
const ID: &str = "hyperfleet-version-";
/// The beginning of a label of a record; `{number}-{part}.{parts}-{text}` follows.
const RECORD: &str = "hyperfleet-record-";

/// Returns the id of the version with this number.
pub(super) fn id(number: VersionNumber) -> String {
    format!("{ID}{:020}", number.get())
}

/// Returns the number in an id; `None` for a version that something else has added.
pub(super) fn number(id: &str) -> Option<VersionNumber> {
    let digits = id.strip_prefix(ID).filter(|digits| digits.len() == 20)?;
    digits.parse().ok().filter(|number| self::id(*number) == id)
}

/// Returns the labels of a record; `None` if it is too long for them.
pub(super) fn write(number: VersionNumber, record: &BTreeMap<String, String>) -> Option<Vec<String>> {
    let encoded = text::encode(record);
    let room = MAX_LABEL - prefix(number, LABELS_OF_RECORD, LABELS_OF_RECORD).len();
    // A version has a label even without a record: those without are on their way out.
    let texts: Vec<&[u8]> = if encoded.is_empty() { vec![b""] } else { encoded.as_bytes().chunks(room).collect() };
    let parts = texts.len();
    let label = |(part, text): (usize, &[u8])| prefix(number, part, parts) + &String::from_utf8_lossy(text);
    (parts <= LABELS_OF_RECORD).then(|| (1..).zip(texts).map(label).collect())
}

/// Returns the record in a version's labels; `None` if there is none, or not a whole one.
pub(super) fn read(number: VersionNumber, labels: &[String]) -> Option<BTreeMap<String, String>> {
    let part = |part: usize, parts: usize| {
        let prefix = prefix(number, part, parts);
        labels.iter().find_map(|label| label.strip_prefix(&prefix))
    };
    let whole = |parts: usize| (1..=parts).map(|number| part(number, parts)).collect::<Option<String>>();
    text::decode(&(1..=LABELS_OF_RECORD).find_map(whole)?)
}

/// Returns true if the label is one of a record.
pub(super) fn is_of_record(label: &str) -> bool {
    label.starts_with(RECORD)
}

fn prefix(number: VersionNumber, part: usize, parts: usize) -> String {
    format!("{RECORD}{number}-{part}.{parts}-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_id_holds_its_number_and_nothing_else_is_an_id() {
        for number in [1, 7, u64::MAX] {
            let id = id(VersionNumber::new(number).unwrap());
            assert!((32..=64).contains(&id.len()), "{id}");
            assert_eq!(self::number(&id).map(VersionNumber::get), Some(number));
        }
        for other in [
            "hyperfleet-version-1",
            "hyperfleet-version-00000000000000000000",
            "hyperfleet-version-+0000000000000000001",
            "x",
        ] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    /// As long as the Job's records get: the longest id of a cluster, a digest, eight versions of five digits.
    #[test]
    fn the_longest_record_of_the_job_fits() {
        let record = texts(&[
            ("cluster-id", &"c".repeat(63)),
            ("hyperfleet-added", "99991,99992,99993,99994,99995,99996,99997,99998"),
            ("hyperfleet-digest", &format!("hmac-sha256:{}", "a".repeat(64))),
            ("hyperfleet-generation", "9999999999"),
            ("hyperfleet-incarnation", "2026-01-02T03:04:05Z"),
            ("hyperfleet-version", "99998"),
            ("managed-by", "hyperfleet"),
        ]);
        let number = VersionNumber::new(99_998).unwrap();
        let labels = write(number, &record).unwrap();
        assert_eq!(labels.len(), 2);
        assert!(labels.iter().all(|label| label.len() <= MAX_LABEL && is_of_record(label)), "{labels:?}");
        assert_eq!(read(number, &labels), Some(record));
        assert_eq!(read(number, &labels[..1]), None, "half a record");
        assert_eq!(read(number, &labels[1..]), None, "the other half");
        assert_eq!(read(number.next(), &labels), None, "another version's");
        assert_eq!(write(number, &texts(&[("a", &"b".repeat(500))])), None);
    }

    #[test]
    fn a_version_without_a_record_has_a_label() {
        let labels = write(VersionNumber::FIRST, &BTreeMap::new()).unwrap();
        assert_eq!(labels, ["hyperfleet-record-1-1.1-"]);
        assert_eq!(read(VersionNumber::FIRST, &labels), Some(BTreeMap::new()));
    }
}
