//! A simulated node: a file, a kubelet, a journal on disk, and every event that can affect them.

use proptest::prelude::*;

use super::*;

/// Contents by number. 0 was there before, 1 and 2 are good, 3 is one with which the kubelet does not start.
const BAD: u8 = 3;

fn id(content: u8) -> ContentId {
    ContentId::new([content; 32])
}

#[derive(Debug)]
#[expect(clippy::option_option, reason = "a kubelet that is down is not one that runs without a file")]
struct World {
    state: State,
    requested: Vec<Effect>,
    journal: Journal,
    file: Option<u8>,
    backup: Option<u8>,
    /// The content that the kubelet read at its last start, if it runs.
    kubelet: Option<Option<u8>>,
    source: Option<u8>,
}

/// The outcome of the next effect.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Good,
    /// The disk refuses, or systemd is unreachable; nothing was done.
    Refused,
    /// It was done, and the disk reports that it was not.
    DoneAndDenied,
    /// The process is killed before, or after.
    KilledBefore,
    KilledAfter,
}

#[derive(Clone, Copy, Debug)]
enum Occurrence {
    Effect(Outcome),
    Published(u8),
    Removed,
    /// Another program writes the file that was there at first.
    Overwritten,
}

impl World {
    fn new(file: Option<u8>) -> Self {
        let (state, _reports) = start(RULES, Journal::default(), T);
        let journal = Journal::default();
        Self { state, requested: Vec::new(), journal, file, backup: None, kubelet: Some(file), source: None }
    }

    fn take(&mut self, event: Event) {
        let (state, effects) = step(self.state, event, T);
        self.state = state;
        let mut effects: Vec<_> = effects.into_iter().filter(|effect| !matches!(effect, Effect::Report(_))).collect();
        if !effects.is_empty() {
            self.requested = std::mem::take(&mut effects);
        }
    }

    fn kill(&mut self) {
        let (state, effects) = start(RULES, self.journal, T);
        self.state = state;
        self.requested = effects.into_iter().filter(|effect| !matches!(effect, Effect::Report(_))).collect();
        if let Some(content) = self.source {
            self.take(Event::Source(SourceState::Content(id(content))));
        }
    }

    fn content(requested: ContentId) -> u8 {
        (0..=BAD).find(|content| id(*content) == requested).unwrap()
    }

    /// Performs an effect and returns its answer.
    fn perform(&mut self, effect: Effect) -> Event {
        match effect {
            Effect::Examine => {
                let to = self.journal.change.map(|change| Self::content(change.to));
                Event::Examined(match self.file {
                    file if file == self.backup => FileVersion::Before,
                    file if file == to => FileVersion::After,
                    _ => FileVersion::Other,
                })
            }
            Effect::Compare(requested) => {
                let equal = self.file == Some(Self::content(requested));
                Event::Compared(if equal { Comparison::Equal } else { Comparison::Different })
            }
            Effect::Prepare(requested) => {
                if self.journal.change.is_none() {
                    self.backup = self.file;
                }
                self.journal.change = Some(Change { to: requested, stage: Stage::Apply });
                DONE
            }
            Effect::Write(requested) => {
                self.file = Some(Self::content(requested));
                DONE
            }
            Effect::Commit(requested) => {
                self.journal = applied(requested);
                DONE
            }
            Effect::MarkForRollback => {
                self.journal.change.as_mut().unwrap().stage = Stage::RollBack;
                DONE
            }
            Effect::RollBack => {
                self.file = self.backup;
                DONE
            }
            Effect::FinishRollback(failed) => {
                self.journal.change = None;
                self.journal.failed = failed;
                DONE
            }
            Effect::Restart => {
                let bad = self.file == Some(BAD);
                self.kubelet = (!bad).then_some(self.file);
                Event::Restarted(if bad { UnitResult::Failed } else { UnitResult::Succeeded })
            }
            Effect::Verify => {
                Event::Verified(if self.kubelet.is_some() { UnitResult::Succeeded } else { UnitResult::Failed })
            }
            Effect::Wait(_) => Event::TimerFired,
            Effect::Report(_) => unreachable!("reports are left out"),
        }
    }

    fn refuse(effect: Effect) -> Event {
        match effect {
            Effect::Examine => Event::Examined(FileVersion::Unreadable),
            Effect::Compare(_) => Event::Compared(Comparison::Unreadable),
            Effect::Restart => UNREACHABLE,
            Effect::Verify => Event::Verified(UnitResult::Unreachable),
            Effect::Wait(_) => Event::TimerFired,
            _ => DISK_FAULT,
        }
    }

    fn go_on(&mut self, outcome: Outcome) {
        let Some(effect) = self.requested.pop() else { return };
        let is_on_disk = matches!(Self::refuse(effect), Event::DiskDone(_));
        match outcome {
            Outcome::Refused => self.take(Self::refuse(effect)),
            Outcome::DoneAndDenied if is_on_disk => {
                self.perform(effect);
                self.take(DISK_FAULT);
            }
            Outcome::Good | Outcome::DoneAndDenied => {
                let event = self.perform(effect);
                self.take(event);
            }
            Outcome::KilledBefore => self.kill(),
            Outcome::KilledAfter => {
                self.perform(effect);
                self.kill();
            }
        }
    }

    fn apply(&mut self, occurrence: Occurrence) {
        match occurrence {
            Occurrence::Effect(outcome) => self.go_on(outcome),
            Occurrence::Published(content) => {
                self.source = Some(content);
                self.take(Event::Source(SourceState::Content(id(content))));
            }
            Occurrence::Removed => self.take(Event::Source(SourceState::Missing)),
            Occurrence::Overwritten => {
                self.file = Some(0);
                self.take(Event::FileChanged);
            }
        }
    }

    fn apply_all<const COUNT: usize>(&mut self, occurrences: [Occurrence; COUNT]) {
        for occurrence in occurrences {
            self.apply(occurrence);
        }
    }

    /// Lets every effect succeed until nothing is left to do but to wait for bad content.
    fn settle(&mut self) {
        if let Some(content) = self.source {
            self.take(Event::Source(SourceState::Content(id(content))));
        }
        for _effect in 0..200 {
            match self.state.phase() {
                Phase::Synced | Phase::Idle => return,
                Phase::BackingOff if self.source == Some(BAD) => return,
                _ => {}
            }
            self.go_on(Outcome::Good);
        }
        panic!("it never settles: {:?}", self.state);
    }
}

fn occurrences() -> impl Strategy<Value = Vec<Occurrence>> {
    let outcome = prop_oneof![
        8 => Just(Outcome::Good),
        2 => Just(Outcome::Refused),
        1 => Just(Outcome::DoneAndDenied),
        2 => Just(Outcome::KilledBefore),
        2 => Just(Outcome::KilledAfter),
    ];
    let occurrence = prop_oneof![
        12 => outcome.prop_map(Occurrence::Effect),
        3 => (1..=BAD).prop_map(Occurrence::Published),
        1 => Just(Occurrence::Removed),
        1 => Just(Occurrence::Overwritten),
    ];
    prop::collection::vec(occurrence, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any sequence of events the kubelet runs with the file as it is, and the file has the desired content, at the
    /// latest when it is tried again; or that content is bad and known to be, and the file is one with which the kubelet
    /// runs.
    #[test]
    fn file_kubelet_and_journal_never_end_in_a_bad_state(
        first in prop::option::of(Just(0_u8)),
        occurrences in occurrences(),
        last in 1..=BAD,
    ) {
        let mut world = World::new(first);
        for occurrence in occurrences {
            world.apply(occurrence);
        }
        world.source = Some(last);
        world.settle();
        let context = format!("{world:?}");
        prop_assert!(world.journal.change.is_none(), "{context}");
        if last == BAD {
            prop_assert_eq!(world.state.phase(), Phase::BackingOff, "{}", context);
            prop_assert_eq!(world.state.journal().failed.map(|failed| failed.content), Some(id(BAD)));
            prop_assert_ne!(world.file, Some(BAD), "{}", context);
        } else {
            prop_assert!(world.state.is_healthy(), "{context}");
            prop_assert_eq!(world.file, Some(last), "{}", context);
        }
        prop_assert!(world.kubelet.is_some(), "{context}");
    }
}

/// The record of a content is retried as the record of that content, whatever is desired by then.
#[test]
fn content_that_was_never_written_is_not_recorded_as_applied() {
    use Occurrence::Published;
    let [good, refused, killed] = [Outcome::Good, Outcome::Refused, Outcome::KilledAfter].map(Occurrence::Effect);
    let mut world = World::new(None);
    let restart_and_verify = [good, good, good];
    world.apply_all([Published(1), good, Published(2), good, killed]);
    world.apply_all(restart_and_verify);
    // The record of 1 is refused once; the change to 2 is prepared, and the process is killed.
    world.apply_all([refused, good, good, good, killed]);
    world.apply_all(restart_and_verify);
    // Neither the rollback of 2 nor the return to 1 can be recorded, and then 2 is desired again.
    world.apply_all([refused, Published(1), good, refused]);
    world.source = Some(2);
    world.settle();
    assert_eq!((world.file, world.kubelet), (Some(2), Some(Some(2))), "{world:?}");
}

/// Content is tried again soon if systemd answered none of the attempts, also if the process was restarted meanwhile.
#[test]
fn content_is_not_blamed_for_a_systemd_that_does_not_answer() {
    use Occurrence::Published;
    let [good, refused, killed] = [Outcome::Good, Outcome::Refused, Outcome::KilledBefore].map(Occurrence::Effect);
    for is_killed in [false, true] {
        let mut world = World::new(None);
        world.apply_all([Published(2), good, good, good]);
        if is_killed {
            world.apply_all([killed, good]);
        }
        world.apply_all([refused, good, refused, good, refused]);
        while world.state.phase() != Phase::BackingOff {
            world.apply(good);
        }
        let failed = world.journal.failed;
        assert_eq!(failed, Some(Failed { content: id(2), times: 0 }), "{is_killed}: {world:?}");
        assert_eq!((world.file, world.kubelet), (None, Some(None)), "{is_killed}: {world:?}");
    }
}
