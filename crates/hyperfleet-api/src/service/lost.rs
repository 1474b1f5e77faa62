//! Removes pull secrets whose key is lost.

use database::sealed::key_id;

use super::mapped::MappedFacts;
use super::{Failure, Service, save, transact};
use crate::decide::change::RequestInfo;
use crate::decide::lost;
use crate::store::{Lock, Stored, Write};

impl Service {
    /// Removes the pull secret of a resource if it is encrypted with that key; returns false if it is not.
    pub async fn remove_lost(&self, id: &str, key: &str, request: &RequestInfo) -> Result<bool, Failure> {
        transact!(self, mapped = MappedFacts::default(), write => {
            let found = write.lock(id, Lock::Change, &request.reach).await?;
            let has_key = |text: &String| text.split('.').next().is_some_and(|beginning| key_id(beginning) == key);
            match found.filter(|stored| stored.sealed.as_ref().is_some_and(has_key)) {
                None => false,
                Some(before) => {
                    self.remove_content(&mut write, before, request, &mapped).await?;
                    true
                }
            }
        })
    }

    async fn remove_content(
        &self,
        write: &mut Write,
        before: Stored,
        request: &RequestInfo,
        mapped: &MappedFacts,
    ) -> Result<(), Failure> {
        let mut resource = lost::without_pull_secret(&before.resource, request);
        // A kind that is no longer configured is not served, and keeps its conditions.
        if self.registry().kind(&resource.kind).is_some() {
            let active = if resource.is_terminating() { write.count_children(&resource.id).await?.1 } else { 0 };
            self.conclude(&mut resource, active > 0, mapped, request.time)?;
        }
        save(write, &before, Stored { resource, sealed: None }, request.time);
        Ok(())
    }
}
