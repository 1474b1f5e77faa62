//! The transitions of the state machine.

use super::delays::{self, Delays};
use super::journal::{Change, Failed, Stage};
use super::state::{
    Comparison, DiskResult, Effect, Event, FileVersion, MAX_ATTEMPTS, Next, Phase, SourceState, State, Systemd,
    UnitResult,
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
            Event::Source(source) => self.source_changed(source),
            Event::FileChanged => self.file_changed(),
            Event::Examined(version) => self.examined(version),
            Event::Compared(comparison) => self.compared(comparison),
            Event::DiskDone(result) => self.disk_done(result),
            Event::Restarted(unit) => self.restarted(unit),
            Event::Verified(unit) => self.verified(unit),
            Event::TimerFired => self.timer_fired(),
        }
    }

    pub(super) fn stay(self) -> Step {
        (self, Vec::new())
    }

    pub(super) fn enter(mut self, phase: Phase, effect: Effect) -> Step {
        self.phase = phase;
        (self, vec![effect])
    }

    /// New content interrupts a wait; any other effect under way ends first.
    fn source_changed(mut self, source: SourceState) -> Step {
        self.source = source;
        let SourceState::Content(content) = source else { return self.stay() };
        if self.desired == Some(content) {
            return self.stay();
        }
        self.desired = Some(content);
        (self.repairs, self.repair_due) = (0, false);
        match self.phase {
            // The content that the kubelet runs with is recorded first, so that a failure rolls back to it.
            Phase::Waiting { next: Next::Commit(content) } => self.commit(content),
            Phase::Waiting { next: Next::Examine } => self.stay(),
            Phase::Idle | Phase::Synced | Phase::BackingOff | Phase::Waiting { .. } => self.compare(),
            _ => self.stay(),
        }
    }

    /// This program's own writes arrive here too. A change goes on, and is not complete before another comparison.
    fn file_changed(mut self) -> Step {
        match self.phase {
            Phase::Synced => return self.compare(),
            Phase::Idle | Phase::BackingOff => {}
            _ => self.compare_again = true,
        }
        self.stay()
    }

    /// Compares the file, unless nothing is desired or the desired content has failed before.
    fn compare(mut self) -> Step {
        self.compare_again = false;
        let Some(desired) = self.desired else {
            self.phase = Phase::Idle;
            return self.stay();
        };
        match self.journal.failed {
            Some(failed) if failed.content == desired && self.journal.change.is_none() => {
                if self.unrecorded {
                    return self.enter(
                        Phase::FinishingRollback { failed: Some(failed) },
                        Effect::FinishRollback(Some(failed)),
                    );
                }
                self.enter(Phase::BackingOff, Effect::Wait(self.rules.delays.after_rollback(failed.times)))
            }
            _ => self.enter(Phase::Comparing { content: desired }, Effect::Compare(desired)),
        }
    }

    /// Returns true if the change under way leads to content that is no longer desired.
    fn is_superseded(&self) -> bool {
        match (self.journal.change, self.desired) {
            (Some(change), Some(desired)) => change.to != desired,
            _ => false,
        }
    }

    fn examined(self, version: FileVersion) -> Step {
        match (self.phase, version) {
            (Phase::Resuming, FileVersion::Unreadable) => self.fault(Next::Examine),
            // It was written; the kubelet may not have been restarted since.
            (Phase::Resuming, FileVersion::After) => self.activate(),
            // Another program changed it, or it is of an earlier change: undone, so that no content is blamed for another.
            (Phase::Resuming, FileVersion::Other) => self.enter(Phase::RollingBack, Effect::RollBack),
            // The kubelet may still have been restarted with the other content.
            (Phase::Resuming, FileVersion::Before) => self.activate_rolled_back(),
            _ => self.stay(),
        }
    }

    fn compared(mut self, comparison: Comparison) -> Step {
        let Phase::Comparing { content } = self.phase else { return self.stay() };
        if comparison != Comparison::Unreadable && (self.compare_again || self.desired != Some(content)) {
            return self.compare();
        }
        match comparison {
            Comparison::Unreadable => self.fault(Next::Compare),
            Comparison::Equal => {
                (self.faults, self.repair_due) = (0, false);
                self.found_equal(content)
            }
            Comparison::Different => self.found_different(content),
        }
    }

    fn found_equal(mut self, content: ContentId) -> Step {
        match self.journal.change {
            None if self.journal.applied == Some(content) && self.journal.failed.is_none() && !self.unrecorded => {
                self.phase = Phase::Synced;
                self.stay()
            }
            None => self.commit(content),
            // Written, but the kubelet may not have been restarted since.
            Some(change) if change.to == content && change.stage == Stage::Apply => self.activate(),
            Some(_) => self.prepare(content),
        }
    }

    fn found_different(mut self, content: ContentId) -> Step {
        let is_repair = self.journal.change.is_none() && self.journal.applied == Some(content);
        if is_repair && !self.repair_due && self.repairs > 0 {
            let wait = Delays::before_repair(self.repairs);
            return self.enter(Phase::Waiting { next: Next::Repair }, Effect::Wait(wait));
        }
        if is_repair {
            self.repairs = delays::count(self.repairs);
        }
        self.repair_due = false;
        self.prepare(content)
    }

    fn prepare(self, content: ContentId) -> Step {
        self.enter(Phase::Preparing { content }, Effect::Prepare(content))
    }

    /// Makes the kubelet use the new file.
    fn activate(self) -> Step {
        if self.rules.restart { self.restart(1) } else { self.commit_change() }
    }

    /// Makes the kubelet use the previous file.
    fn activate_rolled_back(self) -> Step {
        if self.rules.restart { self.restart_rolled_back(1) } else { self.finish_rollback(false) }
    }

    fn restart(self, attempt: u8) -> Step {
        self.enter(Phase::Restarting { attempt }, Effect::Restart)
    }

    fn restart_rolled_back(self, attempt: u8) -> Step {
        self.enter(Phase::RestartingRolledBack { attempt }, Effect::Restart)
    }

    /// Records that the kubelet runs with this content.
    fn commit(self, content: ContentId) -> Step {
        self.enter(Phase::Committing { content }, Effect::Commit(content))
    }

    /// Records that the change under way is done.
    fn commit_change(self) -> Step {
        match self.journal.change {
            Some(change) => self.commit(change.to),
            None => self.compare(),
        }
    }

    /// Records the content as failed if the change was rolled back because of it. `doubtful` says that the content may
    /// not be the cause: systemd did not answer, or the kubelet had trouble with the previous file too.
    fn finish_rollback(self, doubtful: bool) -> Step {
        let blamed = self.journal.change.filter(|change| change.stage == Stage::RollBack).map(|change| {
            let before = self.journal.failed.filter(|failed| failed.content == change.to);
            let times = before.map_or(0, |failed| failed.times);
            Failed { content: change.to, times: if doubtful { 0 } else { delays::count(times) } }
        });
        let failed = blamed.or(self.journal.failed);
        self.enter(Phase::FinishingRollback { failed }, Effect::FinishRollback(failed))
    }

    /// Retries `next` with back-off, without limit, while the disk or systemd cannot be used.
    fn fault(mut self, next: Next) -> Step {
        self.faults = delays::count(self.faults);
        let is_rollback = self.journal.change.is_some_and(|change| change.stage == Stage::RollBack);
        let next = if is_rollback && next == Next::Compare { Next::RollBack } else { next };
        self.enter(Phase::Waiting { next }, Effect::Wait(Delays::after_fault(self.faults)))
    }

    fn disk_done(mut self, result: DiskResult) -> Step {
        if matches!(self.phase, Phase::Preparing { .. } | Phase::Committing { .. } | Phase::FinishingRollback { .. }) {
            self.unrecorded = result == DiskResult::Failed;
        }
        match (self.phase, result) {
            (Phase::Preparing { content }, DiskResult::Succeeded) => {
                self.systemd = match (self.journal.change, self.systemd) {
                    (None, _) | (Some(_), Systemd::Silent) => Systemd::Silent,
                    (Some(_), Systemd::Unknown | Systemd::Answered) => Systemd::Unknown,
                };
                self.journal.change = Some(Change { to: content, stage: Stage::Apply });
                self.enter(Phase::Writing, Effect::Write(content))
            }
            (Phase::Preparing { .. } | Phase::Writing, DiskResult::FileChanged) => self.compare(),
            (Phase::Preparing { .. } | Phase::Writing, DiskResult::Failed) => self.fault(Next::Compare),
            (Phase::Writing, DiskResult::Succeeded) if self.is_superseded() => self.compare(),
            (Phase::Writing, DiskResult::Succeeded) => self.activate(),
            (Phase::Committing { content }, DiskResult::Succeeded) => self.committed(content),
            (Phase::Committing { content }, DiskResult::Failed | DiskResult::FileChanged) => {
                self.fault(Next::Commit(content))
            }
            // Without the record, the next start restarts the kubelet once more: no reason to leave a bad file in place.
            (Phase::MarkingForRollback, _) => self.enter(Phase::RollingBack, Effect::RollBack),
            (Phase::RollingBack, DiskResult::Succeeded) => {
                self.faults = 0;
                // The kubelet runs with the previous file, if no attempt to restart it was answered.
                match self.systemd {
                    Systemd::Unknown | Systemd::Answered => self.activate_rolled_back(),
                    Systemd::Silent => self.finish_rollback(true),
                }
            }
            (Phase::RollingBack, DiskResult::Failed | DiskResult::FileChanged) => self.fault(Next::RollBack),
            // Without the record, the next start rolls back once more, to the same content.
            (Phase::FinishingRollback { failed }, _) => {
                self.journal.change = None;
                self.journal.failed = failed;
                if self.unrecorded { self.fault(Next::Compare) } else { self.compare() }
            }
            _ => self.stay(),
        }
    }

    fn committed(mut self, content: ContentId) -> Step {
        self.faults = 0;
        self.journal.applied = Some(content);
        self.journal.change = None;
        self.journal.failed = None;
        if self.compare_again || self.desired.is_none_or(|desired| desired != content) {
            return self.compare();
        }
        self.phase = Phase::Synced;
        self.stay()
    }

    fn restarted(mut self, unit: UnitResult) -> Step {
        let expected = matches!(self.phase, Phase::Restarting { .. } | Phase::RestartingRolledBack { .. });
        if expected && unit != UnitResult::Unreachable {
            self.faults = 0;
        }
        if matches!(self.phase, Phase::Restarting { .. }) && unit != UnitResult::Unreachable {
            self.systemd = Systemd::Answered;
        }
        match (self.phase, unit) {
            (Phase::Restarting { attempt }, UnitResult::Succeeded) => {
                self.enter(Phase::Verifying { attempt }, Effect::Verify)
            }
            (Phase::Restarting { .. } | Phase::RestartingRolledBack { .. }, UnitResult::Unreachable)
                if self.is_superseded() =>
            {
                self.compare()
            }
            (Phase::Restarting { attempt }, UnitResult::Unreachable) if attempt < MAX_ATTEMPTS => {
                self.fault(Next::Restart(attempt + 1))
            }
            (Phase::Restarting { attempt }, UnitResult::Failed | UnitResult::Unreachable) => self.failed(attempt),
            (Phase::RestartingRolledBack { attempt }, UnitResult::Succeeded) => {
                self.enter(Phase::VerifyingRolledBack { attempt }, Effect::Verify)
            }
            (Phase::RestartingRolledBack { attempt }, UnitResult::Failed) => self.failed_rolled_back(attempt),
            (Phase::RestartingRolledBack { attempt }, UnitResult::Unreachable) => {
                self.fault(Next::RestartRolledBack(attempt))
            }
            _ => self.stay(),
        }
    }

    fn verified(mut self, unit: UnitResult) -> Step {
        let expected = matches!(self.phase, Phase::Verifying { .. } | Phase::VerifyingRolledBack { .. });
        if expected && unit != UnitResult::Unreachable {
            self.faults = 0;
        }
        match (self.phase, unit) {
            (Phase::Verifying { .. }, UnitResult::Succeeded) => self.commit_change(),
            (Phase::Verifying { attempt }, UnitResult::Failed) => self.failed(attempt),
            (Phase::Verifying { .. } | Phase::VerifyingRolledBack { .. }, UnitResult::Unreachable)
                if self.is_superseded() =>
            {
                self.compare()
            }
            (Phase::Verifying { attempt }, UnitResult::Unreachable) => self.fault(Next::Verify(attempt)),
            (Phase::VerifyingRolledBack { attempt }, UnitResult::Succeeded) => {
                self.finish_rollback(attempt > 1 || self.systemd != Systemd::Answered)
            }
            (Phase::VerifyingRolledBack { attempt }, UnitResult::Failed) => self.failed_rolled_back(attempt),
            (Phase::VerifyingRolledBack { attempt }, UnitResult::Unreachable) => {
                self.fault(Next::VerifyRolledBack(attempt))
            }
            _ => self.stay(),
        }
    }

    /// An attempt with the new file has failed.
    fn failed(mut self, attempt: u8) -> Step {
        if self.is_superseded() {
            return self.compare();
        }
        if attempt < MAX_ATTEMPTS {
            let wait = Effect::Wait(Delays::after_attempt(attempt));
            return self.enter(Phase::Waiting { next: Next::Restart(attempt + 1) }, wait);
        }
        if let Some(change) = &mut self.journal.change {
            change.stage = Stage::RollBack;
        }
        self.enter(Phase::MarkingForRollback, Effect::MarkForRollback)
    }

    /// An attempt with the previous file has failed. Attempts have no limit: a node without a kubelet is the worst outcome.
    fn failed_rolled_back(self, attempt: u8) -> Step {
        if self.is_superseded() {
            return self.compare();
        }
        let wait = Effect::Wait(Delays::after_rolled_back_attempt(attempt));
        self.enter(Phase::Waiting { next: Next::RestartRolledBack(delays::count(attempt)) }, wait)
    }

    fn timer_fired(mut self) -> Step {
        match self.phase {
            Phase::BackingOff => match self.desired {
                Some(content) => self.enter(Phase::Comparing { content }, Effect::Compare(content)),
                None => self.compare(),
            },
            Phase::Waiting { next } => match next {
                Next::Examine => self.enter(Phase::Resuming, Effect::Examine),
                Next::Compare => self.compare(),
                Next::Repair => {
                    self.repair_due = true;
                    self.compare()
                }
                Next::Restart(attempt) => self.restart(attempt),
                Next::Verify(attempt) => self.enter(Phase::Verifying { attempt }, Effect::Verify),
                Next::Commit(content) => self.commit(content),
                Next::RollBack => self.enter(Phase::RollingBack, Effect::RollBack),
                Next::RestartRolledBack(attempt) => self.restart_rolled_back(attempt),
                Next::VerifyRolledBack(attempt) => self.enter(Phase::VerifyingRolledBack { attempt }, Effect::Verify),
            },
            _ => self.stay(),
        }
    }
}
