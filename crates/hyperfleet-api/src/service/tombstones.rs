//! Tombstones of resources that were removed by force.

use super::mapped::MappedFacts;
use super::{Failure, Service, transact};
use crate::decide::tombstone;
use crate::entity::Descriptor;
use crate::store::Page;
use crate::tenancy::Reach;
use crate::tombstone::Tombstone;

impl Service {
    /// Returns a page of the tombstones of a kind within reach, oldest first.
    pub async fn tombstones(
        &self,
        descriptor: &Descriptor,
        reach: &Reach,
        offset: i64,
        limit: i64,
    ) -> Result<Page<Tombstone>, Failure> {
        Ok(self.store().tombstones(&descriptor.kind, reach, offset, limit).await?)
    }

    /// Records that copies of a tombstone are deleted. Returns the tombstone with those that are left; with none left it is
    /// removed.
    pub async fn swept(
        &self,
        descriptor: &Descriptor,
        id: &str,
        reach: &Reach,
        copies: &[serde_json::Value],
    ) -> Result<Tombstone, Failure> {
        transact!(self, _mapped = MappedFacts::default(), write => {
            let Some(mut tombstone) = write.lock_tombstone(&descriptor.kind, id, reach).await? else {
                return Err(Failure::NotFound { kind: "Tombstone".to_owned(), id: id.to_owned() });
            };
            tombstone.copies = tombstone::left(&tombstone, copies);
            write.leave(id, &tombstone.copies).await?;
            tombstone
        })
    }
}
