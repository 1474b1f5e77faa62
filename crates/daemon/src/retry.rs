//! Trying again: when, how often, and never beyond the time that the run has left.

use std::fmt;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// An error that knows whether another attempt may help.
pub trait Transient {
    /// Whether the same request may succeed later without anybody's doing.
    fn is_transient(&self) -> bool;

    /// How long the server asked to wait before the next attempt.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

/// The waits between attempts: as many retries as there are delays.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The wait after the first failure, after the second, and so on.
    pub delays: &'static [Duration],
    /// How far a wait may stray from its delay, as a fraction of it: 0.2 is ±20 %.
    pub jitter: f64,
}

/// What a run may still spend: its time, and the permission to go on.
#[derive(Clone, Debug)]
pub struct Budget {
    deadline: Instant,
    stop: CancellationToken,
}

/// Why a run may not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// The program was told to stop.
    #[error("told to stop")]
    Stopped,
    /// The run's time is over.
    #[error("the run's time is over")]
    DeadlinePassed,
}

/// Why a call has no result.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure<E> {
    /// The call failed for good, or still after the last retry.
    Failed(E),
    /// The budget was spent; with the failure that the run was waiting to get over, if there was one.
    Spent(Spent, Option<E>),
}

// === impl Backoff ===

impl Backoff {
    /// The wait before the next attempt after that many failures; `None` when there is no next attempt.
    ///
    /// `random` is a number from 0 to 1 that places the wait within its jitter.
    pub fn delay(&self, failures: usize, random: f64) -> Option<Duration> {
        let delay = self.delays.get(failures.checked_sub(1)?)?;
        Some(delay.mul_f64(1.0 + self.jitter * (2.0 * random.clamp(0.0, 1.0) - 1.0)))
    }
}

// === impl Budget ===

impl Budget {
    /// A budget of `time` from now, spent at once when `stop` is cancelled.
    pub fn new(time: Duration, stop: CancellationToken) -> Self {
        Self { deadline: Instant::now() + time, stop }
    }

    /// Carries `work` out unless the budget is spent first; it is then dropped where it is.
    pub async fn spend<T>(&self, work: impl Future<Output = T>) -> Result<T, Spent> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Spent::Stopped),
            done = work => Ok(done),
            () = tokio::time::sleep_until(self.deadline) => Err(Spent::DeadlinePassed),
        }
    }

    /// Whether the deadline lies behind the end of such a wait.
    pub fn has_time_for(&self, wait: Duration) -> bool {
        Instant::now().checked_add(wait).is_some_and(|end| end < self.deadline)
    }

    /// Waits; gives up at once when the deadline lies before the end of the wait.
    pub async fn pause(&self, wait: Duration) -> Result<(), Spent> {
        if self.stop.is_cancelled() {
            return Err(Spent::Stopped);
        }
        if !self.has_time_for(wait) {
            return Err(Spent::DeadlinePassed);
        }
        self.spend(sleep(wait)).await
    }

    /// Calls `attempt` until it succeeds, fails for good, has no retry left, or the budget is spent.
    ///
    /// `tell` hears of every retry: how many attempts have failed, the wait, and the failure.
    pub async fn retry<T, E: Transient>(
        &self,
        backoff: &Backoff,
        tell: impl Fn(usize, Duration, &E),
        mut attempt: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<T, Failure<E>> {
        let mut failures = 0;
        let mut last = None;
        loop {
            let error = match self.spend(attempt()).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                Err(spent) => return Err(Failure::Spent(spent, last)),
            };
            failures += 1;
            let delay = backoff.delay(failures, rand::random()).filter(|_| error.is_transient());
            let Some(delay) = delay else {
                return Err(Failure::Failed(error));
            };
            let wait = delay.max(error.retry_after().unwrap_or_default());
            // A wait that does not fit is no retry: the failure stands as it is.
            if !self.has_time_for(wait) {
                return Err(Failure::Failed(error));
            }
            tell(failures, wait, &error);
            if let Err(spent) = self.pause(wait).await {
                return Err(Failure::Spent(spent, Some(error)));
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
            Self::Spent(spent, None) => spent.fmt(formatter),
            Self::Spent(spent, Some(error)) => write!(formatter, "{spent}; last failure: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const BACKOFF: Backoff =
        Backoff { delays: &[Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)], jitter: 0.2 };

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
        assert_eq!(BACKOFF.delay(1, 0.0), Some(Duration::from_millis(800)));
        assert_eq!(BACKOFF.delay(2, 0.5), Some(Duration::from_secs(2)));
        assert_eq!(BACKOFF.delay(3, 1.0), Some(Duration::from_secs_f64(4.8)));
        assert_eq!(BACKOFF.delay(4, 0.5), None);
    }

    #[tokio::test(start_paused = true)]
    async fn tries_once_and_three_times_more() {
        let attempts = Cell::new(0);
        let waits = RefCell::new(Vec::new());
        let tell = |_, wait: Duration, _: &Error| waits.borrow_mut().push(wait.as_secs_f64().round());
        let result: Result<(), _> = budget(60)
            .retry(&BACKOFF, tell, async || {
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
        let tell = |_, _, _: &Error| panic!("nothing is retried");
        let failed: Result<(), _> = budget(60).retry(&BACKOFF, tell, async || Err(permanent())).await;
        assert_eq!(failed, Err(Failure::Failed(permanent())));
        assert_eq!(budget(60).retry(&BACKOFF, tell, async || Ok(7)).await, Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn waits_as_long_as_the_server_asks() {
        let start = Instant::now();
        let first = Cell::new(true);
        let attempt = async || {
            let busy = Error { transient: true, retry_after: Some(Duration::from_secs(9)) };
            if first.replace(false) { Err(busy) } else { Ok(()) }
        };
        assert_eq!(budget(60).retry(&BACKOFF, |_, _, _| {}, attempt).await, Ok(()));
        assert_eq!(start.elapsed().as_secs(), 9);
    }

    #[tokio::test(start_paused = true)]
    async fn gives_up_before_a_wait_that_leads_past_the_deadline() {
        let start = Instant::now();
        let result: Result<(), _> = budget(2).retry(&BACKOFF, |_, _, _| {}, async || Err(BUSY)).await;
        assert_eq!(result, Err(Failure::Failed(BUSY)));
        assert!(start.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_hangs_ends_at_the_deadline_or_when_stopped() {
        let hang = async || std::future::pending::<Result<(), Error>>().await;
        let spent = |spent| Err(Failure::Spent(spent, None));
        assert_eq!(budget(2).retry(&BACKOFF, |_, _, _| {}, hang).await, spent(Spent::DeadlinePassed));
        let stop = CancellationToken::new();
        stop.cancel();
        let stopped = Budget::new(Duration::from_mins(1), stop);
        assert_eq!(stopped.retry(&BACKOFF, |_, _, _| {}, hang).await, spent(Spent::Stopped));
    }
}
