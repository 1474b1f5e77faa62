//! Tables of observed and published states, and the decisions about them.

use rstest::rstest;

use super::*;

/// A number without jitter, whose resync slots are at whole intervals.
const PLAIN: u64 = 0;
const START: Moment = Moment(1_800_000 * 1_000);
const POLICY: Policy = Policy {
    min_interval: Duration::from_secs(10),
    max_interval: Duration::from_mins(1),
    resync: Duration::from_mins(30),
    is_conditional: false,
};
const CONDITIONAL: Policy = Policy { is_conditional: true, ..POLICY };
const DNS: u64 = 1;
const VALIDATION: u64 = 2;

fn state(generation: u32, available: u64) -> State {
    State { generation: generation.into(), available, ..State::default() }
}

fn deleting(generation: u32) -> State {
    State { generation: generation.into(), is_deleting: true, ..State::default() }
}

fn facts(state: State, reconciled: Option<bool>) -> Facts {
    Facts { state, reconciled, changed: Some(START), is_inherited: true }
}

fn seconds(seconds: u64) -> Moment {
    START.after(Duration::from_secs(seconds))
}

fn published(states: &[State]) -> Option<Published> {
    states.iter().fold(None, |last: Option<Published>, state| Some(Published::after(last.as_ref(), *state, START)))
}

const OPEN: Option<bool> = Some(false);
const DONE: Option<bool> = Some(true);
const SILENT: Option<bool> = None;

#[rstest]
// A resource that is not reconciled is published at once.
#[case::created(state(1, 0), OPEN, 0, Reason::New)]
#[case::created_long_ago(state(3, DNS), OPEN, 9_000, Reason::New)]
#[case::deleting(deleting(2), OPEN, 0, Reason::DeletionRequested)]
// A reconciled one is not: a restart makes no burst.
#[case::done(state(1, DNS), DONE, 0, Reason::UpToDate)]
#[case::deleted_and_done(deleting(2), DONE, 0, Reason::UpToDate)]
// A kind without a `Reconciled` condition.
#[case::silent_and_fresh(state(1, 0), SILENT, 5, Reason::New)]
#[case::silent_and_old(state(1, 0), SILENT, 3_600, Reason::UpToDate)]
#[case::silent_old_and_deleting(deleting(2), SILENT, 3_600, Reason::DeletionRequested)]
fn without_a_published_state(
    #[case] state: State,
    #[case] reconciled: Option<bool>,
    #[case] age: u64,
    #[case] expect: Reason,
) {
    let decision = decide(&facts(state, reconciled), None, PLAIN, &POLICY, seconds(age));
    assert_eq!(decision.reason, expect);
    assert_eq!(decision.next.is_some(), expect == Reason::UpToDate);
}

/// The API's clock may be hours behind: after the first list, its times say nothing about a resource that was not published.
#[rstest]
#[case::silent(state(1, 0), SILENT, Reason::New)]
#[case::silent_and_deleting(deleting(2), SILENT, Reason::DeletionRequested)]
#[case::open(state(1, 0), OPEN, Reason::New)]
fn a_resource_that_appears_later_is_published_at_once(
    #[case] state: State,
    #[case] reconciled: Option<bool>,
    #[case] expect: Reason,
) {
    for behind in [0, 3_600, 86_400] {
        let facts = Facts { is_inherited: false, ..facts(state, reconciled) };
        assert_eq!(decide(&facts, None, PLAIN, &POLICY, seconds(behind)).reason, expect, "{behind} s behind");
    }
}

#[rstest]
// Every change is published at once, however recent the last event is.
#[case::generation(&[state(1, 0)], state(2, 0), OPEN, Reason::GenerationChanged)]
#[case::deletion(&[state(1, 0)], deleting(2), OPEN, Reason::DeletionRequested)]
#[case::one_becomes_available(&[state(1, 0)], state(1, DNS), OPEN, Reason::DependencyAvailable)]
#[case::another_one_does(&[state(1, 0), state(1, DNS)], state(1, DNS | VALIDATION), OPEN, Reason::DependencyAvailable)]
#[case::one_ceases(&[state(1, DNS)], state(1, 0), OPEN, Reason::DependencyUnavailable)]
#[case::one_for_another(&[state(1, DNS)], state(1, VALIDATION), OPEN, Reason::DependencyAvailable)]
#[case::the_last_one(&[state(1, DNS)], state(1, DNS | VALIDATION), DONE, Reason::DependencyAvailable)]
#[case::generation_and_reports(&[state(1, DNS)], state(2, 0), OPEN, Reason::GenerationChanged)]
#[case::made_anew(&[state(7, DNS)], state(1, 0), OPEN, Reason::New)]
#[case::made_anew_after_deletion(&[deleting(2)], state(1, 0), OPEN, Reason::New)]
// A state that alternates is a change once.
#[case::to_and_fro(&[state(1, 0), state(1, DNS)], state(1, 0), OPEN, Reason::BackOff)]
#[case::and_to_again(&[state(1, 0), state(1, DNS), state(1, 0)], state(1, DNS), OPEN, Reason::BackOff)]
#[case::to_and_fro_in_another_generation(&[state(1, DNS), state(2, 0)], state(2, DNS), OPEN, Reason::DependencyAvailable)]
// Without a change, the back-off or the resync interval applies.
#[case::no_change(&[state(1, 0)], state(1, 0), OPEN, Reason::BackOff)]
#[case::no_change_and_done(&[state(1, DNS)], state(1, DNS), DONE, Reason::UpToDate)]
#[case::no_change_and_silent(&[state(1, 0)], state(1, 0), SILENT, Reason::UpToDate)]
fn a_second_after_the_last_event(
    #[case] before: &[State],
    #[case] state: State,
    #[case] reconciled: Option<bool>,
    #[case] expect: Reason,
) {
    let last = published(before);
    let decision = decide(&facts(state, reconciled), last.as_ref(), PLAIN, &POLICY, seconds(1));
    assert_eq!(decision.reason, expect);
    assert_eq!(decision.next.is_some(), !expect.publishes());
}

#[rstest]
#[case::before_the_back_off_is_over(&[state(1, 0)], state(1, 0), OPEN, 9, Reason::BackOff)]
#[case::after_it(&[state(1, 0)], state(1, 0), OPEN, 10, Reason::RepublishDue)]
#[case::during_the_second_back_off(&[state(1, 0), state(1, 0)], state(1, 0), OPEN, 19, Reason::BackOff)]
#[case::after_the_second(&[state(1, 0), state(1, 0)], state(1, 0), OPEN, 20, Reason::RepublishDue)]
#[case::the_longest(&[state(1, 0); 9], state(1, 0), OPEN, 59, Reason::BackOff)]
#[case::after_the_longest(&[state(1, 0); 9], state(1, 0), OPEN, 60, Reason::RepublishDue)]
#[case::a_change_resets_it(&[state(1, 0), state(1, 0), state(1, DNS)], state(1, DNS), OPEN, 10, Reason::RepublishDue)]
#[case::to_and_fro(&[state(1, 0), state(1, DNS)], state(1, 0), OPEN, 10, Reason::DependencyUnavailable)]
#[case::before_the_resync(&[state(1, DNS)], state(1, DNS), DONE, 1_799, Reason::UpToDate)]
#[case::resync(&[state(1, DNS)], state(1, DNS), DONE, 1_800, Reason::ResyncDue)]
#[case::resync_without_condition(&[state(1, 0)], state(1, 0), SILENT, 1_800, Reason::ResyncDue)]
#[case::not_reconciled_any_more(&[state(1, DNS)], state(1, DNS), OPEN, 60, Reason::RepublishDue)]
fn later(
    #[case] before: &[State],
    #[case] state: State,
    #[case] reconciled: Option<bool>,
    #[case] after: u64,
    #[case] expect: Reason,
) {
    let last = published(before);
    assert_eq!(decide(&facts(state, reconciled), last.as_ref(), PLAIN, &POLICY, seconds(after)).reason, expect);
}

#[rstest]
#[case::not_met(State { met: 0, ..state(1, 0) }, None, Reason::PublishWhenNotMet)]
#[case::not_met_any_more(State { met: 0, ..state(1, 0) }, Some(State { met: 1, ..state(1, 0) }), Reason::PublishWhenNotMet)]
#[case::met(State { met: 1, ..state(1, 0) }, None, Reason::New)]
#[case::met_now(State { met: 3, ..state(1, DNS) }, Some(State { met: 1, ..state(1, 0) }), Reason::PublishWhenMet)]
#[case::deletion_passes(deleting(2), None, Reason::DeletionRequested)]
fn with_a_condition(#[case] observed: State, #[case] before: Option<State>, #[case] expect: Reason) {
    let last = before.map(|before| Published::after(None, before, START));
    assert_eq!(decide(&facts(observed, OPEN), last.as_ref(), PLAIN, &CONDITIONAL, seconds(3_600)).reason, expect);
}

#[test]
fn an_assumed_state_is_published_as_soon_as_it_is_not_reconciled() {
    let last = Published::assumed(state(1, DNS), START);
    let decided = |reconciled| decide(&facts(state(1, DNS), reconciled), Some(&last), PLAIN, &POLICY, seconds(1));
    assert_eq!(decided(OPEN).reason, Reason::RepublishDue);
    assert_eq!(decided(DONE), Decision { reason: Reason::UpToDate, next: Some(seconds(1_800)) });
}

#[test]
fn the_next_decision_is_when_the_result_changes() {
    let read = facts(state(1, 0), OPEN);
    let last = published(&[read.state]);
    for number in [PLAIN, 1 << 47, u64::MAX, resync_slot::number("cls-1")] {
        let next = decide(&read, last.as_ref(), number, &POLICY, seconds(1)).next.unwrap();
        let before = Moment(next.0 - 1);
        assert!(!decide(&read, last.as_ref(), number, &POLICY, before).publishes());
        assert!(decide(&read, last.as_ref(), number, &POLICY, next).publishes());
    }
}

#[test]
fn an_explanation_names_the_compared_states() {
    let names: Vec<Box<str>> = vec!["dns".into(), "validation".into()];
    let read = facts(state(2, DNS), OPEN);
    let last = published(&[state(1, DNS | VALIDATION)]);
    let now = seconds(4);
    let explained = decide(&read, last.as_ref(), PLAIN, &POLICY, now).explain(&read, last.as_ref(), &names, now);
    assert_eq!(
        explained,
        "GenerationChanged: generation 2, not reconciled; available at this generation: dns; last published 4 s ago: generation 1, \
         available dns, validation"
    );
    let fresh = decide(&read, None, PLAIN, &POLICY, now).explain(&read, None, &names, now);
    assert_eq!(fresh, "New: generation 2, not reconciled; available at this generation: dns; not published yet");
}
