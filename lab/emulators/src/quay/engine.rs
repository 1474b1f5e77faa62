//! One call from its arrival to its answer: record, wait, gate, handle.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::gate::{Gate, Passed};
use super::operation::Operation;
use super::refusal::Refusal;
use super::request::Request;
use super::settings::{Call, Pull, Robot, Settings};
use super::signing::Signing;
use super::state::{Moment, State};
use crate::http_faults::{Aim, Delivery, Effect, Fault};

/// The lifetime of a token that a cluster's issuer signs.
const SUBJECT_TOKEN_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// The end of a call: an answer, and the way in which it is given.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) result: Result<Answer, Refusal>,
    pub(crate) delivery: Delivery,
}

/// The server's memory, shared by all connections.
#[derive(Debug)]
pub(crate) struct Engine {
    inner: Mutex<Inner>,
    authority: String,
    received: watch::Sender<usize>,
    /// The number of pulls in the usage log.
    pulled: watch::Sender<usize>,
    clock: fn() -> Timestamp,
    latency: Duration,
    pub(crate) service: String,
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
    pub(crate) fn new(settings: &Settings, signing: Signing, clock: fn() -> Timestamp) -> Self {
        let state = State::new(settings, signing);
        let authority = state.authority().to_owned();
        let ahead = SignedDuration::try_from(settings.clock_lag).map_or(SignedDuration::MIN, |lag| -lag);
        let gate = Gate::new(settings, clock().checked_add(ahead).unwrap_or(Timestamp::MIN));
        Self {
            inner: Mutex::new(Inner { state, gate, calls: Vec::new(), ahead }),
            authority,
            received: watch::Sender::new(0),
            pulled: watch::Sender::new(0),
            clock,
            latency: settings.latency,
            service: settings.service.clone(),
            stopping: CancellationToken::new(),
        }
    }

    /// Takes a call, and says how it ends; `target` is the robot, team or repository that it is about.
    pub(crate) async fn call(&self, request: Request, target: String) -> End {
        let index = self.record(&request, &target);
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let aim = Aim { operation: request.operation, target };
        let (end, delay) = self.answer(&request, &aim);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if let Some(call) = self.lock().calls.get_mut(index) {
            call.outcome = match (&end.result, end.delivery) {
                (_, Delivery::Cut | Delivery::Hang) => None,
                (Err(refusal), Delivery::Whole | Delivery::Stalled) => Some(refusal.status),
                (Ok(answer), Delivery::Whole | Delivery::Stalled) => Some(answer.status),
                (_, Delivery::Garbage | Delivery::Huge) => Some(200),
            };
        }
        end
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn subject_token(&self, issuer: &str, subject: &str, audience: &str) -> String {
        let inner = self.lock();
        let now = inner.now(self.clock);
        let until = now.saturating_add(SUBJECT_TOKEN_LIFETIME).unwrap_or(Timestamp::MAX);
        let claims = json!({
            "iss": issuer, "sub": subject, "aud": [audience], "iat": now.as_second(), "exp": until.as_second(),
        });
        inner.state.subject_token(&claims)
    }

    /// The time of the server's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.lock().now(self.clock)
    }

    pub(crate) fn robots(&self) -> Vec<Robot> {
        self.lock().state.robots()
    }

    pub(crate) fn pulls(&self) -> Vec<Pull> {
        self.lock().state.pulls()
    }

    pub(crate) fn add_repository(&self, name: &str) {
        self.lock().state.add_repository(name);
    }

    pub(crate) fn add_pusher(&self, name: &str, repository: &str) -> String {
        let mut inner = self.lock();
        let now = inner.now(self.clock);
        inner.state.add_pusher(now, name, repository)
    }

    pub(crate) fn record_pull(&self, pull: &Pull) {
        let mut inner = self.lock();
        let now = inner.now(self.clock);
        inner.state.record_pull(now, pull);
        self.pulled.send_replace(inner.state.pulled());
    }

    pub(crate) async fn wait_for_pulls(&self, count: usize) {
        let mut pulled = self.pulled.subscribe();
        // The sender lives as long as this engine, so waiting cannot fail.
        drop(pulled.wait_for(|pulled| *pulled >= count).await);
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    pub(crate) async fn wait_for_calls(&self, count: usize) {
        let mut received = self.received.subscribe();
        // The sender lives as long as this engine, so waiting cannot fail.
        drop(received.wait_for(|received| *received >= count).await);
    }

    pub(crate) fn inject(&self, fault: Fault<Operation>) {
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

    fn record(&self, request: &Request, target: &str) -> usize {
        let mut inner = self.lock();
        inner.calls.push(Call { operation: request.operation, target: target.to_owned(), outcome: None });
        let count = inner.calls.len();
        self.received.send_replace(count);
        count - 1
    }

    fn answer(&self, request: &Request, aim: &Aim<Operation>) -> (End, Duration) {
        let mut inner = self.lock();
        let now = inner.now(self.clock);
        let answer = inner.answer(now, request, aim);
        self.pulled.send_replace(inner.state.pulled());
        answer
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

    fn answer(&mut self, now: Timestamp, request: &Request, aim: &Aim<Operation>) -> (End, Duration) {
        let whole = |result| (End { result, delivery: Delivery::Whole }, Duration::ZERO);
        let Passed { user, effect } = match self.gate.check(now, request, aim) {
            Ok(passed) => passed,
            Err(refusal) => return whole(Err(refusal)),
        };
        let result = if effect.is_none_or(Effect::commits) {
            self.state.handle(Moment { now, user: &user }, request)
        } else {
            Ok(Answer::empty())
        };
        let Some(effect) = effect else { return whole(result) };
        if let Some(refused) = effect.refused() {
            let refusal = Refusal::scripted(refused.status, request.operation.form(), "Scripted fault");
            return whole(Err(refusal.with_retry(refused.retry_after)));
        }
        (End { result, delivery: effect.delivery() }, effect.delay())
    }
}
