//! Retries within the time that a run has left.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::backoff::RetryPolicy;

/// An error that knows if another attempt may succeed.
pub trait Transient {
    /// Returns true if the same request may succeed later without a change of its input.
    fn is_transient(&self) -> bool;

    /// Delay before the next attempt that the server asked for.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

/// Remaining time of a run, ended early by a cancellation.
#[derive(Clone, Debug)]
pub struct Budget {
    deadline: Instant,
    stop: CancellationToken,
}

/// Reason for which a [`Budget`] interrupts work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// The process is shutting down.
    #[error("interrupted by shutdown")]
    Stopped,
    /// The deadline has passed.
    #[error("deadline exceeded")]
    DeadlinePassed,
}

/// Failure of a call that is retried.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure<E> {
    /// The call failed permanently, or after the last retry.
    Failed(E),
    /// The budget interrupted the call; with the last failure, if there was one.
    Interrupted(Interrupted, Option<E>),
}

// === impl Budget ===

impl Budget {
    /// Returns a budget of `time` from now that ends at once when `stop` is cancelled.
    pub fn new(time: Duration, stop: CancellationToken) -> Self {
        Self { deadline: Instant::now() + time, stop }
    }

    /// Runs `work` to its end, or drops it when the budget ends first.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Interrupted::Stopped),
            done = work => Ok(done),
            () = tokio::time::sleep_until(self.deadline) => Err(Interrupted::DeadlinePassed),
        }
    }

    /// Returns true if a delay of this length ends before the deadline.
    pub fn has_time_for(&self, wait: Duration) -> bool {
        Instant::now().checked_add(wait).is_some_and(|end| end < self.deadline)
    }

    /// Waits. Fails at once if the deadline comes before the end of the delay.
    pub async fn pause(&self, wait: Duration) -> Result<(), Interrupted> {
        if self.stop.is_cancelled() {
            return Err(Interrupted::Stopped);
        }
        if !self.has_time_for(wait) {
            return Err(Interrupted::DeadlinePassed);
        }
        self.run(sleep(wait)).await
    }

    /// Calls `attempt` until it succeeds, fails permanently, has no retry left, or the budget ends.
    ///
    /// `on_retry` is called before each delay with the number of failed attempts, the delay and the failure.
    pub async fn retry<T, E: Transient>(
        &self,
        policy: &RetryPolicy,
        on_retry: impl Fn(u32, Duration, &E),
        mut attempt: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<T, Failure<E>> {
        let mut failures = 0;
        let mut last = None;
        loop {
            let error = match self.run(attempt()).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                Err(interrupted) => return Err(Failure::Interrupted(interrupted, last)),
            };
            failures += 1;
            let delay = policy.delay(failures, rand::random()).filter(|_| error.is_transient());
            let Some(delay) = delay else {
                return Err(Failure::Failed(error));
            };
            let wait = delay.max(error.retry_after().unwrap_or_default());
            // A delay beyond the deadline is no retry: the failure is final.
            if !self.has_time_for(wait) {
                return Err(Failure::Failed(error));
            }
            on_retry(failures, wait, &error);
            if let Err(interrupted) = self.pause(wait).await {
                return Err(Failure::Interrupted(interrupted, Some(error)));
            }
            last = Some(error);
        }
    }
}

// === impl Failure ===

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(formatter),
            Self::Interrupted(interrupted, None) => interrupted.fmt(formatter),
            Self::Interrupted(interrupted, Some(error)) => write!(formatter, "{interrupted}; last failure: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::backoff::Backoff;

    const POLICY: RetryPolicy = RetryPolicy {
        backoff: Backoff::doubling(Duration::from_secs(1), Duration::from_secs(4)).with_jitter(20),
        max_retries: 3,
    };

    #[derive(Debug, PartialEq, Eq)]
    struct Error {
        transient: bool,
        retry_after: Option<Duration>,
    }

    impl Transient for Error {
        fn is_transient(&self) -> bool {
            self.transient
        }

        fn retry_after(&self) -> Option<Duration> {
            self.retry_after
        }
    }

    const BUSY: Error = Error { transient: true, retry_after: None };

    fn budget(seconds: u64) -> Budget {
        Budget::new(Duration::from_secs(seconds), CancellationToken::new())
    }

    #[test]
    fn delays_stay_within_their_jitter_and_end() {
        assert_eq!(POLICY.delay(1, 0.0), Some(Duration::from_millis(800)));
        assert_eq!(POLICY.delay(2, 0.5), Some(Duration::from_secs(2)));
        assert_eq!(POLICY.delay(3, 1.0), Some(Duration::from_secs_f64(4.8)));
        assert_eq!(POLICY.delay(4, 0.5), None);
    }

    #[tokio::test(start_paused = true)]
    async fn tries_once_and_three_times_more() {
        let attempts = Cell::new(0);
        let waits = RefCell::new(Vec::new());
        let on_retry = |_, wait: Duration, _: &Error| waits.borrow_mut().push(wait.as_secs_f64().round());
        let result: Result<(), _> = budget(60)
            .retry(&POLICY, on_retry, async || {
                attempts.set(attempts.get() + 1);
                Err(BUSY)
            })
            .await;
        assert_eq!(result, Err(Failure::Failed(BUSY)));
        assert_eq!(attempts.get(), 4);
        assert_eq!(waits.into_inner().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn stops_at_once_on_a_permanent_failure_and_on_success() {
        let permanent = || Error { transient: false, retry_after: None };
        let on_retry = |_, _, _: &Error| panic!("nothing is retried");
        let failed: Result<(), _> = budget(60).retry(&POLICY, on_retry, async || Err(permanent())).await;
        assert_eq!(failed, Err(Failure::Failed(permanent())));
        assert_eq!(budget(60).retry(&POLICY, on_retry, async || Ok(7)).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn waits_as_long_as_the_server_asks() {
        let start = Instant::now();
        let first = Cell::new(true);
        let attempt = async || {
            let busy = Error { transient: true, retry_after: Some(Duration::from_secs(9)) };
            if first.replace(false) { Err(busy) } else { Ok(()) }
        };
        assert_eq!(budget(60).retry(&POLICY, |_, _, _| {}, attempt).await, Ok(()));
        assert_eq!(start.elapsed().as_secs(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_before_a_wait_that_leads_past_the_deadline() {
        let start = Instant::now();
        let result: Result<(), _> = budget(2).retry(&POLICY, |_, _, _| {}, async || Err(BUSY)).await;
        assert_eq!(result, Err(Failure::Failed(BUSY)));
        assert!(start.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_hangs_ends_at_the_deadline_or_when_stopped() {
        let hang = async || std::future::pending::<Result<(), Error>>().await;
        let interrupted = |interrupted| Err(Failure::Interrupted(interrupted, None));
        assert_eq!(budget(2).retry(&POLICY, |_, _, _| {}, hang).await, interrupted(Interrupted::DeadlinePassed));
        let stop = CancellationToken::new();
        stop.cancel();
        let stopped = Budget::new(Duration::from_mins(1), stop);
        assert_eq!(stopped.retry(&POLICY, |_, _, _| {}, hang).await, interrupted(Interrupted::Stopped));
    }
}
