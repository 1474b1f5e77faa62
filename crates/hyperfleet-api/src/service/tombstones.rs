//! Tombstones of resources that were removed by force.

use super::mapped::MappedFacts;
use super::{Failure, MAX_ATTEMPTS, MAX_EVALUATIONS, Service, transact};
use crate::decide::tombstone;
use crate::entity::Descriptor;
use crate::store::Page;
use crate::tombstone::Tombstone;

impl Service {
    /// Returns a page of the tombstones of a kind, oldest first.
    pub async fn tombstones(
        &self,
        descriptor: &Descriptor,
        offset: i64,
        limit: i64,
    ) -> Result<Page<Tombstone>, Failure> {
        Ok(self.store().tombstones(&descriptor.kind, offset, limit).await?)
    }

    /// Records that copies of a tombstone are deleted. Returns the tombstone with those that are left; with none left it is
    /// removed.
    pub async fn swept(
        &self,
        descriptor: &Descriptor,
        id: &str,
        copies: &[serde_json::Value],
    ) -> Result<Tombstone, Failure> {
        transact!(self, _mapped = MappedFacts::default(), write => {
            let Some(mut tombstone) = write.lock_tombstone(&descriptor.kind, id).await? else {
                return Err(Failure::NotFound { kind: "Tombstone".to_owned(), id: id.to_owned() });
            };
            tombstone.copies = tombstone::left(&tombstone, copies);
            write.leave(id, &tombstone.copies).await?;
            tombstone
        })
    }
}
