//! The versions of a secret as a list shows them, and what they mean.
//!
//! Azure gives versions no numbers and no order within a second, and adds without a condition. So the versions of one number are
//! compared: the **winner** is the one that was created first, by id within a second; others of that number lost and count for nothing,
//! but for copies of a winner. Readers get the **top**, the version that was created last.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::tags::{self, Details, Tags};
use crate::VersionNumber;
use crate::contract::{VersionState, VersionSummary};

/// Seconds between the end of the second in which a version was created and a list that shows all others of that second: a list is made
/// before the time that it states, and the clocks of the servers differ.
const MARGIN: i64 = 1;

/// A version in a list.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: String,
    /// In Unix seconds.
    pub(super) created: i64,
    pub(super) is_enabled: bool,
    pub(super) tags: Tags,
}

/// The versions of a secret; there is one at least.
#[derive(Debug)]
pub(super) struct View {
    /// By creation, then by id.
    entries: Vec<Entry>,
    /// Id of the version that readers get; `None` if they get none of which it is known.
    top: Option<String>,
    /// The server's time of the list, in Unix seconds.
    time: i64,
}

/// The version that a read without an id finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Current {
    /// This one.
    Version(String),
    /// One that is disabled.
    Disabled,
    /// None.
    Absent,
}

// === impl Entry ===

impl Entry {
    fn number(&self) -> Option<u64> {
        tags::number(&self.tags)
    }

    pub(super) fn is_destroyed(&self) -> bool {
        tags::is_destroyed(&self.tags)
    }

    fn is_copy_of(&self, id: &str) -> bool {
        tags::copied(&self.tags) == Some(id)
    }

    fn is_winner_or_copy(&self, winner: &Self) -> bool {
        self.id == winner.id || self.is_copy_of(&winner.id)
    }
}

// === impl View ===

impl View {
    /// Returns `None` if there is no version. Readers get the newest one; if several are, [`View::tell_top`] must be asked.
    pub(super) fn of(mut entries: Vec<Entry>, time: i64) -> Option<Self> {
        entries.sort_unstable_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        let top = Some(entries.last()?.id.clone());
        Some(Self { entries, top, time })
    }

    /// Returns true if no version that this list does not show can be older than one that was created at this time.
    pub(super) fn is_decided(&self, created: i64) -> bool {
        self.time > created.saturating_add(MARGIN)
    }

    /// Returns true if the list does not say which of the numbered versions readers get.
    pub(super) fn is_tied(&self) -> bool {
        self.highest().is_some_and(|number| number > 0) && self.newest().nth(1).is_some()
    }

    /// Takes the version that a read without an id has found.
    pub(super) fn tell_top(&mut self, current: Current) {
        let disabled: Vec<_> = self.newest().filter(|entry| !entry.is_enabled).map(|entry| entry.id.clone()).collect();
        self.top = match (current, <[String; 1]>::try_from(disabled)) {
            (Current::Version(id), _) => Some(id),
            (Current::Disabled, Ok([only])) => Some(only),
            (Current::Disabled | Current::Absent, _) => None,
        };
    }

    /// Returns the versions of the newest second.
    fn newest(&self) -> impl Iterator<Item = &Entry> {
        let newest = self.entries.last().map(|entry| entry.created);
        self.entries.iter().rev().take_while(move |entry| Some(entry.created) == newest)
    }

    pub(super) fn top(&self) -> Option<&Entry> {
        self.entry(self.top.as_deref()?)
    }

    pub(super) fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// Returns all versions of a number: winner, copies, losers.
    pub(super) fn of_number(&self, number: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.number() == Some(number))
    }

    fn originals(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let originals = self.entries.iter().filter(|entry| tags::copied(&entry.tags).is_none());
        originals.filter_map(|entry| Some((entry.number()?, entry)))
    }

    /// Returns the highest number, 0 for a placeholder; `None` if only people have added versions.
    pub(super) fn highest(&self) -> Option<u64> {
        self.originals().map(|(number, _)| number).max()
    }

    pub(super) fn winner(&self, number: u64) -> Option<&Entry> {
        self.originals().find(|(found, _)| *found == number).map(|(_, entry)| entry)
    }

    /// Returns the winner of the highest number.
    pub(super) fn leader(&self) -> Option<&Entry> {
        self.winner(self.highest()?)
    }

    /// Returns true if readers get the winner of the highest number.
    pub(super) fn is_led(&self) -> bool {
        self.top().zip(self.leader()).is_some_and(|(top, leader)| top.is_winner_or_copy(leader))
    }

    /// Returns the version whose tags have the secret's metadata: the newest of the highest number's winner and its copies, or
    /// the newest of all if people have added them.
    pub(super) fn carrier(&self) -> Option<&Entry> {
        let Some(leader) = self.leader() else { return self.entries.last() };
        let mut carriers = self.entries.iter().filter(|entry| entry.is_winner_or_copy(leader));
        let newest = carriers.next_back();
        // Of those that were created within a second, the one that lists of secrets show.
        self.top()
            .filter(|top| newest.is_some_and(|newest| newest.created == top.created) && self.is_led_by(top))
            .or(newest)
    }

    fn is_led_by(&self, top: &Entry) -> bool {
        self.leader().is_some_and(|leader| top.is_winner_or_copy(leader))
    }

    pub(super) fn details(&self) -> Details {
        self.carrier().map(|carrier| Details::read(&carrier.tags)).unwrap_or_default()
    }

    /// Returns the state of a number; `None` if no version has it.
    pub(super) fn state(&self, number: VersionNumber) -> Option<VersionState> {
        let winner = self.winner(number.get())?;
        let is_passed_over = self.highest() == Some(number.get()) && !self.is_led();
        Some(match winner {
            winner if winner.is_destroyed() => VersionState::Destroyed,
            // Its writer has not seen yet that it won, or something else was added on top.
            winner if !winner.is_enabled || is_passed_over => VersionState::Disabled,
            _ => VersionState::Live,
        })
    }

    /// Returns the versions, newest first.
    pub(super) fn summaries(&self) -> Vec<VersionSummary> {
        let numbers: BTreeSet<_> = self.originals().map(|(number, _)| Reverse(number)).collect();
        let numbers = numbers.into_iter().filter_map(|Reverse(number)| VersionNumber::new(number));
        numbers.filter_map(|number| Some(VersionSummary { number, state: self.state(number)? })).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// A version as `ID@SECOND=NUMBER[,OPTION…]`; a number of `-` is none.
    fn entry(text: &str) -> Entry {
        let (head, rest) = text.split_once('=').unwrap();
        let (id, created) = head.split_once('@').unwrap();
        let mut entry =
            Entry { id: id.to_owned(), created: created.parse().unwrap(), is_enabled: true, tags: Tags::new() };
        let mut options = rest.split(',');
        let number = options.next().unwrap();
        if number != "-" {
            entry.tags.insert("hyperfleet-version".to_owned(), number.to_owned());
        }
        for option in options {
            match option.split_once(':') {
                Some(("copy", of)) => drop(entry.tags.insert("hyperfleet-copy-of".to_owned(), of.to_owned())),
                _ if option == "destroyed" => entry.tags = tags::of_destroyed(&entry.tags),
                _ => entry.is_enabled = false,
            }
        }
        entry
    }

    fn view(text: &str) -> View {
        View::of(text.split_whitespace().map(entry).collect(), 100).unwrap()
    }

    #[rstest]
    #[case::placeholder("a@1=0,off", "")]
    #[case::first("a@1=0,off b@2=1", "1:Live")]
    #[case::of_two_the_first_wins("a@1=0,off z@2=1 b@3=1,off", "1:Disabled")]
    #[case::a_copy_leads("a@1=0,off z@2=1 b@3=1,off c@4=1,copy:z", "1:Live")]
    #[case::a_copy_of_another_does_not("a@1=0,off z@2=1 b@3=1 c@4=1,copy:b", "1:Disabled")]
    #[case::a_late_one_of_a_former_number("a@1=0,off b@2=1 c@3=2 d@4=1", "2:Disabled 1:Live")]
    #[case::of_people("a@1=0,off b@2=1 d@4=-", "1:Disabled")]
    #[case::of_people_below("d@1=- b@2=1", "1:Live")]
    #[case::destroyed("a@1=0,off b@2=1,off,destroyed c@3=2", "2:Live 1:Destroyed")]
    #[case::disabled("a@1=0,off b@2=1 c@3=2,off", "2:Disabled 1:Live")]
    fn a_version_is_as_its_tags_say(#[case] list: &str, #[case] expected: &str) {
        let summaries = view(list).summaries();
        let shown: Vec<_> = summaries.iter().map(|version| format!("{}:{:?}", version.number, version.state)).collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[rstest]
    #[case::stated(Current::Version("b".to_owned()), true)]
    #[case::another_is_stated(Current::Version("c".to_owned()), false)]
    #[case::the_only_disabled_one(Current::Disabled, false)]
    #[case::lagging(Current::Absent, false)]
    fn within_a_second_a_read_tells_the_top(#[case] current: Current, #[case] is_led: bool) {
        let mut view = view("a@1=0,off b@2=1 c@2=1,off");
        assert!(view.is_tied());
        view.tell_top(current);
        assert_eq!(view.is_led(), is_led);
    }

    #[test]
    fn a_number_is_decided_a_second_after_the_one_of_its_creation() {
        let view = view("a@1=0,off b@99=1");
        assert_eq!([97, 98, 99, 100].map(|created| view.is_decided(created)), [true, true, false, false]);
    }

    #[rstest]
    #[case("a@1=0,off", "a")]
    #[case("b@1=0,off a@2=0,off", "b")]
    #[case("a@1=0,off b@2=1 c@3=1,copy:b d@4=1", "c")]
    #[case("d@1=-", "d")]
    fn the_metadata_is_with_the_newest_of_the_highest_number(#[case] list: &str, #[case] expected: &str) {
        assert_eq!(view(list).carrier().unwrap().id, expected);
    }
}
