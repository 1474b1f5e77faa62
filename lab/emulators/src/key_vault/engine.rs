//! One call from its arrival to its answer: record, wait, gate, handle.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::entra::Form;
use super::faults::{Effect, Fault};
use super::gate::Gate;
use super::operation::Operation;
use super::refusal::Refusal;
use super::request::Request;
use super::settings::{Call, Settings};
use super::state::State;

/// The end of a call: an answer, or silence.
pub(crate) type Answer = Result<Result<Value, Refusal>, Silence>;

/// The end of a call that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Drop the connection.
    Cut,
    /// Keep it waiting.
    Hang,
}

/// A call as the wire has read it. It holds a credential, and is never printed.
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    /// The secret's name; empty where there is none.
    pub(crate) name: String,
    /// The name with the version, if there is one.
    pub(crate) resource: String,
    pub(crate) authorization: Option<String>,
    /// Refused already if it could not be understood.
    pub(crate) body: Result<Body, Refusal>,
}

/// The contents of a call.
pub(crate) enum Body {
    Secrets(Box<Request>),
    Token(Form),
}

/// The server's memory, shared by all connections.
#[derive(Debug)]
pub(crate) struct Engine {
    inner: Mutex<Inner>,
    received: watch::Sender<usize>,
    clock: fn() -> Timestamp,
    latency: Duration,
    pub(crate) tenant: String,
    /// Cancelled when the server stops; calls that hang end then.
    pub(crate) stopping: CancellationToken,
}

#[derive(Debug)]
struct Inner {
    state: State,
    gate: Gate,
    calls: Vec<Call>,
    ahead: SignedDuration,
}

impl Engine {
    pub(crate) fn new(settings: &Settings, clock: fn() -> Timestamp) -> Self {
        let inner = Inner {
            state: State::new(settings),
            gate: Gate::new(settings),
            calls: Vec::new(),
            ahead: SignedDuration::ZERO,
        };
        Self {
            inner: Mutex::new(inner),
            received: watch::Sender::new(0),
            clock,
            latency: settings.latency,
            tenant: settings.tenant.clone(),
            stopping: CancellationToken::new(),
        }
    }

    /// Takes a call, and says how it ends.
    pub(crate) async fn call(&self, asked: Asked) -> Answer {
        let index = self.record(&asked);
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let mut inner = self.lock();
        let now = inner.now(self.clock);
        let answer = inner.answer(now, asked);
        if let (Ok(result), Some(call)) = (&answer, inner.calls.get_mut(index)) {
            call.outcome = Some(result.as_ref().map_or_else(|refusal| refusal.status, status));
        }
        answer
    }

    pub(crate) fn assertion(&self, subject: &str) -> String {
        let inner = self.lock();
        inner.gate.entra.assertion(inner.now(self.clock), subject)
    }

    /// The time of the server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.lock().now(self.clock)
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

    fn record(&self, asked: &Asked) -> usize {
        let mut inner = self.lock();
        inner.calls.push(Call { operation: asked.operation, resource: asked.resource.clone(), outcome: None });
        let count = inner.calls.len();
        self.received.send_replace(count);
        count - 1
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic between two statements of `Inner` leaves nothing half done: writes replace whole values.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The emulator's clock stops at the end of time rather than wrapping around.
    fn now(&self, clock: fn() -> Timestamp) -> Timestamp {
        clock().checked_add(self.ahead).unwrap_or(Timestamp::MAX)
    }

    fn answer(&mut self, now: Timestamp, asked: Asked) -> Answer {
        let Asked { operation, name, authorization, body, .. } = asked;
        let effect = match self.gate.check(now, operation, &name, authorization.as_deref()) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(Some(Effect::Cut)) => return Err(Silence::Cut),
            Ok(Some(Effect::Hang)) => return Err(Silence::Hang),
            Ok(effect) => effect,
        };
        let result = body.and_then(|body| match body {
            Body::Secrets(request) => self.state.handle(now, &request),
            Body::Token(form) => self.gate.entra.token(now, &form),
        });
        match effect {
            Some(Effect::CommitThenCut) => Err(Silence::Cut),
            Some(Effect::CommitThenHang) => Err(Silence::Hang),
            Some(Effect::CommitThenTimeout) => {
                Ok(Err(Refusal::new(504, "GatewayTimeout", "Scripted fault: the gateway timed out.")))
            }
            _ => Ok(result),
        }
    }
}

/// The status of an answer: one without a body has a status of its own.
pub(crate) fn status(answer: &Value) -> u16 {
    if answer.is_null() { 204 } else { 200 }
}
