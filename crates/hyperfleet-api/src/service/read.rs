//! Reading resources, with what only some may read.

use super::{Address, Caller, Failure, PullSecretError, Service};
use crate::render;
use crate::resource::Resource;
use crate::sealed;
use crate::store::{Page, Query, Stored, Transition};

impl Service {
    /// The resource under that address.
    pub async fn get(&self, address: &Address<'_>) -> Result<Resource, Failure> {
        Ok(self.find(address).await?.resource)
    }

    /// The resource under that address as readers see it: the text of its JSON.
    pub async fn read(&self, address: &Address<'_>) -> Result<String, Failure> {
        let found = self.store().object(address.id).await?.filter(|object| address.fits_object(object));
        let served = found.filter(|object| self.registry().kind(&object.kind).is_some());
        served.map(|object| object.text).ok_or_else(|| address.not_found())
    }

    /// The same with its pull secret in clear, for those who may read it.
    pub async fn read_with_pull_secret(&self, address: &Address<'_>, caller: &Caller) -> Result<String, Failure> {
        if !caller.reads_pull_secrets {
            return Err(PullSecretError::Forbidden.into());
        }
        let Stored { mut resource, sealed } = self.find(address).await?;
        if let Some(sealed) = sealed {
            let keyring = self.parts.keyring.as_ref().ok_or(PullSecretError::KeyMissing)?;
            let opened = keyring.open(&resource.id, &sealed).map_err(PullSecretError::from)?;
            sealed::put(&mut resource.spec, opened);
        }
        Ok(render::text(&resource))
    }

    /// A page of resources as readers see them.
    pub async fn list(&self, query: &Query) -> Result<Page<String>, Failure> {
        if let Some(owner) = &query.owner_id {
            self.check_owner(query, owner).await?;
        }
        Ok(self.store().list_objects(query).await?)
    }

    /// A page of a resource's transitions, newest first.
    pub async fn history(&self, address: &Address<'_>, offset: i64, limit: i64) -> Result<Page<Transition>, Failure> {
        let resource = self.get(address).await?;
        Ok(self.store().history(&resource.id, offset, limit).await?)
    }

    async fn find(&self, address: &Address<'_>) -> Result<Stored, Failure> {
        let found = self.store().get(address.id).await?.filter(|stored| address.fits(&stored.resource));
        let served = found.filter(|stored| self.registry().kind(&stored.resource.kind).is_some());
        served.ok_or_else(|| address.not_found())
    }

    /// A list below an owner that is not there is not an empty list.
    async fn check_owner(&self, query: &Query, owner: &str) -> Result<(), Failure> {
        let child = query.kind.as_deref().and_then(|kind| self.registry().kind(kind));
        let parent = child.and_then(|child| child.parent_kind.as_deref()).and_then(|kind| self.registry().kind(kind));
        self.find(&Address { descriptor: parent, owner_id: None, id: owner }).await.map(drop)
    }
}
