//! The journey of a change: every transition of the machine.

use super::{
    ATTEMPTS, Change, Delays, Disk, Effect, Event, Failed, Found, Look, Next, Phase, Source, Stage, State, Unit, delays,
};
use crate::content::ContentId;

type Step = (State, Vec<Effect>);

impl State {
    pub(super) fn next(mut self, event: Event) -> Step {
        match event {
            Event::Stop => {
                self.phase = Phase::Stopped;
                self.stay()
            }
            _ if self.phase == Phase::Stopped => self.stay(),
            Event::Source(source) => self.hear(source),
            Event::FileTouched => self.touched(),
            Event::Examined(found) => self.examined(found),
            Event::Looked(look) => self.looked(look),
            Event::Done(done) => self.done(done),
            Event::Restarted(unit) => self.restarted(unit),
            Event::Proved(unit) => self.proved(unit),
            Event::TimeUp => self.time_up(),
        }
    }

    pub(super) fn stay(self) -> Step {
        (self, Vec::new())
    }

    pub(super) fn go(mut self, phase: Phase, effect: Effect) -> Step {
        self.phase = phase;
        (self, vec![effect])
    }

    /// News of the source interrupt a wait; whatever else is under way ends first.
    fn hear(mut self, source: Source) -> Step {
        self.source = source;
        let Source::Content(content) = source else { return self.stay() };
        if self.wanted == Some(content) {
            return self.stay();
        }
        self.wanted = Some(content);
        (self.repairs, self.spaced) = (0, false);
        match self.phase {
            // What the kubelet runs with already is recorded first, so that it is what a failure goes back to.
            Phase::Waiting { next: Next::Commit } => self.commit(),
            Phase::Waiting { next: Next::Examine } => self.stay(),
            Phase::Idle | Phase::Synced | Phase::Held | Phase::Waiting { .. } => self.look(),
            _ => self.stay(),
        }
    }

    /// This program's own writes are heard here too. A journey goes on, and is not over before another look.
    fn touched(mut self) -> Step {
        match self.phase {
            Phase::Synced => return self.look(),
            Phase::Idle | Phase::Held => {}
            _ => self.look_again = true,
        }
        self.stay()
    }

    /// Looks at the file, unless nothing is wanted or what is wanted has failed before.
    fn look(mut self) -> Step {
        self.look_again = false;
        let Some(wanted) = self.wanted else {
            self.phase = Phase::Idle;
            return self.stay();
        };
        match self.journal.failed {
            Some(failed) if failed.content == wanted && self.journal.change.is_none() => {
                if self.unrecorded {
                    return self.go(Phase::Closing { failed: Some(failed) }, Effect::Close(Some(failed)));
                }
                self.go(Phase::Held, Effect::Wait(self.rules.delays.held(failed.times)))
            }
            _ => self.go(Phase::Looking { content: wanted }, Effect::Look(wanted)),
        }
    }

    /// Whether the change under way leads to something that is no longer wanted.
    fn is_superseded(&self) -> bool {
        match (self.journal.change, self.wanted) {
            (Some(change), Some(wanted)) => change.to != wanted,
            _ => false,
        }
    }

    fn examined(self, found: Found) -> Step {
        match (self.phase, found) {
            (Phase::Resuming, Found::Unusable) => self.fault(Next::Examine),
            // It was written, and nobody knows whether the kubelet was restarted since.
            (Phase::Resuming, Found::After) => self.show(),
            // Somebody has changed it, or it is of a change before: undone, so that no content is blamed for another.
            (Phase::Resuming, Found::Other) => self.go(Phase::RollingBack, Effect::RollBack),
            // The kubelet may all the same have been restarted on the other content.
            (Phase::Resuming, Found::Before) => self.show_back(),
            _ => self.stay(),
        }
    }

    fn looked(mut self, look: Look) -> Step {
        let Phase::Looking { content } = self.phase else { return self.stay() };
        if look != Look::Unusable && (self.look_again || self.wanted != Some(content)) {
            return self.look();
        }
        match look {
            Look::Unusable => self.fault(Next::Look),
            Look::AsWanted => {
                (self.faults, self.spaced) = (0, false);
                self.found_as_wanted(content)
            }
            Look::Differs => self.found_differing(content),
        }
    }

    fn found_as_wanted(mut self, content: ContentId) -> Step {
        match self.journal.change {
            None if self.journal.applied == Some(content) && self.journal.failed.is_none() && !self.unrecorded => {
                self.phase = Phase::Synced;
                self.stay()
            }
            None => self.commit(),
            // Written, but nobody knows whether the kubelet was restarted since.
            Some(change) if change.to == content && change.stage == Stage::Apply => self.show(),
            Some(_) => self.prepare(content),
        }
    }

    fn found_differing(mut self, content: ContentId) -> Step {
        let is_repair = self.journal.change.is_none() && self.journal.applied == Some(content);
        if is_repair && !self.spaced && self.repairs > 0 {
            let wait = Delays::repair(self.repairs);
            return self.go(Phase::Waiting { next: Next::Repair }, Effect::Wait(wait));
        }
        if is_repair {
            self.repairs = delays::count(self.repairs);
        }
        self.spaced = false;
        self.prepare(content)
    }

    fn prepare(self, content: ContentId) -> Step {
        self.go(Phase::Preparing { content }, Effect::Prepare(content))
    }

    /// Shows the new file to the kubelet.
    fn show(self) -> Step {
        if self.rules.restart { self.restart(1) } else { self.commit() }
    }

    /// Shows the old file to the kubelet.
    fn show_back(self) -> Step {
        if self.rules.restart { self.restart_back(1) } else { self.close(false) }
    }

    fn restart(self, attempt: u8) -> Step {
        self.go(Phase::Restarting { attempt }, Effect::Restart)
    }

    fn restart_back(self, attempt: u8) -> Step {
        self.go(Phase::RestartingBack { attempt }, Effect::Restart)
    }

    fn commit(self) -> Step {
        match self.journal.change.map(|change| change.to).or(self.wanted) {
            Some(content) => self.go(Phase::Committing { content }, Effect::Commit(content)),
            None => self.look(),
        }
    }

    /// A change that was not taken back on account of its content leaves no mark on it.
    fn close(self, doubtful: bool) -> Step {
        let blamed = self.journal.change.filter(|change| change.stage == Stage::RollBack).map(|change| {
            let before = self.journal.failed.filter(|failed| failed.content == change.to);
            let times = before.map_or(0, |failed| failed.times);
            Failed { content: change.to, times: if doubtful { 0 } else { delays::count(times) } }
        });
        let failed = blamed.or(self.journal.failed);
        self.go(Phase::Closing { failed }, Effect::Close(failed))
    }

    /// Disk or systemd cannot be used: nothing is given up, and `next` is tried again and again.
    fn fault(mut self, next: Next) -> Step {
        self.faults = delays::count(self.faults);
        let goes_back = self.journal.change.is_some_and(|change| change.stage == Stage::RollBack);
        let next = if goes_back && next == Next::Look { Next::RollBack } else { next };
        self.go(Phase::Waiting { next }, Effect::Wait(Delays::fault(self.faults)))
    }

    fn done(mut self, done: Disk) -> Step {
        if matches!(self.phase, Phase::Preparing { .. } | Phase::Committing { .. } | Phase::Closing { .. }) {
            self.unrecorded = done == Disk::Fault;
        }
        match (self.phase, done) {
            (Phase::Preparing { content }, Disk::Good) => {
                self.journal.change = Some(Change { to: content, stage: Stage::Apply });
                self.go(Phase::Writing, Effect::Write(content))
            }
            (Phase::Preparing { .. } | Phase::Writing, Disk::Moved) => self.look(),
            (Phase::Preparing { .. } | Phase::Writing, Disk::Fault) => self.fault(Next::Look),
            (Phase::Writing, Disk::Good) if self.is_superseded() => self.look(),
            (Phase::Writing, Disk::Good) => self.show(),
            (Phase::Committing { content }, Disk::Good) => self.committed(content),
            (Phase::Committing { .. }, Disk::Fault | Disk::Moved) => self.fault(Next::Commit),
            // Without the record, the next start would restart the kubelet once more: no reason to leave a bad file.
            (Phase::Condemning, _) => self.go(Phase::RollingBack, Effect::RollBack),
            (Phase::RollingBack, Disk::Good) => {
                self.faults = 0;
                self.show_back()
            }
            (Phase::RollingBack, Disk::Fault | Disk::Moved) => self.fault(Next::RollBack),
            // Without the record, the next start would roll back once more, to the same content.
            (Phase::Closing { failed }, _) => {
                self.journal.change = None;
                self.journal.failed = failed;
                if self.unrecorded { self.fault(Next::Look) } else { self.look() }
            }
            _ => self.stay(),
        }
    }

    fn committed(mut self, content: ContentId) -> Step {
        self.faults = 0;
        self.journal.applied = Some(content);
        self.journal.change = None;
        self.journal.failed = None;
        if self.look_again || self.wanted.is_none_or(|wanted| wanted != content) {
            return self.look();
        }
        self.phase = Phase::Synced;
        self.stay()
    }

    fn restarted(mut self, unit: Unit) -> Step {
        let asked = matches!(self.phase, Phase::Restarting { .. } | Phase::RestartingBack { .. });
        if asked && unit != Unit::Unreachable {
            self.faults = 0;
        }
        match (self.phase, unit) {
            (Phase::Restarting { attempt }, Unit::Good) => self.go(Phase::Proving { attempt }, Effect::Prove),
            (Phase::Restarting { attempt }, Unit::Bad) => self.failed(attempt),
            (Phase::Restarting { .. } | Phase::RestartingBack { .. }, Unit::Unreachable) if self.is_superseded() => {
                self.look()
            }
            (Phase::Restarting { attempt }, Unit::Unreachable) => self.fault(Next::Restart(attempt)),
            (Phase::RestartingBack { attempt }, Unit::Good) => self.go(Phase::ProvingBack { attempt }, Effect::Prove),
            (Phase::RestartingBack { attempt }, Unit::Bad) => self.failed_back(attempt),
            (Phase::RestartingBack { attempt }, Unit::Unreachable) => self.fault(Next::RestartBack(attempt)),
            _ => self.stay(),
        }
    }

    fn proved(mut self, unit: Unit) -> Step {
        let asked = matches!(self.phase, Phase::Proving { .. } | Phase::ProvingBack { .. });
        if asked && unit != Unit::Unreachable {
            self.faults = 0;
        }
        match (self.phase, unit) {
            (Phase::Proving { .. }, Unit::Good) => self.commit(),
            (Phase::Proving { attempt }, Unit::Bad) => self.failed(attempt),
            (Phase::Proving { .. } | Phase::ProvingBack { .. }, Unit::Unreachable) if self.is_superseded() => {
                self.look()
            }
            (Phase::Proving { attempt }, Unit::Unreachable) => self.fault(Next::Prove(attempt)),
            (Phase::ProvingBack { attempt }, Unit::Good) => self.close(attempt > 1),
            (Phase::ProvingBack { attempt }, Unit::Bad) => self.failed_back(attempt),
            (Phase::ProvingBack { attempt }, Unit::Unreachable) => self.fault(Next::ProveBack(attempt)),
            _ => self.stay(),
        }
    }

    /// An attempt with the new file has failed.
    fn failed(mut self, attempt: u8) -> Step {
        if self.is_superseded() {
            return self.look();
        }
        if attempt < ATTEMPTS {
            let wait = Effect::Wait(Delays::attempt(attempt));
            return self.go(Phase::Waiting { next: Next::Restart(attempt + 1) }, wait);
        }
        if let Some(change) = &mut self.journal.change {
            change.stage = Stage::RollBack;
        }
        self.go(Phase::Condemning, Effect::Condemn)
    }

    /// An attempt with the old file has failed. A node without a kubelet is the worst of states: there is no last one.
    fn failed_back(self, attempt: u8) -> Step {
        if self.is_superseded() {
            return self.look();
        }
        let wait = Effect::Wait(Delays::back(attempt));
        self.go(Phase::Waiting { next: Next::RestartBack(delays::count(attempt)) }, wait)
    }

    fn time_up(mut self) -> Step {
        match self.phase {
            Phase::Held => match self.wanted {
                Some(content) => self.go(Phase::Looking { content }, Effect::Look(content)),
                None => self.look(),
            },
            Phase::Waiting { next } => match next {
                Next::Examine => self.go(Phase::Resuming, Effect::Examine),
                Next::Look => self.look(),
                Next::Repair => {
                    self.spaced = true;
                    self.look()
                }
                Next::Restart(attempt) => self.restart(attempt),
                Next::Prove(attempt) => self.go(Phase::Proving { attempt }, Effect::Prove),
                Next::Commit => self.commit(),
                Next::RollBack => self.go(Phase::RollingBack, Effect::RollBack),
                Next::RestartBack(attempt) => self.restart_back(attempt),
                Next::ProveBack(attempt) => self.go(Phase::ProvingBack { attempt }, Effect::Prove),
            },
            _ => self.stay(),
        }
    }
}
