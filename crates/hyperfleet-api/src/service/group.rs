//! A queue of operations that wait for a transaction together.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::{Instant, timeout};

use super::failure::Failure;
use crate::store::StoreError;

/// Maximum number of operations in one transaction.
const MAX_TOGETHER: usize = 32;
/// Maximum time in the queue; only a database that does not answer makes it so long.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Maximum number of these transactions at once: while one waits for its commit, the next one is prepared.
const MAX_SERVERS: usize = 2;
/// Maximum time that the next transaction waits until the one before is prepared, which may wait for other servers.
const MAX_PREPARATION: Duration = Duration::from_millis(50);

/// The operations of a type that wait for a transaction.
pub(super) struct Group<Operation, Done> {
    queue: Mutex<Queue<Operation, Done>>,
    /// The permit to prepare a transaction. Meanwhile the operations wait that the next one takes together.
    preparation: Semaphore,
}

struct Queue<Operation, Done> {
    waiting: VecDeque<Waiting<Operation, Done>>,
    /// Number of tasks that take operations from the queue.
    servers: usize,
}

/// An operation, and the request that waits for its result.
pub(super) struct Waiting<Operation, Done> {
    pub(super) operation: Operation,
    pub(super) answer: oneshot::Sender<Result<Done, Failure>>,
    /// The time at which it was added.
    pub(super) since: Instant,
}

// === impl Group ===

impl<Operation, Done> Group<Operation, Done> {
    /// Adds an operation to the queue; returns true if the caller has to serve the queue.
    pub(super) fn add(&self, waiting: Waiting<Operation, Done>) -> bool {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.push_back(waiting);
        let is_needed = queue.servers < MAX_SERVERS;
        queue.servers += usize::from(is_needed);
        is_needed
    }

    /// Waits for the permit to prepare a transaction, but not long.
    pub(super) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        timeout(MAX_PREPARATION, self.preparation.acquire()).await.ok()?.ok()
    }

    /// Returns true if operations wait.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.queue.lock().unwrap_or_else(PoisonError::into_inner).waiting.is_empty()
    }

    /// Takes the next operations, without those whose request has ended. With none the caller no longer serves the queue.
    pub(super) fn next(&self) -> Option<Vec<Waiting<Operation, Done>>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.retain(|waiting| !waiting.answer.is_closed());
        while queue.waiting.front().is_some_and(|first| first.since.elapsed() > MAX_WAIT) {
            let late = queue.waiting.pop_front();
            let _the_request_has_ended = late.map(|late| late.answer.send(Err(StoreError::timed_out().into())));
        }
        let count = queue.waiting.len().min(MAX_TOGETHER);
        if count == 0 {
            queue.servers = queue.servers.saturating_sub(1);
            return None;
        }
        Some(queue.waiting.drain(..count).collect())
    }
}

impl<Operation, Done> Default for Group<Operation, Done> {
    fn default() -> Self {
        Self { queue: Mutex::new(Queue { waiting: VecDeque::new(), servers: 0 }), preparation: Semaphore::new(1) }
    }
}

impl<Operation, Done> fmt::Debug for Group<Operation, Done> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Group").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answered = oneshot::Receiver<Result<(), Failure>>;

    fn add(group: &Group<u32, ()>, operation: u32) -> (bool, Answered) {
        let (answer, answered) = oneshot::channel();
        (group.add(Waiting { operation, answer, since: Instant::now() }), answered)
    }

    fn next(group: &Group<u32, ()>) -> Option<Vec<u32>> {
        let next = group.next()?;
        Some(next.into_iter().map(|waiting| waiting.operation).collect())
    }

    #[tokio::test]
    async fn what_waits_is_taken_together_by_few_servers() {
        let group = Group::default();
        let waiting: Vec<_> = (0..40).map(|operation| add(&group, operation)).collect();
        assert_eq!(waiting.iter().filter(|(serves, _)| *serves).count(), MAX_SERVERS);
        assert_eq!(next(&group), Some((0..32).collect()));
        assert_eq!(next(&group), Some((32..40).collect()));
        assert_eq!((next(&group), next(&group)), (None, None));
        let (serves, _waits) = add(&group, 40);
        assert!(serves, "the next operation is served again");
    }

    #[tokio::test]
    async fn requests_that_have_ended_leave_the_queue() {
        let group = Group::default();
        let (_, ended) = add(&group, 1);
        let (_, _waits) = add(&group, 2);
        drop(ended);
        assert_eq!(next(&group), Some(vec![2]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_waited_too_long_is_unavailable() {
        let group = Group::default();
        let (_, mut late) = add(&group, 1);
        tokio::time::advance(MAX_WAIT + Duration::from_millis(1)).await;
        let (_, _waits) = add(&group, 2);
        assert_eq!(next(&group), Some(vec![2]));
        assert!(matches!(late.try_recv(), Ok(Err(Failure::Store(error))) if error.is_unavailable()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_ones_wait_for_a_preparation_but_not_long() {
        let group = Group::<u32, ()>::default();
        let first = group.permit().await;
        assert!(first.is_some());
        let began = Instant::now();
        assert!(group.permit().await.is_none(), "one prepares at a time");
        assert_eq!(began.elapsed().as_millis() / 10, MAX_PREPARATION.as_millis() / 10);
        drop(first);
        assert!(group.permit().await.is_some());
    }

    #[tokio::test]
    async fn a_group_knows_that_it_is_waited_for() {
        let group = Group::default();
        assert!(!group.is_waited_for());
        let (_, _waits) = add(&group, 1);
        assert!(group.is_waited_for());
        next(&group);
        assert!(!group.is_waited_for());
    }
}
