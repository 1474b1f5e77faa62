//! Taking adapters' reports, and removing what they have finished cleaning up.

use super::{Address, Failure, MOST_ATTEMPTS, Service, lock, transact};
use crate::decide::change::RequestInfo;
use crate::decide::deletion;
use crate::decide::report::{self, Decision, DiscardReason, NewReport};
use crate::decide::transitions;
use crate::resource::{Report, Resource, Status};
use crate::store::{Lock, Stored, Write};

/// What came of a report.
#[derive(Clone, Debug, PartialEq)]
pub enum Reported {
    /// It was not stored.
    Discarded(DiscardReason),
    /// It is stored.
    Stored {
        /// As it is stored.
        report: Box<Report>,
        /// Whether it is the adapter's first one about this resource.
        first: bool,
        /// Whether it was the last one that the resource's removal waited for.
        removed: bool,
    },
}

impl Service {
    /// Takes a report about a resource.
    pub async fn report(
        &self,
        address: &Address<'_>,
        new: NewReport,
        request: &RequestInfo,
    ) -> Result<Reported, Failure> {
        report::check(&new, request.time)?;
        transact!(self, write => {
            let before = lock(&mut write, address, Lock::Change).await?;
            match report::decide(&new, &before.resource, request.time)? {
                Decision::Discard(reason) => Reported::Discarded(reason),
                Decision::Unchanged(report) => {
                    let removed = self.remove_if_finished(&mut write, &before.resource, &report, request).await?;
                    Reported::Stored { report: Box::new(report), first: false, removed }
                }
                Decision::Store(report) => self.take(&mut write, before, report, request).await?,
            }
        })
    }

    async fn take(
        &self,
        write: &mut Write,
        before: Stored,
        report: Report,
        request: &RequestInfo,
    ) -> Result<Reported, Failure> {
        let mut after = before.clone();
        let replaced = after.resource.state.reports.insert(report.adapter.clone(), report.clone());
        // Who cannot say whether it is available changes no conclusion.
        let concludes = report.status("Available") != Status::Unknown;
        if concludes || self.parts.mappers.contains_key(&after.resource.kind) {
            // Children matter to what is being deleted only.
            let deleting = after.resource.is_terminating();
            let active = if deleting { write.count_children(&after.resource.id).await?.1 } else { 0 };
            self.conclude_strictly(&mut after.resource, active > 0)?;
        }
        let removed = self.remove_if_finished(write, &after.resource, &report, request).await?;
        if !removed {
            let of_report = transitions::of_report(replaced.as_ref(), &report);
            write.add_transitions(&after.resource.id, &of_report).await?;
            self.save(write, &before.resource, &after, request.time).await?;
        }
        Ok(Reported::Stored { report: Box::new(report), first: replaced.is_none(), removed })
    }

    /// Removes a resource for good once its last adapter has cleaned up.
    async fn remove_if_finished(
        &self,
        write: &mut Write,
        resource: &Resource,
        report: &Report,
        request: &RequestInfo,
    ) -> Result<bool, Failure> {
        if !resource.is_terminating() || report.status("Finalized") != Status::True {
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
