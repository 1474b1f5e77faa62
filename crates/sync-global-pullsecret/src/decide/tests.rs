//! The state machine: as tables of changes, walked through completely, and in a simulated world.

mod world;

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;

use super::graph::{CONTENTS, initial_states, possible_events, walk};
use super::*;
use crate::content::ContentId;

const A: ContentId = CONTENTS[0];
const B: ContentId = CONTENTS[1];
const T: Timestamp = Timestamp::UNIX_EPOCH;

const RULES: Rules = Rules { restart: true, delays: Delays { failed_content: Duration::from_mins(10) } };

const CHANGE: Event = Event::Source(SourceState::Content(B));
const DONE: Event = Event::DiskDone(DiskResult::Succeeded);
const DISK_FAULT: Event = Event::DiskDone(DiskResult::Failed);
const DIFFERS: Event = Event::Compared(Comparison::Different);
const UP: Event = Event::Restarted(UnitResult::Succeeded);
const DOWN: Event = Event::Restarted(UnitResult::Failed);
const UNREACHABLE: Event = Event::Restarted(UnitResult::Unreachable);
const STAYS: Event = Event::Verified(UnitResult::Succeeded);
const DIES: Event = Event::Verified(UnitResult::Failed);
const LATER: Event = Event::TimerFired;

fn seconds(seconds: u64) -> Effect {
    Effect::Wait(Duration::from_secs(seconds))
}

/// Returns the effects after each event, without reports.
fn run(rules: Rules, journal: Journal, events: &[Event]) -> (State, Vec<Effect>) {
    let (mut state, mut all) = start(rules, journal, T);
    for event in events {
        let (next, effects) = step(state, *event, T);
        state = next;
        all.extend(effects);
    }
    (state, all.into_iter().filter(|effect| !matches!(effect, Effect::Report(_))).collect())
}

fn applied(content: ContentId) -> Journal {
    Journal { applied: Some(content), change: None, failed: None }
}

fn begun(stage: Stage) -> Journal {
    Journal { applied: Some(A), change: Some(Change { to: B, stage }), failed: None }
}

const COMPARE: Effect = Effect::Compare(B);
const PREPARE: Effect = Effect::Prepare(B);
const WRITE: Effect = Effect::Write(B);
const RESTART: Effect = Effect::Restart;
const VERIFY: Effect = Effect::Verify;
const COMMIT: Effect = Effect::Commit(B);

fn failed_times(times: u8) -> Effect {
    Effect::FinishRollback(Some(Failed { content: B, times }))
}

#[rstest]
#[case::a_good_change(
    &[CHANGE, DIFFERS, DONE, DONE, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, VERIFY, COMMIT], Reason::Applied)]
#[case::nothing_to_change(
    &[CHANGE, Event::Compared(Comparison::Equal), DONE],
    &[COMPARE, COMMIT], Reason::Applied)]
#[case::three_attempts_then_a_rollback(
    &[CHANGE, DIFFERS, DONE, DONE, DOWN, LATER, DOWN, LATER, DOWN, DONE, DONE, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART,
      Effect::MarkForRollback, Effect::RollBack, RESTART, VERIFY, failed_times(1), seconds(600)], Reason::ContentFailed)]
#[case::a_kubelet_that_flaps_counts_as_one_that_fails(
    &[CHANGE, DIFFERS, DONE, DONE, UP, DIES, LATER, UP, DIES, LATER, UP, DIES, DONE, DONE, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, VERIFY, seconds(1), RESTART, VERIFY, seconds(2), RESTART, VERIFY,
      Effect::MarkForRollback, Effect::RollBack, RESTART, VERIFY, failed_times(1), seconds(600)], Reason::ContentFailed)]
#[case::the_second_attempt_works(
    &[CHANGE, DIFFERS, DONE, DONE, DOWN, LATER, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, seconds(1), RESTART, VERIFY, COMMIT], Reason::Applied)]
#[case::without_systemd_there_are_three_attempts_and_the_file_is_put_back(
    &[CHANGE, DIFFERS, DONE, DONE, UNREACHABLE, LATER, UNREACHABLE, LATER, UNREACHABLE, DONE, DONE, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART, Effect::MarkForRollback, Effect::RollBack,
      failed_times(0), seconds(60)], Reason::SystemdUnreachable)]
#[case::systemd_is_there_again_at_the_third_attempt(
    &[CHANGE, DIFFERS, DONE, DONE, UNREACHABLE, LATER, UNREACHABLE, LATER, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART, VERIFY, COMMIT], Reason::Applied)]
#[case::a_kubelet_that_was_restarted_before_systemd_was_lost_is_restarted_with_the_previous_file(
    &[CHANGE, DIFFERS, DONE, DONE, DOWN, LATER, UNREACHABLE, LATER, UNREACHABLE, DONE, DONE, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(1), RESTART, Effect::MarkForRollback, Effect::RollBack,
      RESTART, VERIFY, failed_times(1), seconds(600)], Reason::ContentFailed)]
#[case::systemd_is_lost_while_the_kubelet_is_watched(
    &[CHANGE, DIFFERS, DONE, DONE, UP, Event::Verified(UnitResult::Unreachable), LATER, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, VERIFY, seconds(1), VERIFY, COMMIT], Reason::Applied)]
#[case::full_disk_before_the_write(
    &[CHANGE, DIFFERS, DISK_FAULT, LATER, DIFFERS, DONE, DONE, UP, STAYS, DONE],
    &[COMPARE, PREPARE, seconds(1), COMPARE, PREPARE, WRITE, RESTART, VERIFY, COMMIT], Reason::Applied)]
#[case::a_write_with_an_unknown_result(
    &[CHANGE, DIFFERS, DONE, DISK_FAULT, LATER, Event::Compared(Comparison::Equal), UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, seconds(1), COMPARE, RESTART, VERIFY, COMMIT], Reason::Applied)]
#[case::full_disk_at_the_record_restarts_nothing_again(
    &[CHANGE, DIFFERS, DONE, DONE, UP, STAYS, DISK_FAULT, LATER, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, VERIFY, COMMIT, seconds(1), COMMIT], Reason::Applied)]
#[case::a_rollback_is_retried_until_the_disk_accepts_it(
    &[CHANGE, DIFFERS, DONE, DONE, DOWN, LATER, DOWN, LATER, DOWN, DISK_FAULT, DISK_FAULT, LATER, DONE, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART,
      Effect::MarkForRollback, Effect::RollBack, seconds(1), Effect::RollBack, RESTART, VERIFY, failed_times(1), seconds(600)],
      Reason::ContentFailed)]
#[case::a_kubelet_that_fails_with_the_previous_file_too_is_retried_without_limit_and_the_content_held_back_briefly(
    &[CHANGE, DIFFERS, DONE, DONE, DOWN, LATER, DOWN, LATER, DOWN, DONE, DONE, DOWN, LATER, UP, DIES, LATER, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART, Effect::MarkForRollback, Effect::RollBack,
      RESTART, seconds(2), RESTART, VERIFY, seconds(4), RESTART, VERIFY, failed_times(0), seconds(60)], Reason::ContentFailed)]
#[case::the_file_is_changed_between_compare_and_write(
    &[CHANGE, DIFFERS, DONE, Event::DiskDone(DiskResult::FileChanged), DIFFERS, DONE, DONE, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, COMPARE, PREPARE, WRITE, RESTART, VERIFY, COMMIT], Reason::Applied)]
#[case::a_vanished_source_changes_nothing(
    &[CHANGE, DIFFERS, DONE, DONE, UP, STAYS, DONE, Event::Source(SourceState::Missing)],
    &[COMPARE, PREPARE, WRITE, RESTART, VERIFY, COMMIT], Reason::SourceMissing)]
#[case::an_invalid_source_changes_nothing(
    &[CHANGE, DIFFERS, DONE, DONE, UP, STAYS, DONE, Event::Source(SourceState::Invalid)],
    &[COMPARE, PREPARE, WRITE, RESTART, VERIFY, COMMIT], Reason::SourceInvalid)]
#[case::other_content_ends_the_wait_between_attempts(
    &[CHANGE, DIFFERS, DONE, DONE, DOWN, Event::Source(SourceState::Content(A)), DIFFERS, DONE, DONE, UP, STAYS, DONE],
    &[COMPARE, PREPARE, WRITE, RESTART, seconds(1), Effect::Compare(A), Effect::Prepare(A), Effect::Write(A), RESTART, VERIFY,
      Effect::Commit(A)], Reason::Applied)]
#[case::other_content_during_a_restart_comes_next(
    &[CHANGE, DIFFERS, DONE, DONE, Event::Source(SourceState::Content(A)), DOWN],
    &[COMPARE, PREPARE, WRITE, RESTART, Effect::Compare(A)], Reason::Restarting)]
fn changes(#[case] events: &[Event], #[case] expected: &[Effect], #[case] reason: Reason) {
    let (state, effects) = run(RULES, Journal::default(), events);
    assert_eq!(effects, expected);
    assert_eq!(state.reason().0, reason);
    assert_eq!(state.is_healthy(), reason == Reason::Applied);
}

#[rstest]
#[case::it_was_written(Stage::Apply, &[Event::Examined(FileVersion::After), UP, STAYS, DONE],
    &[Effect::Examine, RESTART, VERIFY, COMMIT])]
#[case::it_was_not_written(Stage::Apply, &[Event::Examined(FileVersion::Before), UP, STAYS, DONE],
    &[Effect::Examine, RESTART, VERIFY, Effect::FinishRollback(None)])]
#[case::it_was_marked_for_rollback(Stage::RollBack, &[DONE, UP, STAYS, DONE],
    &[Effect::RollBack, RESTART, VERIFY, failed_times(1)])]
#[case::another_program_has_changed_it(Stage::Apply, &[Event::Examined(FileVersion::Other), DONE, UP, STAYS, DONE],
    &[Effect::Examine, Effect::RollBack, RESTART, VERIFY, Effect::FinishRollback(None)])]
#[case::it_cannot_be_read(Stage::Apply, &[Event::Examined(FileVersion::Unreadable), LATER],
    &[Effect::Examine, seconds(1), Effect::Examine])]
#[case::it_was_written_and_fails(Stage::Apply,
    &[Event::Examined(FileVersion::After), DOWN, LATER, DOWN, LATER, DOWN, DONE, DONE, UP, STAYS, DONE],
    &[Effect::Examine, RESTART, seconds(1), RESTART, seconds(2), RESTART, Effect::MarkForRollback, Effect::RollBack, RESTART,
      VERIFY, failed_times(1)])]
#[case::a_change_waits_until_it_is_finished(Stage::Apply, &[Event::Source(SourceState::Content(A)), Event::Examined(FileVersion::After),
    UP, STAYS, DONE], &[Effect::Examine, RESTART, VERIFY, COMMIT, Effect::Compare(A)])]
fn an_unfinished_change_is_finished_or_undone(
    #[case] stage: Stage,
    #[case] events: &[Event],
    #[case] expected: &[Effect],
) {
    assert_eq!(run(RULES, begun(stage), events).1, expected);
}

#[test]
fn without_restarts_a_change_is_written_and_recorded() {
    let rules = Rules { restart: false, ..RULES };
    let events = [CHANGE, DIFFERS, DONE, DONE, DONE];
    let (state, effects) = run(rules, applied(A), &events);
    assert_eq!(effects, [COMPARE, PREPARE, WRITE, COMMIT]);
    assert!(state.is_healthy());
    assert_eq!(run(rules, begun(Stage::RollBack), &[DONE, DONE]).1, [Effect::RollBack, failed_times(1)]);
}

/// Failed content is recorded across processes, retried at growing intervals, and forgotten once other content is applied.
#[test]
fn content_that_failed_is_held_back() {
    let failed = Journal { applied: Some(A), change: None, failed: Some(Failed { content: B, times: 2 }) };
    let (state, effects) = run(RULES, failed, &[CHANGE]);
    assert_eq!((effects, state.reason().0), (vec![seconds(1200)], Reason::ContentFailed));
    let (_, effects) = run(RULES, failed, &[CHANGE, CHANGE, Event::FileChanged, LATER, DIFFERS]);
    assert_eq!(effects, [seconds(1200), COMPARE, PREPARE]);
    let other = Event::Source(SourceState::Content(A));
    let (state, effects) = run(RULES, failed, &[CHANGE, other, Event::Compared(Comparison::Equal), DONE, CHANGE]);
    assert_eq!(effects, [seconds(1200), Effect::Compare(A), Effect::Commit(A), COMPARE]);
    assert_eq!(state.journal().failed, None);
    assert_eq!(RULES.delays.after_rollback(12), Duration::from_hours(2));
}

/// Each repair costs a restart of the kubelet, so a program that keeps changing the file does not cause one each time.
#[test]
fn repairs_of_the_same_content_are_spaced() {
    let repaired = [Event::FileChanged, DIFFERS, DONE, DONE, UP, STAYS, DONE];
    let mut events = vec![CHANGE, Event::Compared(Comparison::Equal)];
    events.extend(repaired);
    events.extend([Event::FileChanged, DIFFERS, LATER, DIFFERS, DONE, DONE, UP, STAYS, DONE]);
    events.extend([Event::FileChanged, DIFFERS]);
    let (state, effects) = run(RULES, applied(B), &events);
    let waits: Vec<_> = effects.into_iter().filter(|effect| matches!(effect, Effect::Wait(_))).collect();
    assert_eq!(waits, [seconds(30), seconds(60)]);
    assert_eq!(state.reason().0, Reason::RepairDelayed);
}

/// Returns the effect that a phase waits for.
fn awaited(phase: Phase) -> Option<Effect> {
    match phase {
        Phase::Idle | Phase::Synced | Phase::Stopped => None,
        Phase::Resuming => Some(Effect::Examine),
        Phase::Comparing { content } => Some(Effect::Compare(content)),
        Phase::Preparing { content } => Some(Effect::Prepare(content)),
        Phase::Writing => Some(Effect::Write(A)),
        Phase::Restarting { .. } | Phase::RestartingRolledBack { .. } => Some(Effect::Restart),
        Phase::Verifying { .. } | Phase::VerifyingRolledBack { .. } => Some(Effect::Verify),
        Phase::Committing { content } => Some(Effect::Commit(content)),
        Phase::MarkingForRollback => Some(Effect::MarkForRollback),
        Phase::RollingBack => Some(Effect::RollBack),
        Phase::FinishingRollback { failed } => Some(Effect::FinishRollback(failed)),
        Phase::Waiting { .. } | Phase::BackingOff => Some(Effect::Wait(Duration::ZERO)),
    }
}

fn is_alike(a: Effect, b: Effect) -> bool {
    std::mem::discriminant(&a) == std::mem::discriminant(&b)
        && (a == b || matches!(a, Effect::Wait(_) | Effect::Write(_)))
}

/// Every state that can be reached with counters up to 2, and every event in it.
#[rstest]
#[case::with_restarts(true)]
#[case::without_restarts(false)]
fn every_step_keeps_the_invariants(#[case] restart: bool) {
    let mut steps = 0;
    let states = walk(restart, 2, |from, event, to| {
        steps += 1;
        let (_, effects) = step(*from, event, T);
        let effects: Vec<_> = effects.into_iter().filter(|effect| !matches!(effect, Effect::Report(_))).collect();
        let context = format!("{from:?}\n{event:?}\n{to:?}\n{effects:?}");
        // Each phase that waits for an answer has one effect under way, never two.
        assert!(effects.len() <= 1, "{context}");
        match (effects.first(), awaited(to.phase())) {
            (Some(effect), awaited) => assert!(awaited.is_some_and(|awaited| is_alike(awaited, *effect)), "{context}"),
            (None, Some(_)) => assert_eq!(from.phase(), to.phase(), "{context}"),
            (None, None) => {}
        }
        match to.phase() {
            Phase::Synced | Phase::BackingOff => assert_eq!(to.journal().change, None, "{context}"),
            Phase::Restarting { attempt } | Phase::Verifying { attempt } => {
                assert!(attempt <= MAX_ATTEMPTS, "{context}");
            }
            Phase::Writing | Phase::MarkingForRollback | Phase::RollingBack | Phase::RestartingRolledBack { .. } => {
                assert!(to.journal().change.is_some(), "nothing would be finished after a crash\n{context}");
            }
            _ => {}
        }
        if !restart {
            assert!(!matches!(effects.first(), Some(Effect::Restart | Effect::Verify)), "{context}");
        }
    });
    assert!(states.len() > 500 && steps > 2000, "{} states, {steps} steps", states.len());
    // An answer that is not awaited changes nothing.
    let answers = [Event::Examined(FileVersion::After), DIFFERS, DONE, UP, STAYS, LATER];
    for state in &states {
        let awaited = possible_events(state.phase());
        for stray in answers.iter().filter(|answer| !awaited.contains(answer)) {
            let (after, effects) = step(*state, *stray, T);
            assert_eq!((after.phase(), effects), (state.phase(), Vec::new()), "{state:?} {stray:?}");
        }
        let (after, effects) = step(*state, Event::Stop, T);
        assert_eq!(after.phase(), Phase::Stopped);
        assert!(effects.iter().all(|effect| matches!(effect, Effect::Report(_))));
    }
}

#[test]
fn a_process_can_begin_wherever_a_predecessor_may_have_ended() {
    assert_eq!(initial_states(true).len(), 4);
    assert!(graph().contains("Restarting --> Verifying: restarted"), "{}", graph());
    assert!(graph().contains("Verifying --> Committing: stays up"));
}
