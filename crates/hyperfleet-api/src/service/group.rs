//! A queue of operations that wait for a transaction together.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use super::failure::Failure;

/// Maximum number of operations in one transaction.
const MAX_TOGETHER: usize = 32;
/// Maximum number of these transactions at once: while one waits for its commit, the next one is prepared.
const MAX_SERVERS: usize = 2;

/// The operations of a type that wait for a transaction.
pub(super) struct Group<Operation, Done> {
    queue: Mutex<Queue<Operation, Done>>,
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

    /// Takes the next operations. With none the caller no longer serves the queue.
    pub(super) fn next(&self) -> Option<Vec<Waiting<Operation, Done>>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
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
        Self { queue: Mutex::new(Queue { waiting: VecDeque::new(), servers: 0 }) }
    }
}

impl<Operation, Done> fmt::Debug for Group<Operation, Done> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Group").finish_non_exhaustive()
    }
}
