//! Parts that run side by side and are ended one after the other, the last one first.

use std::time::Duration;

use anyhow::anyhow;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// A part that has not ended by then is cut off.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The result of a part's work; an error stops the whole fleet plane.
type Ending = anyhow::Result<()>;

/// Parts in the order of their start.
#[derive(Debug)]
pub(crate) struct Parts {
    started: Vec<Part>,
    ends: UnboundedSender<(&'static str, Ending)>,
    ended: UnboundedReceiver<(&'static str, Ending)>,
}

#[derive(Debug)]
struct Part {
    name: &'static str,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

// === impl Parts ===

impl Parts {
    /// None yet.
    pub(crate) fn new() -> Self {
        let (ends, ended) = unbounded_channel();
        Self { started: Vec::new(), ends, ended }
    }

    /// Starts a part; what it logs is said to be its.
    pub(crate) fn start<W>(&mut self, name: &'static str, work: impl FnOnce(CancellationToken) -> W)
    where
        W: Future<Output = Ending> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let (work, ends, stop_requested) = (work(stop.clone()), self.ends.clone(), stop.clone());
        let task = async move {
            let ending = work.await;
            if !stop_requested.is_cancelled() || ending.is_err() {
                // The receiver is gone when everything is being dropped.
                let _unheard = ends.send((name, ending));
            }
        };
        let task = tokio::spawn(task.instrument(tracing::info_span!("part", component = name)));
        self.started.push(Part { name, stop, task });
    }

    /// Waits until a part ends that was not asked to, and returns its name and the cause.
    pub(crate) async fn failure(&mut self) -> anyhow::Error {
        match self.ended.recv().await {
            Some((name, Err(error))) => error.context(format!("the part `{name}` cannot go on")),
            Some((name, Ok(()))) => anyhow!("the part `{name}` has ended by itself"),
            None => std::future::pending().await,
        }
    }

    /// Ends all, the last one first; each may finish what it has begun. Says which had to be cut off.
    pub(crate) async fn stop(self) -> Vec<&'static str> {
        self.stop_within(TIMEOUT).await
    }

    async fn stop_within(self, timeout_after: Duration) -> Vec<&'static str> {
        let mut cut = Vec::new();
        for Part { name, stop, mut task } in self.started.into_iter().rev() {
            tracing::info!(operation = "stop", component = name, "ending");
            stop.cancel();
            if timeout(timeout_after, &mut task).await.is_err() {
                tracing::warn!(operation = "stop", component = name, "has not ended in time and is cut off");
                task.abort();
                cut.push(name);
            }
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn part(parts: &mut Parts, name: &'static str, order: &Arc<Mutex<Vec<&'static str>>>) {
        let order = Arc::clone(order);
        parts.start(name, |stop| async move {
            stop.cancelled().await;
            order.lock().unwrap().push(name);
            Ok(())
        });
    }

    #[tokio::test]
    async fn the_last_part_ends_first_and_one_that_does_not_end_is_cut_off() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut parts = Parts::new();
        part(&mut parts, "first", &order);
        parts.start("deaf", |_stop| std::future::pending());
        part(&mut parts, "last", &order);
        assert_eq!(parts.stop_within(Duration::from_millis(50)).await, ["deaf"]);
        assert_eq!(*order.lock().unwrap(), ["last", "first"]);
    }

    #[tokio::test]
    async fn a_part_that_ends_by_itself_is_reported() {
        let mut parts = Parts::new();
        parts.start("broken", |_stop| async { Err(anyhow!("no disk")) });
        assert_eq!(format!("{:#}", parts.failure().await), "the part `broken` cannot go on: no disk");
        parts.start("done", |_stop| async { Ok(()) });
        assert_eq!(parts.failure().await.to_string(), "the part `done` has ended by itself");
    }
}
