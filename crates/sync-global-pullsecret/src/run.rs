//! The loop: hear, decide, do, tell.

use std::collections::VecDeque;
use std::pin::Pin;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::decide::{self, Disk, Effect, Event, Found, Look, Rules, Source, State, Unit};
use crate::disk;
use crate::kubelet_file::{Fault, KubeletFile};
use crate::reason::Reason;
use crate::source::{Content, Said, Watch};
use crate::status::Board;
use crate::units::{UnitError, Units};

/// What the loop works with.
pub struct Syncer<D, U> {
    file: KubeletFile<D>,
    units: U,
    board: Board,
    revision: RevisionRule,
    state: State,
    effects: VecDeque<Effect>,
    /// The last good content, for the looks to come.
    content: Option<Content>,
    timer: Option<Instant>,
    /// The restart or watch that is under way.
    work: Option<Work>,
}

type Work = Pin<Box<dyn Future<Output = (Event, Option<UnitError>)>>>;

/// What this process has to do with revisions.
#[derive(Clone, Debug, Default)]
pub struct RevisionRule {
    /// The revision with which the process is ready; any if there is none.
    pub expected: Option<String>,
    /// Whether content of another revision is left alone.
    pub only: bool,
}

/// What is heard by a running loop.
#[derive(Debug)]
pub struct Ears {
    /// What the source says.
    pub sayings: mpsc::Receiver<Said>,
    /// Who touches the kubelet's file: its folder, and its name in it.
    pub touches: Option<(Watch, Vec<u8>)>,
    /// When to end.
    pub stop: CancellationToken,
}

impl<D: disk::Disk, U: Units> Syncer<D, U> {
    /// A loop that takes up what an earlier one has left.
    pub fn new(file: KubeletFile<D>, units: U, rules: Rules, revision: RevisionRule, board: Board) -> Self {
        let (state, effects) = decide::start(rules, file.journal(), Timestamp::now());
        let effects = effects.into();
        Self { file, units, board, revision, state, effects, content: None, timer: None, work: None }
    }

    /// Runs until told to stop. Whatever is under way then is left to the next process, which finds it recorded.
    pub async fn run(mut self, mut ears: Ears) {
        self.act();
        loop {
            let event = tokio::select! {
                biased;
                () = ears.stop.cancelled() => Event::Stop,
                (event, error) = done(&mut self.work) => {
                    self.work = None;
                    self.tell_unit(event, error);
                    event
                }
                said = ears.sayings.recv() => match said {
                    Some(said) => match self.hear(said) {
                        Some(event) => event,
                        None => continue,
                    },
                    None => Event::Stop,
                },
                () = touched(ears.touches.as_ref()) => Event::FileTouched,
                () = at(self.timer) => {
                    self.timer = None;
                    Event::TimeUp
                }
            };
            self.take(event);
            if event == Event::Stop {
                return;
            }
        }
    }

    fn take(&mut self, event: Event) {
        let (state, effects) = decide::step(self.state, event, Timestamp::now());
        self.state = state;
        self.effects.extend(effects);
        self.act();
    }

    /// Does what is to be done. What is done on the disk is answered at once, and the answer decided upon.
    fn act(&mut self) {
        while let Some(effect) = self.effects.pop_front() {
            if let Some(event) = self.perform(effect) {
                let (state, effects) = decide::step(self.state, event, Timestamp::now());
                self.state = state;
                self.effects.extend(effects);
            }
        }
        let ready = self.is_ready();
        let revision = self.content.as_ref().filter(|_content| self.state.is_healthy()).and_then(Content::revision);
        self.board.change(|status| {
            status.ready = ready;
            if revision.is_some() {
                status.revision = revision.map(str::to_owned);
            }
        });
    }

    fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Examine => Some(Event::Examined(match self.file.examine() {
                Ok(found) => found,
                Err(fault) => {
                    self.tell_fault(&fault);
                    Found::Unusable
                }
            })),
            Effect::Look(id) => Some(Event::Looked(self.look(id))),
            Effect::Prepare(id) => Some(self.done(|file| file.prepare(id))),
            Effect::Write(id) => {
                let done = self.done(|file| file.write(id));
                if done == Event::Done(Disk::Good) {
                    info!(operation = "write", "The kubelet's file is replaced");
                    self.board.change(|status| status.counts.writes += 1);
                }
                Some(done)
            }
            Effect::Commit(id) => {
                let done = self.done(|file| file.commit(id));
                self.board.change(|status| status.applied_at = Some(Timestamp::now()));
                Some(done)
            }
            Effect::Condemn => Some(self.done(KubeletFile::condemn)),
            Effect::RollBack => {
                let done = self.done(KubeletFile::roll_back);
                if done == Event::Done(Disk::Good) {
                    warn!(operation = "roll-back", "The kubelet's file is as it was before");
                    self.board.change(|status| status.counts.roll_backs += 1);
                }
                Some(done)
            }
            Effect::Close(failed) => Some(self.done(|file| file.close(failed))),
            Effect::Restart => {
                info!(operation = "restart", "Restarting the kubelet");
                self.board.change(|status| status.counts.restarts += 1);
                let units = self.units.clone();
                self.work = Some(Box::pin(async move { outcome(units.restart().await, Event::Restarted) }));
                None
            }
            Effect::Prove => {
                let units = self.units.clone();
                self.work = Some(Box::pin(async move { outcome(units.prove().await, Event::Proved) }));
                None
            }
            Effect::Wait(time) => {
                self.timer = Some(Instant::now() + time);
                None
            }
            Effect::Report(reason) => {
                self.report(reason);
                None
            }
        }
    }

    fn look(&mut self, id: crate::content::ContentId) -> Look {
        let Some(content) = self.content.as_ref().filter(|content| content.id() == id) else { return Look::Unusable };
        match self.file.look(content) {
            Ok(look) => look,
            Err(fault) => {
                self.tell_fault(&fault);
                Look::Unusable
            }
        }
    }

    fn done(&mut self, effect: impl FnOnce(&mut KubeletFile<D>) -> Result<(), Fault>) -> Event {
        Event::Done(match effect(&mut self.file) {
            Ok(()) => Disk::Good,
            Err(Fault::Moved) => Disk::Moved,
            Err(fault) => {
                self.tell_fault(&fault);
                Disk::Fault
            }
        })
    }

    /// What the source says, as the machine hears it.
    fn hear(&mut self, said: Said) -> Option<Event> {
        let source = match said {
            Said::Away(why) => {
                if let Some(why) = &why {
                    warn!(operation = "source", "The source cannot be asked: {why}");
                } else {
                    info!(operation = "source", "The source can be asked again");
                }
                self.board.change(|status| status.source_away = why);
                return None;
            }
            Said::Missing => Source::Missing,
            Said::Invalid(why) => {
                warn!(operation = "source", "The source's content cannot be used: {why}");
                self.board.change(|status| status.fault = Some(format!("the source's content cannot be used: {why}")));
                Source::Invalid
            }
            Said::Content(content) => {
                let is_ours = self.revision.expected.as_deref() == content.revision();
                if self.revision.only && !is_ours {
                    Source::OtherRevision
                } else {
                    let id = content.id();
                    self.content = Some(content);
                    Source::Content(id)
                }
            }
        };
        Some(Event::Source(source))
    }

    fn is_ready(&self) -> bool {
        let applied = self.content.as_ref().and_then(Content::revision);
        let fits = self.revision.expected.is_none() || self.revision.expected.as_deref() == applied;
        self.state.is_healthy() && fits
    }

    fn tell_fault(&self, fault: &Fault) {
        warn!(operation = "disk", "{fault}");
        self.board.change(|status| {
            status.counts.disk_faults += 1;
            status.fault = Some(fault.to_string());
        });
    }

    fn tell_unit(&self, event: Event, error: Option<UnitError>) {
        let Some(error) = error else { return };
        let operation = if matches!(event, Event::Proved(_)) { "prove" } else { "restart" };
        warn!(operation, "{error}");
        self.board.change(|status| {
            match &error {
                UnitError::Unreachable(_) => status.counts.unreachable += 1,
                UnitError::Bad(_) => status.counts.failed_restarts += 1,
            }
            status.fault = Some(error.to_string());
        });
    }

    fn report(&self, reason: Reason) {
        let (name, meaning) = (reason.name(), reason.meaning());
        match reason {
            Reason::SourceInvalid
            | Reason::RestartFailed
            | Reason::RollingBack
            | Reason::RollbackUnproven
            | Reason::ContentFailed
            | Reason::RepairDelayed
            | Reason::DiskFault
            | Reason::SystemdUnreachable => warn!(operation = "report", reason = name, "{meaning}"),
            _ => info!(operation = "report", reason = name, "{meaning}"),
        }
        let (_, since) = self.state.reason();
        self.board.change(|status| {
            name.clone_into(&mut status.reason);
            meaning.clone_into(&mut status.message);
            status.since = since;
            if reason == Reason::Applied {
                status.fault = None;
            }
        });
    }
}

fn outcome(result: Result<(), UnitError>, event: fn(Unit) -> Event) -> (Event, Option<UnitError>) {
    match result {
        Ok(()) => (event(Unit::Good), None),
        Err(error @ UnitError::Bad(_)) => (event(Unit::Bad), Some(error)),
        Err(error @ UnitError::Unreachable(_)) => (event(Unit::Unreachable), Some(error)),
    }
}

async fn done(work: &mut Option<Work>) -> (Event, Option<UnitError>) {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

async fn touched(touches: Option<&(Watch, Vec<u8>)>) {
    if let Some((watch, name)) = touches
        && watch.changed(|changed| changed.is_none_or(|changed| changed == name)).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

async fn at(timer: Option<Instant>) {
    match timer {
        Some(timer) => sleep_until(timer).await,
        None => std::future::pending().await,
    }
}

impl<D, U> std::fmt::Debug for Syncer<D, U> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Syncer").field("state", &self.state).finish_non_exhaustive()
    }
}
