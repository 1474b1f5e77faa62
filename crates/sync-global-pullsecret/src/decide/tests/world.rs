//! A node in miniature: a file, a kubelet, a journal on disk, and everything that can happen to them.

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
    asked: Vec<Effect>,
    journal: Journal,
    file: Option<u8>,
    backup: Option<u8>,
    /// What the kubelet has read at its last start, if it runs.
    kubelet: Option<Option<u8>>,
    source: Option<u8>,
}

/// What goes wrong with the next thing that is done.
#[derive(Clone, Copy, Debug)]
enum Luck {
    Good,
    /// The disk refuses, or systemd cannot be asked; nothing was done.
    Refused,
    /// It was done, and the disk says that it was not.
    DoneAndDenied,
    /// The process is killed before, or after.
    KilledBefore,
    KilledAfter,
}

#[derive(Clone, Copy, Debug)]
enum Happens {
    Effect(Luck),
    Published(u8),
    Removed,
    /// Somebody else writes the file that was there at first.
    Overwritten,
}

impl World {
    fn new(file: Option<u8>) -> Self {
        let (state, _reports) = start(RULES, Journal::default(), T);
        let journal = Journal::default();
        Self { state, asked: Vec::new(), journal, file, backup: None, kubelet: Some(file), source: None }
    }

    fn take(&mut self, event: Event) {
        let (state, effects) = step(self.state, event, T);
        self.state = state;
        let mut effects: Vec<_> = effects.into_iter().filter(|effect| !matches!(effect, Effect::Report(_))).collect();
        if !effects.is_empty() {
            self.asked = std::mem::take(&mut effects);
        }
    }

    fn kill(&mut self) {
        let (state, effects) = start(RULES, self.journal, T);
        self.state = state;
        self.asked = effects.into_iter().filter(|effect| !matches!(effect, Effect::Report(_))).collect();
        if let Some(content) = self.source {
            self.take(Event::Source(Source::Content(id(content))));
        }
    }

    fn content(asked: ContentId) -> u8 {
        (0..=BAD).find(|content| id(*content) == asked).unwrap()
    }

    /// Does it, and says what comes of it.
    fn perform(&mut self, effect: Effect) -> Event {
        match effect {
            Effect::Examine => {
                let to = self.journal.change.map(|change| Self::content(change.to));
                Event::Examined(match self.file {
                    file if file == self.backup => Found::Before,
                    file if file == to => Found::After,
                    _ => Found::Other,
                })
            }
            Effect::Look(asked) => {
                let same = self.file == Some(Self::content(asked));
                Event::Looked(if same { Look::AsWanted } else { Look::Differs })
            }
            Effect::Prepare(asked) => {
                if self.journal.change.is_none() {
                    self.backup = self.file;
                }
                self.journal.change = Some(Change { to: asked, stage: Stage::Apply });
                DONE
            }
            Effect::Write(asked) => {
                self.file = Some(Self::content(asked));
                DONE
            }
            Effect::Commit(asked) => {
                self.journal = applied(asked);
                DONE
            }
            Effect::Condemn => {
                self.journal.change.as_mut().unwrap().stage = Stage::RollBack;
                DONE
            }
            Effect::RollBack => {
                self.file = self.backup;
                DONE
            }
            Effect::Close(failed) => {
                self.journal.change = None;
                self.journal.failed = failed;
                DONE
            }
            Effect::Restart => {
                let bad = self.file == Some(BAD);
                self.kubelet = (!bad).then_some(self.file);
                Event::Restarted(if bad { Unit::Bad } else { Unit::Good })
            }
            Effect::Prove => Event::Proved(if self.kubelet.is_some() { Unit::Good } else { Unit::Bad }),
            Effect::Wait(_) => Event::TimeUp,
            Effect::Report(_) => unreachable!("reports are left out"),
        }
    }

    fn refuse(effect: Effect) -> Event {
        match effect {
            Effect::Examine => Event::Examined(Found::Unusable),
            Effect::Look(_) => Event::Looked(Look::Unusable),
            Effect::Restart => NOBODY,
            Effect::Prove => Event::Proved(Unit::Unreachable),
            Effect::Wait(_) => Event::TimeUp,
            _ => DISK_FAULT,
        }
    }

    fn go_on(&mut self, luck: Luck) {
        let Some(effect) = self.asked.pop() else { return };
        let is_on_disk = matches!(Self::refuse(effect), Event::Done(_));
        match luck {
            Luck::Refused => self.take(Self::refuse(effect)),
            Luck::DoneAndDenied if is_on_disk => {
                self.perform(effect);
                self.take(DISK_FAULT);
            }
            Luck::Good | Luck::DoneAndDenied => {
                let event = self.perform(effect);
                self.take(event);
            }
            Luck::KilledBefore => self.kill(),
            Luck::KilledAfter => {
                self.perform(effect);
                self.kill();
            }
        }
    }

    fn happen(&mut self, happens: Happens) {
        match happens {
            Happens::Effect(luck) => self.go_on(luck),
            Happens::Published(content) => {
                self.source = Some(content);
                self.take(Event::Source(Source::Content(id(content))));
            }
            Happens::Removed => self.take(Event::Source(Source::Missing)),
            Happens::Overwritten => {
                self.file = Some(0);
                self.take(Event::FileTouched);
            }
        }
    }

    /// Lets everything go well until nothing is left to do but to wait for a content that failed.
    fn settle(&mut self) {
        if let Some(content) = self.source {
            self.take(Event::Source(Source::Content(id(content))));
        }
        for _effect in 0..200 {
            if matches!(self.state.phase(), Phase::Held | Phase::Synced | Phase::Idle) {
                return;
            }
            self.go_on(Luck::Good);
        }
        panic!("it never comes to rest: {:?}", self.state);
    }
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let luck = prop_oneof![
        8 => Just(Luck::Good),
        2 => Just(Luck::Refused),
        1 => Just(Luck::DoneAndDenied),
        2 => Just(Luck::KilledBefore),
        2 => Just(Luck::KilledAfter),
    ];
    let happens = prop_oneof![
        12 => luck.prop_map(Happens::Effect),
        3 => (1..=BAD).prop_map(Happens::Published),
        1 => Just(Happens::Removed),
        1 => Just(Happens::Overwritten),
    ];
    prop::collection::vec(happens, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens, in the end the kubelet runs with the file as it is, and the file is what is wanted; or what is
    /// wanted is known to be bad, and the file is one with which the kubelet runs.
    #[test]
    fn file_kubelet_and_journal_never_end_in_a_bad_place(
        first in prop::option::of(Just(0_u8)),
        happenings in happenings(),
        last in 1..=BAD,
    ) {
        let mut world = World::new(first);
        for happens in happenings {
            world.happen(happens);
        }
        world.source = Some(last);
        world.settle();
        let context = format!("{world:?}");
        prop_assert!(world.journal.change.is_none(), "{context}");
        if last == BAD {
            prop_assert_eq!(world.state.phase(), Phase::Held, "{}", context);
            prop_assert_eq!(world.state.journal().failed.map(|failed| failed.content), Some(id(BAD)));
            prop_assert_ne!(world.file, Some(BAD), "{}", context);
        } else {
            prop_assert!(world.state.is_healthy(), "{context}");
            prop_assert_eq!(world.file, Some(last), "{}", context);
        }
        prop_assert!(world.kubelet.is_some(), "{context}");
    }
}
