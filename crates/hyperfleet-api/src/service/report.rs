//! Stores adapters' reports, and removes resources once all adapters have finalized them.

use fleet_model::names::condition::{AVAILABLE, FINALIZED};
use fleet_model::{Report, Status};

use super::evaluate::with_report;
use super::mapped::MappedFacts;
use super::{Address, Failure, MAX_ATTEMPTS, MAX_EVALUATIONS, Service, lock, transact};
use crate::decide::change::RequestInfo;
use crate::decide::deletion;
use crate::decide::report::{self, Decision, DiscardReason, NewReport};
use crate::decide::transitions;
use crate::resource::Resource;
use crate::store::{Lock, Stored, Write};

/// The result of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Reported {
    /// The report was not stored.
    Discarded(DiscardReason),
    /// The report is stored.
    Stored {
        /// The report as it is stored.
        report: Box<Report>,
        /// True if it is the adapter's first report of this resource.
        first: bool,
        /// True if it completed the deletion and the resource is removed.
        removed: bool,
    },
}

/// One attempt to store a report.
#[derive(Clone, Copy)]
struct Operation<'a> {
    request: &'a RequestInfo,
    mapped: &'a MappedFacts,
}

impl Service {
    /// Stores a report of a resource.
    pub async fn report(
        &self,
        address: &Address<'_>,
        new: NewReport,
        request: &RequestInfo,
    ) -> Result<Reported, Failure> {
        report::check(&new, request.time)?;
        transact!(self, mapped = self.evaluate_report(address, &new, request).await?, write => {
            let before = lock(&mut write, address, Lock::Change, &request.reach).await?;
            match report::decide(&new, &before.resource, request.time)? {
                Decision::Discard(reason) => Reported::Discarded(reason),
                Decision::Unchanged(report) => {
                    let removed = self.remove_if_finished(&mut write, &before.resource, &report, request).await?;
                    Reported::Stored { report: Box::new(report), first: false, removed }
                }
                Decision::Store(report) => {
                    let operation = Operation { request, mapped: &mapped };
                    self.store_report(&mut write, before, report, operation).await?
                }
            }
        })
    }

    async fn store_report(
        &self,
        write: &mut Write,
        before: Stored,
        report: Report,
        Operation { request, mapped }: Operation<'_>,
    ) -> Result<Reported, Failure> {
        let (resource, replaced) = with_report(&before.resource, &report);
        report::check_room(&before.resource, &resource)?;
        let mut after = Stored { resource, sealed: before.sealed };
        // An adapter that does not know whether it is available changes no aggregated condition.
        let concludes = report.status(AVAILABLE) != Status::Unknown;
        if concludes || self.parts.evaluator.maps(&after.resource.kind) {
            // Only the conditions of a terminating resource depend on its children.
            let terminating = after.resource.is_terminating();
            let active = if terminating { write.count_children(&after.resource.id).await?.1 } else { 0 };
            self.conclude_strictly(&mut after.resource, active > 0, mapped)?;
        }
        let removed = self.remove_if_finished(write, &after.resource, &report, request).await?;
        if !removed {
            let of_report = transitions::of_report(replaced.as_ref(), &report);
            write.add_transitions(&after.resource.id, &of_report).await?;
            self.save(write, &before.resource, &after, request.time).await?;
        }
        Ok(Reported::Stored { report: Box::new(report), first: replaced.is_none(), removed })
    }

    /// Removes a terminating resource once its last adapter has finalized it.
    async fn remove_if_finished(
        &self,
        write: &mut Write,
        resource: &Resource,
        report: &Report,
        request: &RequestInfo,
    ) -> Result<bool, Failure> {
        if !resource.is_terminating() || report.status(FINALIZED) != Status::True {
            return Ok(false);
        }
        let (children, _) = write.count_children(&resource.id).await?;
        let finished = deletion::is_finished(resource, self.descriptor(resource)?, children > 0);
        if finished {
            self.remove(write, resource, request).await?;
        }
        Ok(finished)
    }
}
