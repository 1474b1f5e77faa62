//! Labels and annotations as tags.
//!
//! A label is a tag as it is; its key has no colon. The annotations are one text in the tags `hyperfleet:annotations`,
//! `hyperfleet:annotations-2` and so on; `hyperfleet:revision` counts the changes. So nothing is taken for one of AWS's own tags,
//! which begin with `aws:`. Other tags belong to people and are kept.

use std::collections::BTreeMap;

use aws_sdk_secretsmanager::types::Tag;

use super::text;
use crate::contract::Metadata;
use crate::encoding::{self, piece_key};
use crate::label;

/// Tags: values by key.
pub(super) type Tags = BTreeMap<String, String>;

/// The first tag of the annotations.
const ANNOTATIONS: &str = "hyperfleet:annotations";
/// The tag that counts the changes, so that each changes the etag.
const REVISION: &str = "hyperfleet:revision";
/// The longest value of a tag.
const MAX_VALUE: usize = 256;
/// Number of tags that AWS allows a secret.
const MAX_TAGS: usize = 50;

/// Returns labels, annotations and etag of a secret.
pub(super) fn read(arn: &str, tags: Tags) -> Metadata {
    let etag = etag(arn, &tags);
    let annotations = joined(&tags);
    // Whatever people have made of them: the caller writes them anew.
    let annotations = text::decode(&annotations).unwrap_or_default();
    let labels = tags.into_iter().filter(|(key, _)| label::is_key(key));
    Metadata { labels: labels.collect(), annotations, etag }
}

/// Returns the parts of the annotations as one text. The first part that is not full is the last one: what follows is of an
/// earlier, longer text, whose removal has not come to an end.
fn joined(tags: &Tags) -> String {
    let mut joined = String::new();
    for value in (1..).map_while(|part| tags.get(&piece_key(ANNOTATIONS, part))) {
        joined.push_str(value);
        if value.len() < MAX_VALUE {
            break;
        }
    }
    joined
}

/// Returns the tags of a secret with these labels and annotations. The tags of `former` that belong to people or to AWS are
/// kept. Fails with the reason why they cannot be written.
pub(super) fn write(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    former: &Tags,
) -> Result<Tags, String> {
    if let Some(key) = labels.keys().find(|key| !label::is_key(key)) {
        return Err(format!("the label `{key}` cannot be kept here"));
    }
    let kept = former.iter().filter(|(key, _)| !label::is_key(key) && !is_ours(key));
    let mut tags: Tags = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    tags.extend(labels.iter().map(|(key, value)| (key.clone(), value.clone())));
    let encoded = text::encode(annotations);
    tags.extend(encoding::pieces(ANNOTATIONS, &encoded, MAX_VALUE));
    tags.insert(REVISION.to_owned(), (revision(former) + 1).to_string());
    if tags.len() > MAX_TAGS {
        return Err(format!("labels and annotations would be {} tags; {MAX_TAGS} are allowed", tags.len()));
    }
    Ok(tags)
}

/// Returns the etag of a secret: a digest of its name, which has a random end, and of all its tags.
pub(super) fn etag(arn: &str, tags: &Tags) -> String {
    let digest = encoding::digest(&serde_json::to_vec(&(arn, tags)).unwrap_or_default());
    format!("{}/{digest}", revision(tags))
}

/// Returns tags as a request has them.
pub(super) fn request_tags(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

/// Returns true if the tag is one of ours, and not a label.
pub(super) fn is_ours(key: &str) -> bool {
    let part = key.strip_prefix(ANNOTATIONS);
    key == REVISION || part.is_some_and(|part| part.is_empty() || part.starts_with('-'))
}

fn revision(tags: &Tags) -> u64 {
    tags.get(REVISION).and_then(|revision| revision.parse::<u32>().ok()).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf";

    fn texts(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_part_of_a_longer_text_that_is_left_is_not_read() {
        let long = texts(&[("a", &"1".repeat(300)), ("b", "2")]);
        let longer = write(&Tags::new(), &long, &Tags::new()).unwrap();
        assert!(longer.contains_key("hyperfleet:annotations-2"));
        let short = texts(&[("a", "3")]);
        // As if the run ended between the writing of tags and the removal of others.
        let mut mixed = longer.clone();
        mixed.extend(write(&Tags::new(), &short, &longer).unwrap());
        assert!(mixed.contains_key("hyperfleet:annotations-2"));
        assert_eq!(read(ARN, mixed).annotations, short);
        assert_eq!(read(ARN, longer).annotations, long);
    }

    #[test]
    fn what_is_written_is_read_and_has_characters_that_tags_may_have() {
        let labels = texts(&[("team", "größe"), ("empty", "")]);
        let annotations = texts(&[("hyperfleet.io", "Größe: 1/2\n\"x\""), ("long", &"é".repeat(200)), ("", "")]);
        let tags = write(&labels, &annotations, &Tags::new()).unwrap();
        let fits = |value: &String| {
            value.chars().count() <= MAX_VALUE
                && value.chars().all(|char| char.is_alphanumeric() || " +-=._:/@".contains(char))
        };
        assert!(tags.values().all(fits), "{tags:?}");
        assert!(
            tags.keys().all(|key| !key.starts_with("aws:")) && tags.contains_key("hyperfleet:annotations-2"),
            "{tags:?}"
        );
        let read = read(ARN, tags);
        assert_eq!((read.labels, read.annotations), (labels, annotations));
    }

    #[test]
    fn tags_of_people_and_of_aws_are_kept_and_former_parts_are_not() {
        let former = texts(&[
            ("Owner", "Fleet team"),
            ("aws:cloudformation:stack-name", "x"),
            ("hyperfleet:annotations", "a@b"),
            ("hyperfleet:annotations-7", "x"),
            ("hyperfleet:revision", "4"),
            ("old", "1"),
        ]);
        let tags = write(&texts(&[("new", "1")]), &BTreeMap::new(), &former).unwrap();
        let expected = [
            ("Owner", "Fleet team"),
            ("aws:cloudformation:stack-name", "x"),
            ("hyperfleet:revision", "5"),
            ("new", "1"),
        ];
        assert_eq!(tags, texts(&expected));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let labels = |count: usize| -> Tags { (0..count).map(|label| (format!("l{label}"), String::new())).collect() };
        assert!(write(&labels(49), &BTreeMap::new(), &Tags::new()).is_ok());
        assert!(write(&labels(50), &BTreeMap::new(), &Tags::new()).unwrap_err().contains("51 tags"));
        assert!(write(&texts(&[("aws:x", "")]), &BTreeMap::new(), &Tags::new()).unwrap_err().contains("`aws:x`"));
    }

    #[test]
    fn an_etag_follows_each_change_and_each_creation() {
        let same = |former: &Tags| write(&texts(&[("a", "1")]), &BTreeMap::new(), former).unwrap();
        let first = same(&Tags::new());
        assert_ne!(etag(ARN, &first), etag(ARN, &same(&first)), "an update that changes nothing");
        assert_ne!(etag(ARN, &first), etag(&ARN.replace("AbCdEf", "GhIjKl"), &first), "created again");
        assert_eq!(etag(ARN, &first), etag(ARN, &first.clone()));
    }
}
