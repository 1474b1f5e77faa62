//! Raises the generations of resources after a restore of the database.

use super::mapped::MappedFacts;
use super::{Failure, Service, save, transact};
use crate::decide::change::RequestInfo;
use crate::decide::restore;
use crate::store::{Lock, Stored, Write};

impl Service {
    /// Raises the generation of a resource, so that it is newer than every one that was given before the restore. Returns
    /// false if the resource no longer exists.
    pub async fn raise_generation(&self, id: &str, request: &RequestInfo) -> Result<bool, Failure> {
        transact!(self, mapped = MappedFacts::default(), write => {
            match write.lock(id, Lock::Change, &request.reach).await? {
                None => false,
                Some(before) => {
                    self.raise(&mut write, before, request, &mapped).await?;
                    true
                }
            }
        })
    }

    async fn raise(
        &self,
        write: &mut Write,
        before: Stored,
        request: &RequestInfo,
        mapped: &MappedFacts,
    ) -> Result<(), Failure> {
        let mut resource = restore::raise(&before.resource, request);
        // A kind that is no longer configured is not served, and keeps its conditions.
        if self.registry().kind(&resource.kind).is_some() {
            let active = if resource.is_terminating() { write.count_children(&resource.id).await?.1 } else { 0 };
            self.conclude(&mut resource, active > 0, mapped, request.time)?;
        }
        let after = Stored { resource, sealed: before.sealed.clone() };
        save(write, &before, after, request.time);
        Ok(())
    }
}
