//! The machine: as tables of journeys, walked through completely, and in a simulated world.

mod world;

use std::time::Duration;

use jiff::Timestamp;
use rstest::rstest;

use super::graph::{CONTENTS, beginnings, possible, walk};
use super::*;

const A: ContentId = CONTENTS[0];
const B: ContentId = CONTENTS[1];
const T: Timestamp = Timestamp::UNIX_EPOCH;

const RULES: Rules = Rules { restart: true, delays: Delays { held: Duration::from_mins(10) } };

const NEWS: Event = Event::Source(Source::Content(B));
const DONE: Event = Event::Done(Disk::Good);
const DISK_FAULT: Event = Event::Done(Disk::Fault);
const DIFFERS: Event = Event::Looked(Look::Differs);
const UP: Event = Event::Restarted(Unit::Good);
const DOWN: Event = Event::Restarted(Unit::Bad);
const NOBODY: Event = Event::Restarted(Unit::Unreachable);
const STAYS: Event = Event::Proved(Unit::Good);
const DIES: Event = Event::Proved(Unit::Bad);
const LATER: Event = Event::TimeUp;

fn seconds(seconds: u64) -> Effect {
    Effect::Wait(Duration::from_secs(seconds))
}

/// What is done after each event, reports left out.
fn journey(rules: Rules, journal: Journal, events: &[Event]) -> (State, Vec<Effect>) {
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

const LOOK: Effect = Effect::Look(B);
const PREPARE: Effect = Effect::Prepare(B);
const WRITE: Effect = Effect::Write(B);
const RESTART: Effect = Effect::Restart;
const PROVE: Effect = Effect::Prove;
const COMMIT: Effect = Effect::Commit(B);

fn blamed(times: u8) -> Effect {
    Effect::Close(Some(Failed { content: B, times }))
}

#[rstest]
#[case::a_good_change(
    &[NEWS, DIFFERS, DONE, DONE, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, PROVE, COMMIT], Reason::Applied)]
#[case::nothing_to_change(
    &[NEWS, Event::Looked(Look::AsWanted), DONE],
    &[LOOK, COMMIT], Reason::Applied)]
#[case::three_attempts_then_back(
    &[NEWS, DIFFERS, DONE, DONE, DOWN, LATER, DOWN, LATER, DOWN, DONE, DONE, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART,
      Effect::Condemn, Effect::RollBack, RESTART, PROVE, blamed(1), seconds(600)], Reason::ContentFailed)]
#[case::a_kubelet_that_flaps_counts_as_one_that_fails(
    &[NEWS, DIFFERS, DONE, DONE, UP, DIES, LATER, UP, DIES, LATER, UP, DIES, DONE, DONE, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, PROVE, seconds(1), RESTART, PROVE, seconds(2), RESTART, PROVE,
      Effect::Condemn, Effect::RollBack, RESTART, PROVE, blamed(1), seconds(600)], Reason::ContentFailed)]
#[case::the_second_attempt_works(
    &[NEWS, DIFFERS, DONE, DONE, DOWN, LATER, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, seconds(1), RESTART, PROVE, COMMIT], Reason::Applied)]
#[case::without_systemd_no_attempt_is_counted_and_nothing_is_taken_back(
    &[NEWS, DIFFERS, DONE, DONE, NOBODY, LATER, NOBODY, LATER, NOBODY, LATER, NOBODY, LATER, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART, seconds(4), RESTART, seconds(8), RESTART,
      PROVE, COMMIT], Reason::Applied)]
#[case::systemd_is_lost_while_the_kubelet_is_watched(
    &[NEWS, DIFFERS, DONE, DONE, UP, Event::Proved(Unit::Unreachable), LATER, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, PROVE, seconds(1), PROVE, COMMIT], Reason::Applied)]
#[case::full_disk_before_the_write(
    &[NEWS, DIFFERS, DISK_FAULT, LATER, DIFFERS, DONE, DONE, UP, STAYS, DONE],
    &[LOOK, PREPARE, seconds(1), LOOK, PREPARE, WRITE, RESTART, PROVE, COMMIT], Reason::Applied)]
#[case::nobody_knows_whether_the_write_went_through(
    &[NEWS, DIFFERS, DONE, DISK_FAULT, LATER, Event::Looked(Look::AsWanted), UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, seconds(1), LOOK, RESTART, PROVE, COMMIT], Reason::Applied)]
#[case::full_disk_at_the_record_restarts_nothing_again(
    &[NEWS, DIFFERS, DONE, DONE, UP, STAYS, DISK_FAULT, LATER, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, PROVE, COMMIT, seconds(1), COMMIT], Reason::Applied)]
#[case::a_roll_back_is_tried_until_the_disk_takes_it(
    &[NEWS, DIFFERS, DONE, DONE, DOWN, LATER, DOWN, LATER, DOWN, DISK_FAULT, DISK_FAULT, LATER, DONE, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART,
      Effect::Condemn, Effect::RollBack, seconds(1), Effect::RollBack, RESTART, PROVE, blamed(1), seconds(600)],
      Reason::ContentFailed)]
#[case::a_kubelet_that_fails_with_the_old_file_too_is_never_given_up_and_the_content_not_blamed_for_long(
    &[NEWS, DIFFERS, DONE, DONE, DOWN, LATER, DOWN, LATER, DOWN, DONE, DONE, DOWN, LATER, UP, DIES, LATER, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, seconds(1), RESTART, seconds(2), RESTART, Effect::Condemn, Effect::RollBack,
      RESTART, seconds(2), RESTART, PROVE, seconds(4), RESTART, PROVE, blamed(0), seconds(60)], Reason::ContentFailed)]
#[case::the_file_is_changed_between_look_and_write(
    &[NEWS, DIFFERS, DONE, Event::Done(Disk::Moved), DIFFERS, DONE, DONE, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, LOOK, PREPARE, WRITE, RESTART, PROVE, COMMIT], Reason::Applied)]
#[case::a_vanished_source_changes_nothing(
    &[NEWS, DIFFERS, DONE, DONE, UP, STAYS, DONE, Event::Source(Source::Missing)],
    &[LOOK, PREPARE, WRITE, RESTART, PROVE, COMMIT], Reason::SourceMissing)]
#[case::an_invalid_source_changes_nothing(
    &[NEWS, DIFFERS, DONE, DONE, UP, STAYS, DONE, Event::Source(Source::Invalid)],
    &[LOOK, PREPARE, WRITE, RESTART, PROVE, COMMIT], Reason::SourceInvalid)]
#[case::other_content_ends_the_wait_between_attempts(
    &[NEWS, DIFFERS, DONE, DONE, DOWN, Event::Source(Source::Content(A)), DIFFERS, DONE, DONE, UP, STAYS, DONE],
    &[LOOK, PREPARE, WRITE, RESTART, seconds(1), Effect::Look(A), Effect::Prepare(A), Effect::Write(A), RESTART, PROVE,
      Effect::Commit(A)], Reason::Applied)]
#[case::other_content_during_a_restart_comes_next(
    &[NEWS, DIFFERS, DONE, DONE, Event::Source(Source::Content(A)), DOWN],
    &[LOOK, PREPARE, WRITE, RESTART, Effect::Look(A)], Reason::Restarting)]
fn journeys(#[case] events: &[Event], #[case] expected: &[Effect], #[case] reason: Reason) {
    let (state, effects) = journey(RULES, Journal::default(), events);
    assert_eq!(effects, expected);
    assert_eq!(state.reason().0, reason);
    assert_eq!(state.is_healthy(), reason == Reason::Applied);
}

#[rstest]
#[case::it_was_written(Stage::Apply, &[Event::Examined(Found::After), UP, STAYS, DONE],
    &[Effect::Examine, RESTART, PROVE, COMMIT])]
#[case::it_was_not_written(Stage::Apply, &[Event::Examined(Found::Before), UP, STAYS, DONE],
    &[Effect::Examine, RESTART, PROVE, Effect::Close(None)])]
#[case::it_was_to_be_taken_back(Stage::RollBack, &[DONE, UP, STAYS, DONE],
    &[Effect::RollBack, RESTART, PROVE, blamed(1)])]
#[case::somebody_has_changed_it(Stage::Apply, &[Event::Examined(Found::Other), DONE, UP, STAYS, DONE],
    &[Effect::Examine, Effect::RollBack, RESTART, PROVE, Effect::Close(None)])]
#[case::it_cannot_be_read(Stage::Apply, &[Event::Examined(Found::Unusable), LATER],
    &[Effect::Examine, seconds(1), Effect::Examine])]
#[case::it_was_written_and_fails(Stage::Apply,
    &[Event::Examined(Found::After), DOWN, LATER, DOWN, LATER, DOWN, DONE, DONE, UP, STAYS, DONE],
    &[Effect::Examine, RESTART, seconds(1), RESTART, seconds(2), RESTART, Effect::Condemn, Effect::RollBack, RESTART,
      PROVE, blamed(1)])]
#[case::news_wait_until_it_is_finished(Stage::Apply, &[Event::Source(Source::Content(A)), Event::Examined(Found::After),
    UP, STAYS, DONE], &[Effect::Examine, RESTART, PROVE, COMMIT, Effect::Look(A)])]
fn what_an_earlier_process_has_begun_is_finished_or_undone(
    #[case] stage: Stage,
    #[case] events: &[Event],
    #[case] expected: &[Effect],
) {
    assert_eq!(journey(RULES, begun(stage), events).1, expected);
}

#[test]
fn without_restarts_a_change_is_written_and_recorded() {
    let rules = Rules { restart: false, ..RULES };
    let events = [NEWS, DIFFERS, DONE, DONE, DONE];
    let (state, effects) = journey(rules, applied(A), &events);
    assert_eq!(effects, [LOOK, PREPARE, WRITE, COMMIT]);
    assert!(state.is_healthy());
    assert_eq!(journey(rules, begun(Stage::RollBack), &[DONE, DONE]).1, [Effect::RollBack, blamed(1)]);
}

/// A digest that failed is remembered across processes, tried again ever more rarely, and forgotten for another one.
#[test]
fn content_that_failed_is_held_back() {
    let failed = Journal { applied: Some(A), change: None, failed: Some(Failed { content: B, times: 2 }) };
    let (state, effects) = journey(RULES, failed, &[NEWS]);
    assert_eq!((effects, state.reason().0), (vec![seconds(1200)], Reason::ContentFailed));
    let (_, effects) = journey(RULES, failed, &[NEWS, NEWS, Event::FileTouched, LATER, DIFFERS]);
    assert_eq!(effects, [seconds(1200), LOOK, PREPARE]);
    let other = Event::Source(Source::Content(A));
    let (state, effects) = journey(RULES, failed, &[NEWS, other, Event::Looked(Look::AsWanted), DONE, NEWS]);
    assert_eq!(effects, [seconds(1200), Effect::Look(A), Effect::Commit(A), LOOK]);
    assert_eq!(state.journal().failed, None);
    assert_eq!(RULES.delays.held(12), Duration::from_hours(2));
}

/// Each repair costs a restart of the kubelet: somebody who keeps changing the file does not get one each time.
#[test]
fn repairs_of_the_same_content_are_spaced() {
    let repaired = [Event::FileTouched, DIFFERS, DONE, DONE, UP, STAYS, DONE];
    let mut events = vec![NEWS, Event::Looked(Look::AsWanted)];
    events.extend(repaired);
    events.extend([Event::FileTouched, DIFFERS, LATER, DIFFERS, DONE, DONE, UP, STAYS, DONE]);
    events.extend([Event::FileTouched, DIFFERS]);
    let (state, effects) = journey(RULES, applied(B), &events);
    let waits: Vec<_> = effects.into_iter().filter(|effect| matches!(effect, Effect::Wait(_))).collect();
    assert_eq!(waits, [seconds(30), seconds(60)]);
    assert_eq!(state.reason().0, Reason::RepairDelayed);
}

/// The effect that a phase waits for.
fn awaited(phase: Phase) -> Option<Effect> {
    match phase {
        Phase::Idle | Phase::Synced | Phase::Stopped => None,
        Phase::Resuming => Some(Effect::Examine),
        Phase::Looking { content } => Some(Effect::Look(content)),
        Phase::Preparing { content } => Some(Effect::Prepare(content)),
        Phase::Writing => Some(Effect::Write(A)),
        Phase::Restarting { .. } | Phase::RestartingBack { .. } => Some(Effect::Restart),
        Phase::Proving { .. } | Phase::ProvingBack { .. } => Some(Effect::Prove),
        Phase::Committing { content } => Some(Effect::Commit(content)),
        Phase::Condemning => Some(Effect::Condemn),
        Phase::RollingBack => Some(Effect::RollBack),
        Phase::Closing { failed } => Some(Effect::Close(failed)),
        Phase::Waiting { .. } | Phase::Held => Some(Effect::Wait(Duration::ZERO)),
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
fn every_step_keeps_the_laws(#[case] restart: bool) {
    let mut steps = 0;
    let states = walk(restart, 2, |from, event, to| {
        steps += 1;
        let (_, effects) = step(*from, event, T);
        let effects: Vec<_> = effects.into_iter().filter(|effect| !matches!(effect, Effect::Report(_))).collect();
        let context = format!("{from:?}\n{event:?}\n{to:?}\n{effects:?}");
        // Whoever waits for an answer has asked, once; nothing is asked twice at a time.
        assert!(effects.len() <= 1, "{context}");
        match (effects.first(), awaited(to.phase())) {
            (Some(effect), awaited) => assert!(awaited.is_some_and(|awaited| is_alike(awaited, *effect)), "{context}"),
            (None, Some(_)) => assert_eq!(from.phase(), to.phase(), "{context}"),
            (None, None) => {}
        }
        match to.phase() {
            Phase::Synced | Phase::Held => assert_eq!(to.journal().change, None, "{context}"),
            Phase::Restarting { attempt } | Phase::Proving { attempt } => assert!(attempt <= ATTEMPTS, "{context}"),
            Phase::Writing | Phase::Condemning | Phase::RollingBack | Phase::RestartingBack { .. } => {
                assert!(to.journal().change.is_some(), "nothing would be finished after a crash\n{context}");
            }
            _ => {}
        }
        if !restart {
            assert!(!matches!(effects.first(), Some(Effect::Restart | Effect::Prove)), "{context}");
        }
    });
    assert!(states.len() > 500 && steps > 2000, "{} states, {steps} steps", states.len());
    // What is not awaited changes nothing.
    let answers = [Event::Examined(Found::After), DIFFERS, DONE, UP, STAYS, LATER];
    for state in &states {
        let awaited = possible(state.phase());
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
fn a_process_can_begin_anywhere_a_predecessor_may_have_ended() {
    assert_eq!(beginnings(true).len(), 4);
    assert!(graph().contains("Restarting --> Proving: restarted"), "{}", graph());
    assert!(graph().contains("Proving --> Committing: stays up"));
}
