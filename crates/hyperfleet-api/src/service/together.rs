//! Group commit: operations that wait at the same time share one transaction.
//!
//! One commit, and one statement for each table, then serve all of them. The answers are those of one transaction each: an
//! operation that is refused has changed nothing, one that meets a resource locked by another transaction waits for it
//! alone, and if the transaction fails its operations are carried out one by one.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{SemaphorePermit, oneshot};
use tokio::time::{Instant, timeout};

use super::group::{Group, Waiting};
use super::{Failure, Service};
use crate::store::{StoreError, Write};
use crate::tenancy::Reach;

/// Maximum time of a transaction of several operations, all of which wait for it.
const MAX_TIME: Duration = Duration::from_secs(5);

/// An operation that may share its transaction with others of its type.
pub(super) trait Operation: Sized + Send + Sync + 'static {
    /// The result.
    type Done: Send + 'static;

    /// Returns the group of the operations of this type.
    fn group(service: &Service) -> &Group<Self, Self::Done>;

    /// Returns the id of the resource that it locks first, if any, and the caller's reach.
    fn locks(&self) -> Option<(&str, &Reach)>;

    /// Carries it out. It must have no effect on the write before it can be refused.
    fn perform(&self, service: &Service, write: &mut Write)
    -> impl Future<Output = Result<Self::Done, Failure>> + Send;
}

/// The result of an operation in a shared transaction; `None` if it has to be carried out alone.
type Shared<O> = Option<Result<<O as Operation>::Done, Failure>>;

/// The means of a transaction of several operations.
struct Means<'a> {
    /// The permit to prepare it, which ends when nothing is left but the commit.
    permit: Option<SemaphorePermit<'a>>,
    /// The write, if it has begun.
    begun: Option<Write>,
}

/// The results of a transaction of several operations.
struct Together<O: Operation> {
    results: Vec<Shared<O>>,
    /// The next write, if it has begun.
    next: Option<Write>,
}

/// Carries out an operation, together with those that wait at the same time.
pub(super) async fn perform<O: Operation>(service: &Service, operation: O) -> Result<O::Done, Failure> {
    let (answer, answered) = oneshot::channel();
    if O::group(service).add(Waiting { operation, answer, since: Instant::now() }) {
        tokio::spawn(serve::<O>(service.clone()));
    }
    answered.await.unwrap_or(Err(Failure::Abandoned))
}

async fn serve<O: Operation>(service: Service) {
    let mut begun = None;
    loop {
        let permit = O::group(&service).permit().await;
        let Some(next) = O::group(&service).next() else { break };
        begun = carry_out(&service, next, Means { permit, begun }).await;
    }
    // Their requests have ended meanwhile.
    if let Some(write) = begun {
        let _dropping_it_does_so_too = write.roll_back().await;
    }
}

/// Carries out operations. Returns the next write if it has begun.
async fn carry_out<O: Operation>(
    service: &Service,
    operations: Vec<Waiting<O, O::Done>>,
    means: Means<'_>,
) -> Option<Write> {
    // A panic in one operation must not end the others: each is then carried out alone.
    let together = AssertUnwindSafe(together(service, &operations, means)).catch_unwind();
    let mut next = None;
    let shared = match timeout(MAX_TIME, together).await {
        Ok(Ok(Ok(done))) => {
            next = done.next;
            done.results
        }
        Ok(Ok(Err(Failure::Store(error)))) if operations.len() == 1 || error.is_unavailable() => {
            failed(&operations, &error)
        }
        Ok(Ok(Err(_)) | Err(_)) => operations.iter().map(|_| None).collect(),
        Err(_elapsed) => failed(&operations, &StoreError::timed_out()),
    };
    for (Waiting { operation, mut answer, .. }, result) in operations.into_iter().zip(shared) {
        if let Some(result) = result {
            let _the_request_has_ended = answer.send(result);
            continue;
        }
        let service = service.clone();
        tokio::spawn(async move {
            let result = tokio::select! {
                result = alone(&service, &operation) => result,
                () = answer.closed() => return,
            };
            let _the_request_has_ended = answer.send(result);
        });
    }
    next
}

/// Carries out operations in one transaction, without those whose resource another transaction has locked. Fails if a
/// statement fails; then none has been carried out.
async fn together<O: Operation>(
    service: &Service,
    operations: &[Waiting<O, O::Done>],
    Means { permit, begun }: Means<'_>,
) -> Result<Together<O>, Failure> {
    let mut write = match begun {
        Some(write) => write,
        None => service.store().write().await?,
    };
    let ids: BTreeSet<_> = operations.iter().filter_map(|waiting| Some(waiting.operation.locks()?.0)).collect();
    if !ids.is_empty() {
        write.lock_free(&ids.into_iter().map(str::to_owned).collect::<Vec<_>>()).await?;
    }
    let mut results = Vec::with_capacity(operations.len());
    for Waiting { operation, .. } in operations {
        // A resource beyond reach takes the way of one that does not exist, so that no answer's time tells them apart.
        let is_free = operation.locks().is_none_or(|(id, reach)| write.has_locked(id, reach));
        if !is_free {
            results.push(None);
            continue;
        }
        match operation.perform(service, &mut write).await {
            Err(Failure::Store(error)) => return Err(error.into()),
            result => results.push(Some(result)),
        }
    }
    let prepared = write.prepare().await?;
    drop(permit);
    let next = service.commit_prepared(prepared, O::group(service).is_waited_for()).await?;
    Ok(Together { results, next })
}

/// Carries out an operation in a transaction of its own.
pub(super) async fn alone<O: Operation>(service: &Service, operation: &O) -> Result<O::Done, Failure> {
    let mut write = service.store().write().await?;
    let done = operation.perform(service, &mut write).await;
    service.finish(write, done).await
}

fn failed<O: Operation>(operations: &[Waiting<O, O::Done>], error: &StoreError) -> Vec<Shared<O>> {
    operations.iter().map(|_| Some(Err(error.clone().into()))).collect()
}
