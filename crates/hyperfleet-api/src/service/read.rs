//! Reads resources, lists, transitions and pull secrets.

use fleet_model::{Causes, Transition};

use super::{Address, Failure, PullSecretError, Service};
use crate::resource::Resource;
use crate::sealed::{self, Binding};
use crate::store::{Page, Query, Stored};
use crate::tenancy::Reach;

impl Service {
    /// Returns the resource within reach at an address.
    pub async fn get(&self, address: &Address<'_>, reach: &Reach) -> Result<Resource, Failure> {
        Ok(self.find(address, reach).await?.resource)
    }

    /// Returns the JSON of the resource within reach at an address.
    pub async fn read(&self, address: &Address<'_>, reach: &Reach) -> Result<String, Failure> {
        let found = self.store().object(address.id, reach).await?.filter(|object| address.fits_object(object));
        let served = found.filter(|object| self.registry().kind(&object.kind).is_some());
        served.map(|object| object.text).ok_or_else(|| address.not_found())
    }

    /// Returns the resource with its pull secret in clear; the caller must be permitted to read it.
    pub async fn read_with_pull_secret(&self, address: &Address<'_>, reach: &Reach) -> Result<Resource, Failure> {
        let Stored { mut resource, sealed } = self.find(address, reach).await?;
        if let Some(sealed) = sealed {
            let keyring = self.keyring().ok_or(PullSecretError::KeyMissing)?;
            let opened = Binding::of(&resource).open(&keyring, &sealed).map_err(PullSecretError::from)?;
            sealed::put(&mut resource.spec, opened);
        }
        Ok(resource)
    }

    /// Returns a page of resources as JSON texts.
    pub async fn list(&self, query: &Query) -> Result<Page<String>, Failure> {
        if let Some(owner) = &query.owner_id {
            self.check_owner(query, owner).await?;
        }
        Ok(self.store().list_objects(query).await?)
    }

    /// Returns a page of the transitions of a resource within reach, newest first.
    pub async fn history(
        &self,
        address: &Address<'_>,
        reach: &Reach,
        offset: i64,
        limit: i64,
    ) -> Result<Page<Transition>, Failure> {
        let resource = self.get(address, reach).await?;
        Ok(self.store().history(&resource.id, offset, limit).await?)
    }

    /// Groups the resources that match the query and whose condition of that type is not true.
    pub async fn causes(&self, query: &Query, condition: &str) -> Result<Causes, Failure> {
        let mut causes = self.store().causes(query, condition, &[condition.to_owned()]).await?;
        Ok(causes.pop().unwrap_or_default())
    }

    async fn find(&self, address: &Address<'_>, reach: &Reach) -> Result<Stored, Failure> {
        let found = self.store().get(address.id, reach).await?.filter(|stored| address.fits(&stored.resource));
        let served = found.filter(|stored| self.registry().kind(&stored.resource.kind).is_some());
        served.ok_or_else(|| address.not_found())
    }

    /// Fails if the owner does not exist: the list below it is then not found, instead of empty.
    async fn check_owner(&self, query: &Query, owner: &str) -> Result<(), Failure> {
        let child = query.kind.as_deref().and_then(|kind| self.registry().kind(kind));
        let parent = child.and_then(|child| child.parent_kind.as_deref()).and_then(|kind| self.registry().kind(kind));
        self.find(&Address { descriptor: parent, owner_id: None, id: owner }, &query.reach).await.map(drop)
    }
}
