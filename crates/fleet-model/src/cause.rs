//! Causes: the resources of a fleet for which an adapter's work is not done, grouped by what blocks it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::condition::known_time;
use crate::{Condition, Generation, Status};

/// Maximum number of examples of a cause.
const EXAMPLES: usize = 3;
/// Maximum number of groups that differ by their messages.
const MAX_BY_MESSAGE: usize = 200;

/// The resources for which the work of one adapter is not done, by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Causes {
    /// The type of the condition that repeats what the adapter reports.
    pub condition: String,
    /// Number of resources.
    pub total: u64,
    /// Number of those whose condition is true at their generation.
    pub done: u64,
    /// The causes: that of most resources first, then the oldest.
    pub items: Vec<Cause>,
}

/// Resources with one reason and with messages that differ only in names and numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The status of the condition; absent where the adapter has not reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// The reason of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// True if the condition is of an older generation.
    #[serde(default)]
    pub outdated: bool,
    /// True if the deletion of the resources was requested.
    #[serde(default)]
    pub terminating: bool,
    /// The message of the first example; absent where there are too many different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Number of resources.
    pub count: u64,
    /// The time since which the first of the resources has the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_time: Option<Timestamp>,
    /// The time of the adapter's last report about any of the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report_time: Option<Timestamp>,
    /// Some of the resources.
    #[serde(default)]
    pub examples: Vec<Example>,
}

/// One of the resources of a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The id.
    pub id: String,
    /// The name.
    #[serde(default)]
    pub name: String,
}

/// A resource with the condition that repeats what the adapter reports.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The id.
    pub id: &'a str,
    /// The name.
    pub name: &'a str,
    /// The generation.
    pub generation: Generation,
    /// The time of the last change of what is desired.
    pub updated_time: Timestamp,
    /// True if the deletion was requested.
    pub is_terminating: bool,
    /// The condition; `None` where the adapter has not reported.
    pub condition: Option<&'a Condition>,
}

/// Groups resources by cause.
#[derive(Debug, Default)]
pub struct Grouping {
    total: u64,
    done: u64,
    groups: BTreeMap<Key, Cause>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    status: Option<Status>,
    reason: Option<String>,
    is_outdated: bool,
    is_terminating: bool,
    /// The message without names and numbers.
    shape: Option<String>,
}

// === impl Grouping ===

impl Grouping {
    /// Counts resources that are known to be done.
    pub fn count_done(&mut self, count: u64) {
        self.total += count;
        self.done += count;
    }

    /// Adds a resource.
    pub fn add(&mut self, observed: &Observed<'_>) {
        let Observed { id, name, condition, .. } = *observed;
        if observed.is_done() {
            return self.count_done(1);
        }
        self.total += 1;
        let message = condition.and_then(|condition| condition.message.as_deref());
        let mut key = Key {
            status: condition.map(|condition| condition.status),
            reason: condition.and_then(|condition| condition.reason.clone()),
            is_outdated: observed.is_outdated(),
            is_terminating: observed.is_terminating,
            shape: message.map(|message| shape(message, &[id, name])),
        };
        let is_new = !self.groups.contains_key(&key);
        if is_new && self.groups.len() >= MAX_BY_MESSAGE {
            key.shape = None;
        }
        let cause = self.groups.entry(key).or_insert_with_key(|key| Cause {
            status: key.status,
            reason: key.reason.clone(),
            outdated: key.is_outdated,
            terminating: key.is_terminating,
            message: key.shape.as_ref().and(message).map(str::to_owned),
            count: 0,
            since_time: None,
            last_report_time: None,
            examples: Vec::new(),
        });
        cause.count += 1;
        cause.since_time = earliest(cause.since_time, known_time(observed.since()));
        let reported = condition.and_then(|condition| known_time(condition.last_updated_time));
        cause.last_report_time = cause.last_report_time.max(reported);
        if cause.examples.len() < EXAMPLES {
            cause.examples.push(Example { id: id.to_owned(), name: name.to_owned() });
        }
    }

    /// Returns the causes by this condition, that of most resources first.
    pub fn causes(self, condition: &str) -> Causes {
        let mut items: Vec<Cause> = self.groups.into_values().collect();
        items.sort_by_key(Cause::rank);
        Causes { condition: condition.to_owned(), total: self.total, done: self.done, items }
    }
}

// === impl Cause ===

impl Cause {
    /// The order of causes: that of most resources first, then the oldest.
    pub fn rank(&self) -> impl Ord + use<> {
        (std::cmp::Reverse(self.count), self.since_time)
    }

    /// Adds the resources of another cause.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.since_time = earliest(self.since_time, other.since_time);
        self.last_report_time = self.last_report_time.max(other.last_report_time);
        let missing = EXAMPLES.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(missing));
    }
}

// === impl Observed ===

impl Observed<'_> {
    /// True if the condition is true at the resource's generation.
    pub fn is_done(&self) -> bool {
        self.condition.is_some_and(|condition| condition.status == Status::True) && !self.is_outdated()
    }

    fn is_outdated(&self) -> bool {
        self.condition.is_some_and(|condition| condition.observed_generation < self.generation)
    }

    /// The time since which the resource is as it is.
    fn since(&self) -> Timestamp {
        let current = self.condition.filter(|_| !self.is_outdated());
        let of_condition = current.and_then(|condition| {
            known_time(condition.reason_since_time).or_else(|| known_time(condition.last_transition_time))
        });
        of_condition.unwrap_or(self.updated_time)
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// Returns a message with the same text for all names, numbers and quoted values: the resource's own names, words with a digit,
/// and what stands between double quotes.
fn shape(message: &str, own: &[&str]) -> String {
    let is_part = |char: char| char.is_alphanumeric() || "-_.".contains(char);
    let mut text = String::with_capacity(message.len());
    for (index, part) in message.split('"').enumerate() {
        if index % 2 == 1 {
            text.push_str("\"N\"");
            continue;
        }
        let mut rest = part;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|char| is_part(char) != is_part(first)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            let varies = is_part(first) && (own.contains(&word) || word.contains(|char: char| char.is_ascii_digit()));
            text.push_str(if varies { "N" } else { word });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn condition(status: Status, generation: i64, reason: &str, message: &str, since: i64) -> Condition {
        Condition {
            kind: "PullsecretSuccessful".to_owned(),
            status,
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            observed_generation: generation.try_into().unwrap(),
            created_time: at(1),
            last_updated_time: at(since + 100),
            last_transition_time: at(1),
            reason_since_time: at(since),
        }
    }

    fn add(grouping: &mut Grouping, id: &str, condition: Option<&Condition>) {
        let observed = Observed {
            id,
            name: "prod",
            generation: 2_i64.try_into().unwrap(),
            updated_time: at(7),
            is_terminating: false,
            condition,
        };
        grouping.add(&observed);
    }

    #[rstest]
    #[case("waiting for dns: not reported yet at generation 12", "waiting for dns: not reported yet at generation N")]
    #[case("secret hyperfleet-cls-1-pull-secret of project p", "secret N of project p")]
    #[case("cluster prod is waiting, prod-like is not", "cluster N is waiting, prod-like is not")]
    #[case(r#"spec.provider is "aws", must be "gcp""#, r#"spec.provider is "N", must be "N""#)]
    #[case("an open \"quote", "an open \"N\"")]
    #[case("é ünï", "é ünï")]
    fn a_shape_has_no_names_and_no_numbers(#[case] message: &str, #[case] expected: &str) {
        assert_eq!(shape(message, &["cls", "prod"]), expected);
    }

    #[test]
    fn resources_of_one_cause_are_one_group() {
        let mut grouping = Grouping::default();
        grouping.count_done(10);
        add(&mut grouping, "done", Some(&condition(Status::True, 2, "SecretStored", "stored", 9)));
        for (id, since) in [("c1", 50), ("c2", 40), ("c3", 60), ("c4", 70)] {
            let message = format!("no permission for {id}");
            add(&mut grouping, id, Some(&condition(Status::False, 2, "PermissionDenied", &message, since)));
        }
        add(&mut grouping, "d1", Some(&condition(Status::False, 2, "PermissionDenied", "another place", 30)));
        add(&mut grouping, "e1", Some(&condition(Status::True, 1, "SecretStored", "stored", 9)));
        add(&mut grouping, "f1", None);
        let causes = grouping.causes("PullsecretSuccessful");
        assert_eq!((causes.total, causes.done), (18, 11));
        let rows: Vec<_> = causes
            .items
            .iter()
            .map(|cause| (cause.count, cause.reason.as_deref(), cause.outdated, cause.since_time.unwrap().as_second()))
            .collect();
        let denied = Some("PermissionDenied");
        // What is outdated or not reported at all is so since the last change.
        let expected =
            [(4, denied, false, 40), (1, None, false, 7), (1, Some("SecretStored"), true, 7), (1, denied, false, 30)];
        assert_eq!(rows, expected);
        let first = &causes.items[0];
        assert_eq!(first.message.as_deref(), Some("no permission for c1"));
        assert_eq!(first.examples.iter().map(|example| &*example.id).collect::<Vec<_>>(), ["c1", "c2", "c3"]);
        assert_eq!(first.last_report_time, Some(at(170)));
    }

    #[test]
    fn messages_without_end_are_one_group_of_their_reason() {
        let mut grouping = Grouping::default();
        let word = |mut number: usize| {
            let mut word = String::new();
            while word.is_empty() || number > 0 {
                word.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
                number /= 26;
            }
            word
        };
        for number in 0..2 * MAX_BY_MESSAGE {
            add(&mut grouping, "c", Some(&condition(Status::False, 2, "Odd", &word(number), 1)));
        }
        let causes = grouping.causes("X");
        assert_eq!(causes.items.len(), MAX_BY_MESSAGE + 1);
        assert_eq!((causes.items[0].count, &causes.items[0].message), (MAX_BY_MESSAGE as u64, &None));
    }
}
