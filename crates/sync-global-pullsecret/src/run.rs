//! The control loop: receives events, decides, performs effects and reports.

use std::collections::VecDeque;
use std::pin::Pin;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::content::ContentId;
use crate::decide::{self, Comparison, DiskResult, Effect, Event, FileVersion, Rules, SourceState, State, UnitResult};
use crate::disk;
use crate::kubelet_file::{DiskFault, KubeletFile};
use crate::reason::Reason;
use crate::source::{Credentials, SourceEvent, Watch};
use crate::status::SharedStatus;
use crate::units::{UnitError, Units};

/// The control loop and its state.
pub struct Syncer<D, U> {
    file: KubeletFile<D>,
    units: U,
    status: SharedStatus,
    revision: RevisionRule,
    state: State,
    effects: VecDeque<Effect>,
    /// The last valid credentials, for later comparisons.
    credentials: Option<Credentials>,
    timer: Option<Instant>,
    /// The restart or verification under way.
    unit_operation: Option<UnitOperation>,
    /// The content of a revert for which the backups were removed.
    shredded_for: Option<ContentId>,
}

type UnitOperation = Pin<Box<dyn Future<Output = UnitOutcome>>>;

/// The end of a restart or verification.
struct UnitOutcome {
    event: Event,
    error: Option<UnitError>,
}

/// The revisions that this process applies, and reports ready with.
#[derive(Clone, Debug, Default)]
pub struct RevisionRule {
    /// The revision with which the process is ready; any if `None`.
    pub expected: Option<String>,
    /// Leave content of another revision to other pods.
    pub only: bool,
}

/// The inputs of a running loop.
#[derive(Debug)]
pub struct Inputs {
    /// Events of the source.
    pub source_events: mpsc::Receiver<SourceEvent>,
    /// Changes of the kubelet's file; `None` if they cannot be watched.
    pub file_events: Option<FileEvents>,
    /// Cancelled when the process is to stop.
    pub stop: CancellationToken,
}

/// A watch for changes of one file.
#[derive(Debug)]
pub struct FileEvents {
    /// The watch of the file's folder.
    pub watch: Watch,
    /// The file's name in the folder.
    pub name: Vec<u8>,
}

impl<D: disk::Disk, U: Units> Syncer<D, U> {
    /// Resumes from the journal of an earlier process.
    pub fn new(file: KubeletFile<D>, units: U, rules: Rules, revision: RevisionRule, status: SharedStatus) -> Self {
        let (state, effects) = decide::start(rules, file.journal(), Timestamp::now());
        let effects = effects.into();
        Self {
            file,
            units,
            status,
            revision,
            state,
            effects,
            credentials: None,
            timer: None,
            unit_operation: None,
            shredded_for: None,
        }
    }

    /// Runs until it is stopped. The next process finds an unfinished change in the journal.
    pub async fn run(mut self, mut inputs: Inputs) {
        self.perform_all();
        loop {
            let event = tokio::select! {
                biased;
                () = inputs.stop.cancelled() => Event::Stop,
                outcome = completed(&mut self.unit_operation) => {
                    self.unit_operation = None;
                    self.record_unit_error(&outcome);
                    outcome.event
                }
                event = inputs.source_events.recv() => match event {
                    Some(event) => match self.source_changed(event) {
                        Some(event) => event,
                        None => continue,
                    },
                    None => Event::Stop,
                },
                () = file_changed(inputs.file_events.as_ref()) => Event::FileChanged,
                () = elapsed(self.timer) => {
                    self.timer = None;
                    Event::TimerFired
                }
            };
            self.handle(event);
            if event == Event::Stop {
                return;
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let (state, effects) = decide::step(self.state, event, Timestamp::now());
        self.state = state;
        self.effects.extend(effects);
        self.perform_all();
    }

    /// Performs the pending effects. An effect on the disk is answered at once, and its answer decided on.
    fn perform_all(&mut self) {
        while let Some(effect) = self.effects.pop_front() {
            if let Some(event) = self.perform(effect) {
                let (state, effects) = decide::step(self.state, event, Timestamp::now());
                self.state = state;
                self.effects.extend(effects);
            }
        }
        self.report_readiness();
        if self.state.is_healthy() && self.leaves_no_other() {
            let revision = self.credentials.as_ref().and_then(Credentials::revision);
            if let Some(revision) = revision {
                self.status.update(|status| status.revision = Some(revision.to_owned()));
            }
        }
    }

    /// Removes the backups if the node is reverted. Returns false as long as they are there: then the revision does not count as
    /// applied.
    fn leaves_no_other(&mut self) -> bool {
        let Some(credentials) = self.credentials.as_ref().filter(|credentials| credentials.is_revert()) else {
            return true;
        };
        if self.shredded_for == Some(credentials.id()) {
            return true;
        }
        let id = credentials.id();
        match self.file.shred_backups() {
            Ok(true) => {
                info!(operation = "shred", "The backups of earlier credentials are removed");
                self.shredded_for = Some(id);
                true
            }
            Ok(false) => false,
            Err(fault) => {
                self.record_disk_fault(&fault);
                false
            }
        }
    }

    /// A process that is for any revision cannot know that it has the newest one while the source is unavailable.
    fn report_readiness(&self) {
        let is_ready = self.is_ready();
        let is_for_one = self.revision.expected.is_some();
        self.status.update(|status| status.ready = is_ready && (is_for_one || status.source_unavailable.is_none()));
    }

    fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Examine => Some(Event::Examined(match self.file.examine() {
                Ok(version) => version,
                Err(fault) => {
                    self.record_disk_fault(&fault);
                    FileVersion::Unreadable
                }
            })),
            Effect::Compare(id) => Some(Event::Compared(self.compare(id))),
            Effect::Prepare(id) => {
                self.shredded_for = None;
                Some(self.on_disk(|file| file.prepare(id)))
            }
            Effect::Write(id) => {
                let event = self.on_disk(|file| file.write(id));
                if event == Event::DiskDone(DiskResult::Succeeded) {
                    info!(operation = "write", "The kubelet's file is replaced");
                    self.status.update(|status| status.counts.writes += 1);
                }
                Some(event)
            }
            Effect::Commit(id) => {
                let event = self.on_disk(|file| file.commit(id));
                self.status.update(|status| status.applied_at = Some(Timestamp::now()));
                Some(event)
            }
            Effect::MarkForRollback => Some(self.on_disk(KubeletFile::mark_for_rollback)),
            Effect::RollBack => {
                let event = self.on_disk(KubeletFile::roll_back);
                if event == Event::DiskDone(DiskResult::Succeeded) {
                    warn!(operation = "rollback", "The kubelet's previous file is put back");
                    self.status.update(|status| status.counts.rollbacks += 1);
                }
                Some(event)
            }
            Effect::FinishRollback(failed) => Some(self.on_disk(|file| file.finish_rollback(failed))),
            Effect::Restart => {
                info!(operation = "restart", "Restarting the kubelet");
                self.status.update(|status| status.counts.restarts += 1);
                let units = self.units.clone();
                self.unit_operation =
                    Some(Box::pin(async move { UnitOutcome::of(units.restart().await, Event::Restarted) }));
                None
            }
            Effect::Verify => {
                let units = self.units.clone();
                self.unit_operation =
                    Some(Box::pin(async move { UnitOutcome::of(units.verify().await, Event::Verified) }));
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

    fn compare(&mut self, id: ContentId) -> Comparison {
        let Some(credentials) = self.credentials.as_ref().filter(|credentials| credentials.id() == id) else {
            return Comparison::Unreadable;
        };
        match self.file.compare(credentials) {
            Ok(comparison) => comparison,
            Err(fault) => {
                self.record_disk_fault(&fault);
                Comparison::Unreadable
            }
        }
    }

    fn on_disk(&mut self, effect: impl FnOnce(&mut KubeletFile<D>) -> Result<(), DiskFault>) -> Event {
        Event::DiskDone(match effect(&mut self.file) {
            Ok(()) => DiskResult::Succeeded,
            Err(DiskFault::FileChanged) => DiskResult::FileChanged,
            Err(fault) => {
                self.record_disk_fault(&fault);
                DiskResult::Failed
            }
        })
    }

    /// Reports a change of the source. Returns the event to decide on, if there is one.
    fn source_changed(&mut self, event: SourceEvent) -> Option<Event> {
        let source = match event {
            SourceEvent::Unavailable(reason) => {
                warn!(operation = "source", "The source is unavailable: {reason}");
                self.status.update(|status| status.source_unavailable = Some(reason));
                self.report_readiness();
                return None;
            }
            SourceEvent::Available => {
                info!(operation = "source", "The source is available again");
                self.status.update(|status| status.source_unavailable = None);
                self.report_readiness();
                return None;
            }
            SourceEvent::Missing => SourceState::Missing,
            SourceEvent::Invalid(reason) => {
                warn!(operation = "source", "The source's content cannot be used: {reason}");
                let fault = format!("the source's content cannot be used: {reason}");
                self.status.update(|status| status.fault = Some(fault));
                SourceState::Invalid
            }
            SourceEvent::Credentials(credentials) => {
                let is_expected = self.revision.expected.as_deref() == credentials.revision();
                if self.revision.only && !is_expected {
                    SourceState::OtherRevision
                } else {
                    let id = credentials.id();
                    self.credentials = Some(credentials);
                    SourceState::Content(id)
                }
            }
        };
        Some(Event::Source(source))
    }

    fn is_ready(&self) -> bool {
        let applied = self.credentials.as_ref().and_then(Credentials::revision);
        let is_expected = self.revision.expected.is_none() || self.revision.expected.as_deref() == applied;
        self.state.is_healthy() && is_expected
    }

    fn record_disk_fault(&self, fault: &DiskFault) {
        warn!(operation = "disk", "{fault}");
        self.status.update(|status| {
            status.counts.disk_faults += 1;
            status.fault = Some(fault.to_string());
        });
    }

    fn record_unit_error(&self, outcome: &UnitOutcome) {
        let Some(error) = &outcome.error else { return };
        let operation = if matches!(outcome.event, Event::Verified(_)) { "verify" } else { "restart" };
        warn!(operation, "{error}");
        self.status.update(|status| {
            match error {
                UnitError::Unreachable(_) => status.counts.systemd_unreachable += 1,
                UnitError::Failed(_) => status.counts.failed_restarts += 1,
            }
            status.fault = Some(error.to_string());
        });
    }

    fn report(&self, reason: Reason) {
        let (name, meaning) = (reason.as_str(), reason.meaning());
        match reason {
            Reason::SourceInvalid
            | Reason::RestartFailed
            | Reason::RollingBack
            | Reason::RollbackUnverified
            | Reason::ContentFailed
            | Reason::RepairDelayed
            | Reason::DiskFault
            | Reason::SystemdUnreachable => warn!(operation = "report", reason = name, "{meaning}"),
            _ => info!(operation = "report", reason = name, "{meaning}"),
        }
        let (_, since) = self.state.reason();
        self.status.update(|status| {
            name.clone_into(&mut status.reason);
            meaning.clone_into(&mut status.message);
            status.since = since;
            if reason == Reason::Applied {
                status.fault = None;
            }
        });
    }
}

// === impl UnitOutcome ===

impl UnitOutcome {
    fn of(result: Result<(), UnitError>, event: fn(UnitResult) -> Event) -> Self {
        let unit = match &result {
            Ok(()) => UnitResult::Succeeded,
            Err(UnitError::Failed(_)) => UnitResult::Failed,
            Err(UnitError::Unreachable(_)) => UnitResult::Unreachable,
        };
        Self { event: event(unit), error: result.err() }
    }
}

/// Waits for the end of a restart or verification; forever if there is none.
async fn completed(operation: &mut Option<UnitOperation>) -> UnitOutcome {
    match operation {
        Some(operation) => operation.await,
        None => std::future::pending().await,
    }
}

/// Waits for a change of the file; forever if it is not watched.
async fn file_changed(events: Option<&FileEvents>) {
    if let Some(FileEvents { watch, name }) = events
        && watch.changed(|changed| changed.is_none_or(|changed| changed == name)).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Waits until the time of the timer; forever if there is none.
async fn elapsed(timer: Option<Instant>) {
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
