//! One call from its arrival to its answer, the same for both wires: record, wait, gate, decide, store, apply.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::faults::{Effect, Fault};
use super::files::Files;
use super::gate::Gate;
use super::method::Method;
use super::settings::{Call, Settings, Wire};
use super::state::{State, Write};
use super::status::{Code, Status};
use super::wire::{Request, Response};
use crate::start_error::StartError;

/// The end of a call: an answer, or silence.
pub(crate) type Answer = Result<Result<Response, Status>, Silence>;

/// The end of a call that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Drop the connection.
    Cut,
    /// Keep it waiting.
    Hang,
}

/// A call as a wire has read it.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) wire: Wire,
    pub(crate) method: Method,
    pub(crate) resource: String,
    pub(crate) authorization: Option<String>,
    /// Refused already if it could not be understood.
    pub(crate) request: Result<Request, Status>,
}

/// The server's memory, shared by all connections.
#[derive(Debug)]
pub(crate) struct Engine {
    inner: Mutex<Inner>,
    received: watch::Sender<usize>,
    clock: fn() -> Timestamp,
    latency: Duration,
    /// Cancelled when the server stops; calls that hang end then.
    pub(crate) stopping: CancellationToken,
}

#[derive(Debug)]
struct Inner {
    state: State,
    gate: Gate,
    files: Option<Files>,
    calls: Vec<Call>,
    ahead: SignedDuration,
    closed: bool,
}

impl Engine {
    pub(crate) fn open(settings: &Settings, clock: fn() -> Timestamp) -> Result<Self, StartError> {
        let lag = SignedDuration::try_from(settings.metadata_lag).unwrap_or(SignedDuration::MAX);
        let mut state = State::new(lag);
        let files = settings.data_dir.as_deref().map(Files::open).transpose()?;
        if let Some(files) = &files {
            files.load(&mut state)?;
        }
        let inner = Inner {
            state,
            gate: Gate::new(settings),
            files,
            calls: Vec::new(),
            ahead: SignedDuration::ZERO,
            closed: false,
        };
        Ok(Self {
            inner: Mutex::new(inner),
            received: watch::Sender::new(0),
            clock,
            latency: settings.latency,
            stopping: CancellationToken::new(),
        })
    }

    /// Takes a call, and says how it ends.
    pub(crate) async fn call(&self, asked: Asked) -> Answer {
        let index = self.record(&asked);
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let now = (self.clock)();
        let mut inner = self.lock();
        let answer = inner.answer(now, asked);
        if let (Ok(result), Some(call)) = (&answer, inner.calls.get_mut(index)) {
            call.outcome = Some(result.as_ref().map_or_else(|status| status.code, |_| Code::Ok));
        }
        answer
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    pub(crate) async fn wait_for_calls(&self, count: usize) {
        let mut received = self.received.subscribe();
        // The sender lives as long as this engine, so waiting cannot fail.
        drop(received.wait_for(|received| *received >= count).await);
    }

    pub(crate) fn inject(&self, fault: Fault) {
        self.lock().gate.faults.add(fault);
    }

    pub(crate) fn clear_faults(&self) {
        self.lock().gate.faults.clear();
    }

    pub(crate) fn advance_clock(&self, by: Duration) {
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        let mut inner = self.lock();
        inner.ahead = inner.ahead.saturating_add(by);
    }

    /// Lets go of the folder; later calls are refused.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.files = None;
    }

    fn record(&self, asked: &Asked) -> usize {
        let mut inner = self.lock();
        let call = Call { method: asked.method, resource: asked.resource.clone(), wire: asked.wire, outcome: None };
        inner.calls.push(call);
        let count = inner.calls.len();
        self.received.send_replace(count);
        count - 1
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic between two statements of `Inner` leaves nothing half done: writes replace whole records.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn answer(&mut self, now: Timestamp, asked: Asked) -> Answer {
        if self.closed {
            return Ok(Err(Status::unavailable("The server is stopping.")));
        }
        // The emulator's clock stops at the end of time rather than wrapping around.
        let now = now.checked_add(self.ahead).unwrap_or(Timestamp::MAX);
        let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        let Asked { method, resource, authorization, request, .. } = asked;
        let effect = match self.gate.check(now, method, &resource, authorization.as_deref()) {
            Err(status) => return Ok(Err(status)),
            Ok(Some(Effect::Cut)) => return Err(Silence::Cut),
            Ok(Some(Effect::Hang)) => return Err(Silence::Hang),
            Ok(effect) => effect,
        };
        let result = request.and_then(|request| self.perform(now, &request));
        match effect {
            Some(Effect::CommitThenCut) => Err(Silence::Cut),
            Some(Effect::CommitThenHang) => Err(Silence::Hang),
            Some(Effect::CommitThenTimeout) => {
                let message = "Scripted fault: the deadline expired before the operation could complete.";
                Ok(Err(Status::new(Code::DeadlineExceeded, message)))
            }
            _ => Ok(result),
        }
    }

    fn perform(&mut self, now: Timestamp, request: &Request) -> Result<Response, Status> {
        for write in self.state.due(now) {
            self.commit(now, write)?;
        }
        let decision = self.state.decide(now, request)?;
        if let Some(write) = decision.write {
            self.commit(now, write)?;
        }
        Ok(match decision.response {
            Response::Permissions(mut asked) => {
                asked.permissions = self.gate.granted(&asked.permissions);
                Response::Permissions(asked)
            }
            response => response,
        })
    }

    /// Stored first, visible afterwards: what was answered survives a crash.
    fn commit(&mut self, now: Timestamp, write: Write) -> Result<(), Status> {
        if let Some(files) = &self.files {
            let stored = files.store(&write);
            stored
                .map_err(|error| Status::internal(format!("Secret [{}] could not be stored: {error}.", write.key)))?;
        }
        self.state.apply(now, write);
        Ok(())
    }
}
