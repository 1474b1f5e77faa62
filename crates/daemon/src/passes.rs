//! Work that is repeated at an interval.

use std::error::Error;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::log::causes;

/// Returns ticks, the first one at once. After a late tick the next one comes a whole period later.
pub fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Makes a pass at once and then in each period, for as long as it is polled.
pub async fn every<P: Future<Output = ()>>(period: Duration, pass: impl Fn() -> P) {
    let mut ticks = ticks(period);
    loop {
        ticks.tick().await;
        pass().await;
    }
}

/// Attempts a pass at once and then in each period, until `stop`. A failure is logged, and the next attempt is made as usual.
pub async fn repeat<P, E>(operation: &'static str, period: Duration, stop: &CancellationToken, pass: impl Fn() -> P)
where
    P: Future<Output = Result<(), E>>,
    E: Error + 'static,
{
    let mut ticks = ticks(period);
    loop {
        tokio::select! {
            _now = ticks.tick() => {}
            () = stop.cancelled() => return,
        }
        match pass().await {
            Ok(()) => {}
            Err(_stopped) if stop.is_cancelled() => return,
            Err(error) => tracing::warn!(operation, cause = causes(&error), "the pass is not complete"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    const PERIOD: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_pass_is_made_at_once_in_each_period_and_later_after_a_slow_one() {
        let (start, passes) = (Instant::now(), RefCell::new(Vec::new()));
        let pass = || async {
            passes.borrow_mut().push(start.elapsed().as_secs());
            let is_slow = passes.borrow().len() == 2;
            if is_slow {
                sleep(Duration::from_secs(8)).await;
            }
        };
        let _endless = timeout(Duration::from_secs(20), every(PERIOD, pass)).await;
        assert_eq!(*passes.borrow(), [0, 5, 13, 18]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_pass_is_attempted_again_until_the_stop() {
        let (stop, attempts) = (CancellationToken::new(), Cell::new(0));
        let pass = || async {
            attempts.set(attempts.get() + 1);
            if attempts.get() == 3 {
                stop.cancel();
            }
            Err(std::io::Error::other("refused"))
        };
        timeout(Duration::from_secs(11), repeat("test", PERIOD, &stop, pass)).await.expect("it ends with the stop");
        assert_eq!(attempts.get(), 3);
    }
}
