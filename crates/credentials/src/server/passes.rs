//! Repeated work of which one replica does each piece.

use std::error::Error;
use std::time::Duration;

use daemon::log::causes;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// Attempts `pass` in each interval until `stop`. A failure is logged, and the next attempt is made as usual.
pub(super) async fn repeat<P, E>(
    operation: &'static str,
    attempts: Duration,
    stop: &CancellationToken,
    pass: impl Fn() -> P,
) where
    P: Future<Output = Result<(), E>>,
    E: Error + 'static,
{
    let mut ticks = interval(attempts);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
