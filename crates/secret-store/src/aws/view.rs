//! A secret without its content, as one request shows it: its tags, and the labels of its versions.

use std::collections::BTreeMap;

use aws_sdk_secretsmanager::operation::describe_secret::DescribeSecretOutput;
use aws_sdk_secretsmanager::types::Tag;
use secrecy::SecretSlice;

use super::labels::{self, CURRENT};
use super::tags::{self, Tags};
use crate::VersionNumber;
use crate::contract::{Metadata, VersionState, VersionSummary};

/// A secret without its content.
pub(super) struct View {
    pub(super) arn: String,
    pub(super) tags: Tags,
    /// Regions that have a replica.
    pub(super) replicas: Vec<String>,
    /// It cannot be used until it is restored.
    pub(super) is_scheduled_for_deletion: bool,
    pub(super) versions: Versions,
}

/// Versions by id, with their labels. A version without labels is on its way out, and need not be among them.
#[derive(Default)]
pub(super) struct Versions(pub(super) BTreeMap<String, Vec<String>>);

/// A version that can be read.
pub(super) struct Found {
    pub(super) content: SecretSlice<u8>,
    pub(super) labels: Vec<String>,
}

/// The version that readers get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Current<'a> {
    /// There is none yet.
    Nothing,
    /// One that was added with a number.
    Numbered(VersionNumber),
    /// One that something else has added, by its id. It counts as the version after the newest numbered one.
    Unnumbered(&'a str),
}

// === impl View ===

impl View {
    pub(super) fn of(described: DescribeSecretOutput) -> Self {
        let replicas = described.replication_status.unwrap_or_default();
        Self {
            arn: described.arn.unwrap_or_default(),
            tags: tags_of(described.tags.unwrap_or_default()),
            replicas: replicas.into_iter().filter_map(|replica| replica.region).collect(),
            is_scheduled_for_deletion: described.deleted_date.is_some(),
            versions: Versions(described.version_ids_to_stages.unwrap_or_default().into_iter().collect()),
        }
    }

    pub(super) fn etag(&self) -> String {
        tags::etag(&self.arn, &self.tags)
    }

    pub(super) fn into_metadata(self) -> Metadata {
        tags::read(&self.arn, self.tags)
    }
}

/// Returns tags by their keys.
pub(super) fn tags_of(tags: Vec<Tag>) -> Tags {
    tags.into_iter().filter_map(|tag| Some((tag.key?, tag.value.unwrap_or_default()))).collect()
}

// === impl Versions ===

impl Versions {
    pub(super) fn current(&self) -> Current<'_> {
        let mut with_label = self.0.iter().filter(|(_, labels)| labels.iter().any(|label| label == CURRENT));
        match with_label.next() {
            None => Current::Nothing,
            Some((id, _)) => labels::number(id).map_or(Current::Unnumbered(id), Current::Numbered),
        }
    }

    pub(super) fn current_id(&self) -> Option<String> {
        match self.current() {
            Current::Nothing => None,
            Current::Numbered(number) => Some(labels::id(number)),
            Current::Unnumbered(id) => Some(id.to_owned()),
        }
    }

    pub(super) fn newest(&self) -> Option<VersionNumber> {
        self.0.keys().filter_map(|id| labels::number(id)).max()
    }

    /// Returns the labels of a version; none if it has none, or is not known here.
    pub(super) fn labels(&self, number: VersionNumber) -> &[String] {
        self.0.get(&labels::id(number)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the numbers of the versions that have labels of a record, oldest first.
    pub(super) fn kept(&self) -> Vec<VersionNumber> {
        let has_record = |labels: &&Vec<String>| labels.iter().any(|label| labels::is_of_record(label));
        let with_record = self.0.iter().filter(|(_, labels)| has_record(labels));
        with_record.filter_map(|(id, _)| labels::number(id)).collect()
    }

    pub(super) fn count_labels(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Returns the state of a version that has these labels. One above the current version was never read back by its writer,
    /// or readers were led back from it: it is not readable.
    pub(super) fn state(&self, number: VersionNumber, labels: &[String]) -> VersionState {
        if labels.is_empty() {
            return VersionState::Destroyed;
        }
        match self.current() {
            Current::Numbered(current) if number > current => VersionState::Disabled,
            _ => VersionState::Live,
        }
    }

    /// Returns the versions, newest first.
    pub(super) fn summaries(&self) -> Vec<VersionSummary> {
        let numbered = self.0.iter().filter_map(|(id, labels)| Some((labels::number(id)?, labels)));
        let mut summaries: Vec<_> =
            numbered.map(|(number, labels)| VersionSummary { number, state: self.state(number, labels) }).collect();
        if let Current::Unnumbered(_) = self.current() {
            let number = self.newest().map_or(VersionNumber::FIRST, VersionNumber::next);
            summaries.push(VersionSummary { number, state: VersionState::Live });
        }
        summaries.sort_unstable_by_key(|version| std::cmp::Reverse(version.number));
        summaries
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn id(number: u64) -> String {
        labels::id(VersionNumber::new(number).unwrap())
    }

    /// Versions as `NUMBER=LABEL,… ID=LABEL,…`.
    fn versions(text: &str) -> Versions {
        let version = |text: &str| {
            let (name, labels) = text.split_once('=').unwrap();
            let id = name.parse().map_or_else(|_error| name.to_owned(), id);
            (id, labels.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect())
        };
        Versions(text.split_whitespace().map(version).collect())
    }

    #[rstest]
    #[case::none("", "")]
    #[case::first("1=AWSCURRENT,r", "1:Live")]
    #[case::not_read_back("1=AWSCURRENT,r 2=r2", "2:Disabled 1:Live")]
    #[case::never_read_back("1=AWSPREVIOUS,r 2=r2 3=AWSCURRENT", "3:Live 2:Live 1:Live")]
    #[case::on_their_way_out("1= 2=AWSCURRENT", "2:Live 1:Destroyed")]
    #[case::of_people("1=AWSPREVIOUS d2f9=AWSCURRENT", "2:Live 1:Live")]
    #[case::of_people_only("d2f9=AWSCURRENT e2f9=AWSPREVIOUS", "1:Live")]
    #[case::of_people_before("d2f9=AWSPREVIOUS 2=AWSCURRENT", "2:Live")]
    fn a_version_is_as_its_labels_say(#[case] list: &str, #[case] expected: &str) {
        let summaries = versions(list).summaries();
        let shown: Vec<_> = summaries.iter().map(|version| format!("{}:{:?}", version.number, version.state)).collect();
        assert_eq!(shown.join(" "), expected);
    }
}
