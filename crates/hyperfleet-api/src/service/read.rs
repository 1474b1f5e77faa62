//! Reading resources, with what only some may read.

use serde_json::{Map, Value};

use super::{Address, Caller, Failure, Service};
use crate::problem::{Code, Problem};
use crate::render;
use crate::resource::Resource;
use crate::sealed;
use crate::store::{Page, Query, Stored, Transition};

/// How a resource is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// With its pull secret, in clear.
    pub with_pull_secret: bool,
}

/// A page of resources as readers see them.
pub type Listing = Page<Map<String, Value>>;

impl Service {
    /// The resource under that address.
    pub async fn get(&self, address: &Address<'_>) -> Result<Resource, Failure> {
        Ok(self.find(address).await?.resource)
    }

    /// The resource under that address as that caller may read it.
    pub async fn read(
        &self,
        address: &Address<'_>,
        reading: Reading,
        caller: &Caller,
    ) -> Result<Map<String, Value>, Failure> {
        if reading.with_pull_secret && !caller.reads_pull_secrets {
            let detail = "reading a pull secret needs an identity that is configured in pull_secret.readers";
            return Err(Problem::new(Code::PermissionDenied, detail).into());
        }
        let Stored { mut resource, sealed } = self.find(address).await?;
        if let (true, Some(sealed)) = (reading.with_pull_secret, sealed) {
            let closed = |why: String| Problem::new(Code::Internal, format!("the pull secret cannot be opened: {why}"));
            let keyring = self.parts.keyring.as_ref();
            let opened = keyring.ok_or_else(|| closed("no key is configured (pull_secret.keys)".to_owned()))?;
            let opened = opened.open(&resource.id, &sealed).map_err(|unopened| closed(unopened.to_string()))?;
            sealed::put(&mut resource.spec, opened);
        }
        Ok(render::resource(&resource))
    }

    /// A page of resources.
    pub async fn list(&self, query: &Query) -> Result<Listing, Failure> {
        if let Some(owner) = &query.owner_id {
            self.check_owner(query, owner).await?;
        }
        let Page { items, total } = self.store().list(query).await?;
        Ok(Page { items: items.iter().map(render::resource).collect(), total })
    }

    /// A page of a resource's transitions, newest first.
    pub async fn history(&self, address: &Address<'_>, offset: i64, limit: i64) -> Result<Page<Transition>, Failure> {
        let resource = self.get(address).await?;
        Ok(self.store().history(&resource.id, offset, limit).await?)
    }

    async fn find(&self, address: &Address<'_>) -> Result<Stored, Failure> {
        let found = self.store().get(address.id).await?.filter(|stored| address.fits(&stored.resource));
        let served = found.filter(|stored| self.registry().kind(&stored.resource.kind).is_some());
        served.ok_or_else(|| Failure::Refused(address.not_found()))
    }

    /// A list below an owner that is not there is not an empty list.
    async fn check_owner(&self, query: &Query, owner: &str) -> Result<(), Failure> {
        let child = query.kind.as_deref().and_then(|kind| self.registry().kind(kind));
        let parent = child.and_then(|child| child.parent_kind.as_deref()).and_then(|kind| self.registry().kind(kind));
        self.find(&Address { descriptor: parent, owner_id: None, id: owner }).await.map(drop)
    }
}
