//! Readiness of a daemon: its states, and the loops that keep it up to date.

use std::fmt;
use std::time::Duration;

use tokio::sync::watch;

use crate::passes::every;

/// Readiness of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The daemon can do its work.
    Ready,
    /// The daemon cannot do its work, for this reason.
    NotReady(String),
    /// The daemon is shutting down. Final.
    ShuttingDown,
}

/// Publishes a daemon's readiness. Logs each change; [`Readiness::ShuttingDown`] is never replaced.
#[derive(Clone, Debug)]
pub struct ReadinessSender(watch::Sender<Readiness>);

// === impl Readiness ===

impl fmt::Display for Readiness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => formatter.write_str("ready"),
            Self::NotReady(reason) => write!(formatter, "not ready: {reason}"),
            Self::ShuttingDown => formatter.write_str("shutting down"),
        }
    }
}

// === impl ReadinessSender ===

impl ReadinessSender {
    /// Starts as not ready, for this reason.
    pub fn not_ready(reason: &str) -> Self {
        Self(watch::Sender::new(Readiness::NotReady(reason.to_owned())))
    }

    /// Returns a receiver of the current state and of all later ones.
    pub fn subscribe(&self) -> watch::Receiver<Readiness> {
        self.0.subscribe()
    }

    /// Publishes a state.
    pub fn set(&self, now: Readiness) {
        self.0.send_if_modified(|published| {
            let changes = *published != now && *published != Readiness::ShuttingDown;
            if changes {
                tracing::info!(operation = "readiness", readiness = %now, "readiness has changed");
                *published = now;
            }
            changes
        });
    }

    /// Publishes the readiness of each state that `source` receives. Returns when the sender of `source` is dropped.
    pub async fn follow<T>(&self, mut source: watch::Receiver<T>, readiness: impl Fn(&T) -> Readiness) {
        loop {
            let now = readiness(&source.borrow_and_update());
            self.set(now);
            if source.changed().await.is_err() {
                return;
            }
        }
    }

    /// Publishes the result of `check` once per `period`, for as long as it is polled.
    pub async fn poll<F: Future<Output = Readiness>>(&self, period: Duration, check: impl Fn() -> F) {
        every(period, || async { self.set(check().await) }).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn follows_a_state_until_its_sender_is_gone() {
        let readiness = ReadinessSender::not_ready("has not started");
        let (state, source) = watch::channel(false);
        let ready = |state: &bool| if *state { Readiness::Ready } else { Readiness::NotReady("no".to_owned()) };
        let mut published = readiness.subscribe();
        let changes = async {
            published.changed().await.unwrap();
            assert_eq!(published.borrow_and_update().to_string(), "not ready: no");
            state.send_replace(true);
            published.changed().await.unwrap();
            assert_eq!(*published.borrow(), Readiness::Ready);
            drop(state);
        };
        tokio::join!(readiness.follow(source, ready), changes);
    }

    #[tokio::test(start_paused = true)]
    async fn polls_once_per_period() {
        let readiness = ReadinessSender::not_ready("has not started");
        let checks = Cell::new(0);
        let check = || {
            checks.set(checks.get() + 1);
            std::future::ready(Readiness::NotReady(checks.get().to_string()))
        };
        let polling = readiness.poll(Duration::from_secs(5), check);
        let _endless = tokio::time::timeout(Duration::from_secs(12), polling).await;
        assert_eq!(readiness.subscribe().borrow().to_string(), "not ready: 3");
    }

    #[test]
    fn shutting_down_is_final() {
        let readiness = ReadinessSender::not_ready("has not started");
        readiness.set(Readiness::ShuttingDown);
        readiness.set(Readiness::Ready);
        assert_eq!(*readiness.subscribe().borrow(), Readiness::ShuttingDown);
    }
}
