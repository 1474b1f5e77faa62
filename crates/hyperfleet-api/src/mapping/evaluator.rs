//! A bounded pool of threads that evaluates condition mappings, apart from the runtime's threads.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{mpsc, oneshot};

use super::stack::{self, DeepStack};
use super::{Mapper, MappingError};
use crate::decide::mapped::MappedCondition;
use crate::resource::Resource;

/// Maximum number of threads.
const MAX_THREADS: usize = 4;
/// Maximum number of evaluations that wait for a thread. Further callers wait until there is space.
const MAX_QUEUED: usize = 64;

/// The mappings of all kinds, and the threads that evaluate them. The threads end when it is dropped.
#[derive(Debug)]
pub struct Evaluator {
    mappers: BTreeMap<String, Arc<Mapper>>,
    queue: mpsc::Sender<Task>,
}

/// One evaluation: of the mappings of the resource's kind on the resource.
#[derive(Debug)]
pub(crate) struct Task {
    mapper: Arc<Mapper>,
    pub(crate) resource: Box<Resource>,
    reply: oneshot::Sender<Result<Vec<MappedCondition>, MappingError>>,
}

// === impl Evaluator ===

impl Evaluator {
    /// Starts the threads; none if there are no mappings. `mappers` are by kind.
    pub fn start(mappers: BTreeMap<String, Mapper>) -> Result<Self, String> {
        let (evaluator, tasks) = Self::without_threads(mappers);
        let tasks = Arc::new(Mutex::new(tasks));
        let available = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = if evaluator.mappers.is_empty() { 0 } else { available.min(MAX_THREADS) };
        for _ in 0..threads {
            let tasks = Arc::clone(&tasks);
            let started = stack::spawn(move |stack| work(&tasks, stack));
            started.map_err(|error| format!("cannot start a thread for condition mappings: {error}"))?;
        }
        Ok(evaluator)
    }

    /// Returns an evaluator whose tasks the caller carries out.
    pub(crate) fn without_threads(mappers: BTreeMap<String, Mapper>) -> (Self, mpsc::Receiver<Task>) {
        let (queue, tasks) = mpsc::channel(MAX_QUEUED);
        let mappers = mappers.into_iter().map(|(kind, mapper)| (kind, Arc::new(mapper))).collect();
        (Self { mappers, queue }, tasks)
    }

    /// Returns true if conditions of that kind are mapped.
    pub fn maps(&self, kind: &str) -> bool {
        self.mappers.contains_key(kind)
    }

    /// Returns true if conditions of any kind are mapped.
    pub fn maps_any(&self) -> bool {
        !self.mappers.is_empty()
    }

    /// Evaluates the mappings of a resource's kind on the resource; none if the kind has no mappings.
    ///
    /// Waits for a thread. An evaluation whose caller stops waiting is not begun.
    pub async fn evaluate(&self, resource: Resource) -> Result<Vec<MappedCondition>, MappingError> {
        let Some(mapper) = self.mappers.get(&resource.kind).map(Arc::clone) else { return Ok(Vec::new()) };
        let (reply, result) = oneshot::channel();
        let task = Task { mapper, resource: Box::new(resource), reply };
        self.queue.send(task).await.map_err(|_closed| MappingError::Stopped)?;
        result.await.map_err(|_dropped| MappingError::Stopped)?
    }
}

fn work(tasks: &Mutex<mpsc::Receiver<Task>>, stack: &DeepStack) {
    loop {
        let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(task) = next else { return };
        task.carry_out(stack);
    }
}

// === impl Task ===

impl Task {
    fn carry_out(self, stack: &DeepStack) {
        let Self { mapper, resource, reply } = self;
        if reply.is_closed() {
            return;
        }
        let result = catch_unwind(AssertUnwindSafe(|| mapper.evaluate(&resource, stack)));
        // A caller that has stopped waiting needs no result.
        let _unread = reply.send(result.unwrap_or(Err(MappingError::Panicked)));
    }

    /// Evaluates the mappings on a thread of its own and replies.
    #[cfg(test)]
    pub(crate) fn carry_out_here(self) {
        stack::run(|stack| self.carry_out(stack)).unwrap();
    }
}
