//! Stores adapters' reports, and removes resources once all adapters have finalized them.

use fleet_model::names::condition::AVAILABLE;
use fleet_model::{Report, Status};

use super::evaluate::with_report;
use super::group::Group;
use super::operation::{Reported, Reporting};
use super::together::{Operation, perform};
use super::{Address, Failure, Service, attempt, lock};
use crate::decide::change::RequestInfo;
use crate::decide::deletion;
use crate::decide::report::{self, Decision, NewReport};
use crate::decide::transitions;
use crate::resource::Resource;
use crate::store::{Lock, Stored, Write};
use crate::tenancy::Reach;

impl Service {
    /// Stores a report of a resource.
    pub async fn report(
        &self,
        address: &Address<'_>,
        new: NewReport,
        request: &RequestInfo,
    ) -> Result<Reported, Failure> {
        report::check(&new, request.time)?;
        attempt!(self, mapped = self.evaluate_report(address, &new, request).await?, {
            let operation = Reporting {
                kind: address.descriptor.map(|descriptor| descriptor.kind.clone()),
                owner_id: address.owner_id.map(str::to_owned),
                id: address.id.to_owned(),
                new: new.clone(),
                request: request.clone(),
                mapped: mapped.clone(),
            };
            perform(self, operation).await
        })
    }

    async fn store_report(
        &self,
        write: &mut Write,
        before: Stored,
        report: Report,
        Reporting { new, request, mapped, .. }: &Reporting,
    ) -> Result<Reported, Failure> {
        let (resource, replaced) = with_report(&before.resource, &report);
        report::check_room(&before.resource, &resource)?;
        let mut after = Stored { resource, sealed: before.sealed.clone() };
        // An adapter that does not know whether it is available changes no aggregated condition.
        let concludes = report.status(AVAILABLE) != Status::Unknown;
        if concludes || self.parts.evaluator.maps(&after.resource.kind) {
            // Only the conditions of a terminating resource depend on its children.
            let terminating = after.resource.is_terminating();
            let active = if terminating { write.count_children(&after.resource.id).await?.1 } else { 0 };
            self.conclude_strictly(&mut after.resource, active > 0, mapped, request.time)?;
        }
        let removed = report::finalizes(new) && self.remove_if_finished(write, &after.resource, request).await?;
        if !removed {
            let mut transitions = transitions::of_report(replaced.as_ref(), &report);
            transitions.extend(transitions::of_conditions(Some(&before.resource), &after.resource));
            write.save(&before, after, transitions, request.time);
        }
        Ok(Reported::Stored { report: Box::new(report), first: replaced.is_none(), removed })
    }

    /// Removes a terminating resource if all its adapters have finalized it and no children remain.
    async fn remove_if_finished(
        &self,
        write: &mut Write,
        resource: &Resource,
        request: &RequestInfo,
    ) -> Result<bool, Failure> {
        if !resource.is_terminating() {
            return Ok(false);
        }
        let (children, _) = write.count_children(&resource.id).await?;
        let finished = deletion::is_finished(resource, self.descriptor(resource)?, children > 0);
        if finished {
            write.remove(resource, request.time).await?;
        }
        Ok(finished)
    }
}

// === impl Reporting ===

impl Operation for Reporting {
    type Done = Reported;

    fn group(service: &Service) -> &Group<Self, Reported> {
        &service.parts.reports
    }

    fn locks(&self) -> Option<(&str, &Reach)> {
        Some((&self.id, &self.request.reach))
    }

    async fn perform(&self, service: &Service, write: &mut Write) -> Result<Reported, Failure> {
        let descriptor = self.kind.as_deref().and_then(|kind| service.registry().kind(kind));
        let address = Address { descriptor, owner_id: self.owner_id.as_deref(), id: &self.id };
        let before = lock(write, &address, Lock::Change, &self.request.reach).await?;
        Ok(match report::decide(&self.new, &before.resource, self.request.time)? {
            Decision::Discard(reason) => Reported::Discarded(reason),
            Decision::Unchanged(report) => {
                // It may still be the one that the end of the deletion has waited for.
                let removed = report::finalizes(&self.new)
                    && service.remove_if_finished(write, &before.resource, &self.request).await?;
                Reported::Stored { report: Box::new(report), first: false, removed }
            }
            Decision::Store(report) => service.store_report(write, before, report, self).await?,
        })
    }
}
